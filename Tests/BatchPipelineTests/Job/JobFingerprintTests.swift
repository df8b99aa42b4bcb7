import BatchIdentifiers
import BatchPipeline
import BatchRuns
import BatchSQLite
import SystemPackage
import Testing

@Suite struct JobFingerprintTests {
  private static func job(
    _ text: String = CompleteJob.update,
    folder: FilePath = ""
  ) throws(BatchError) -> Job {
    try Job(json: Array(text.utf8), baseDirectory: folder)
  }

  private func fingerprint(
    of job: Job,
    _ arguments: [String] = ["before=2020-01-01"],
    store: String = "S",
    start: String = "2026-11-21T10:00:00Z",
    run: String = "R",
    identifiers: String? = nil
  ) throws -> JobFingerprint {
    let values = try ParameterValues(
      arguments: arguments,
      declarations: job.parameters,
      runStartedAt: start,
      runID: run
    )
    return JobFingerprint(
      job: job,
      parameters: values,
      store: store,
      identifiersHash: identifiers
    )
  }

  @Test func `a fingerprint is canonical and stable between versions`() throws {
    let text = try fingerprint(of: Self.job()).text
    #expect(
      text == """
        {"action":{"set":{"a \\"b\\"":"NULL","changed":":now","price":"cost * :factor"},\
        "type":"update"},"entity":"orders","everything":false,\
        "foreignKeys":false,"format":1,"identifiers":null,\
        "key":["id"],"limit":1000000,"orderBy":["-priority","id"],"parameters":{\
        "before":{"text":"2020-01-01"},"factor":{"real":2.0},"now":{"run":"$runStartedAt"},\
        "run":{"run":"$runID"},"token":{"secret":"339167557c560e80"}},"store":"S",\
        "where":"price IS NULL AND day < :before"}
        """
    )
  }

  @Test func `a fingerprint omits tuning and values that differ with every run`() throws {
    let first = try fingerprint(of: Self.job())
    var job = try Self.job()
    job.chunk.size = 7
    job.workers = nil
    job.checkpoint = .init()
    job.database = .init(path: "elsewhere.db")
    job.description = nil
    job.source.recheck = .off
    if case .update(let update) = job.action {
      job.action = .update(.init(set: update.set.reversed()))
    }
    let second = try fingerprint(of: job, start: "2027-01-01T00:00:00Z", run: "Q")
    #expect(first == second)
    #expect(second.differences(from: first).isEmpty)
  }

  @Test func `a fingerprint is independent of the export's folder`() throws {
    let first = try fingerprint(of: Self.job(CompleteJob.export, folder: "/a"), [])
    let second = try fingerprint(of: Self.job(CompleteJob.export, folder: "/b/c"), [])
    #expect(first == second)
    #expect(first.text.contains(#""file":"orders.csv""#))
  }

  @Test func `a fingerprint has the form of lines only where it is not the default`() throws {
    func text(_ format: Job.ExportFormat) throws -> String {
      var job = try Self.job(CompleteJob.export)
      job.action = .export(.init(file: "f", format: format))
      return try fingerprint(of: job, []).text
    }
    // As versions without these settings wrote it.
    for format in [Job.ExportFormat.csv, .ndjson] {
      let action =
        #""action":{"columns":null,"file":"f","format":"\#(format.name)","type":"export"}"#
      #expect(try text(format).contains(action))
    }
    let forms: [LineFormat] = [
      .csv(CSVForm(delimiter: ";")), .csv(CSVForm(null: "NULL")), .csv(CSVForm(bom: true)),
      .csv(CSVForm(quote: .all)), .csv(CSVForm()), .ndjson(json: ["b", "a"]), .ndjson(json: []),
    ]
    let formats =
      forms.map { Job.ExportFormat.lines($0, .none) }
      + [.lines(.ndjson(json: []), .gzip), .lines(.ndjson(json: []), .zstd)]
    #expect(try Set(formats.map(text)).count == formats.count)
    #expect(
      try text(.lines(.ndjson(json: ["a", "b"]), .none))
        == text(.lines(.ndjson(json: ["b", "a"]), .none))
    )
  }

  private static let changes: [(@Sendable (inout Job) -> Void, String)] = [
    (
      { $0.source.where = "a > 2" },
      #"where was "price IS NULL AND day < :before", is now "a > 2""#
    ),
    (
      { $0.source.where = nil },
      #"where was "price IS NULL AND day < :before", is now not set"#
    ),
    ({ $0.source.entity = "items" }, #"entity was "orders", is now "items""#),
    ({ $0.source.limit = 10 }, "limit was 1000000, is now 10"),
    ({ $0.source.orderBy = [] }, #"orderBy was ["-priority","id"], is now []"#),
    ({ $0.source.key = nil }, #"key was ["id"], is now not set"#),
    ({ $0.source.everything = true }, "everything was false, is now true"),
    ({ $0.source.since = .init("changed") }, #"since was not set, is now "changed""#),
    ({ $0.source.changes = .log }, #"changes was not set, is now "log""#),
    (
      { $0.action = .delete(.init(archive: "old")) },
      #"the action was "update", is now "delete""#
    ),
    (
      { $0.action = .update(.init(set: [.init("price", to: "1"), .init("a \"b\"", to: "NULL")])) },
      #"set "changed" was ":now", is now not set; set "price" was "cost * :factor", is now "1""#
    ),
  ]

  @Test(arguments: changes)
  func `a difference of fingerprints is reported in words`(
    change: @Sendable (inout Job) -> Void,
    expected: String
  ) throws {
    let first = try fingerprint(of: Self.job())
    var job = try Self.job()
    change(&job)
    let second = try fingerprint(of: job)
    #expect(first != second)
    #expect(second.differences(from: first).joined(separator: "; ") == expected)
  }

  @Test func `a fingerprint includes parameters, store and identifiers, but no secrets`() throws {
    let job = try Self.job()
    let first = try fingerprint(of: job, ["before=2020-01-01", "token=hunter2"], identifiers: "1f")
    let second = try fingerprint(
      of: job,
      ["before=2020-01-02", "token=hunter3", "now=2020-01-01", "factor=2"],
      store: "T",
      identifiers: "2f"
    )
    #expect(
      second.differences(from: first) == [
        #"the database was "S", is now "T""#,
        #"the content of the identifier file was "1f", is now "2f""#,
        #"parameter "before" was "2020-01-01", is now "2020-01-02""#,
        #"parameter "now" was that of the run, is now "2020-01-01T00:00:00Z""#,
        #"parameter "token" has another value"#,
      ]
    )
    #expect(!first.text.contains("hunter"))
  }

  @Test func `an integer and its text have different fingerprints`() throws {
    func text(_ type: ParameterType) throws -> String {
      var job = try Self.job(CompleteJob.delete)
      job.parameters = ["p": .init(type)]
      return try fingerprint(of: job, ["p=1"]).text
    }
    let texts = try Set([.integer, .real, .text].map(text))
    #expect(texts.count == 3)
  }

  @Test func `a difference at any place of a long text is found and shown`() throws {
    typealias Change = @Sendable (inout Job, String) -> Void
    let fields: [(label: String, change: Change)] = [
      ("where", { $0.source.where = "\($1)" }),
      ("set \"price\"", { $0.action = .update(.init(set: [.init("price", to: "\($1)")])) }),
      ("query", { $0.source.query = $1 }),
      ("entity", { $0.source.entity = $1 }),
      ("orderBy", { $0.source.orderBy = [.init($1)] }),
      ("archive", { $0.action = .delete(.init(archive: $1)) }),
      ("parameter \"long\"", { job, _ in job.parameters["long"] = .init(.text) }),
    ]
    func fingerprint(_ change: Change, _ text: String) throws -> JobFingerprint {
      var job = try Self.job()
      change(&job, text)
      let given = job.parameters["long"] == nil ? [] : ["long=\(text)"]
      return try self.fingerprint(of: job, ["before=2020-01-01"] + given)
    }
    let text = String(repeating: "0123456789", count: 30)
    for (label, change) in fields {
      let first = try fingerprint(change, text)
      for position in stride(from: 0, to: 300, by: 7) {
        // The second has the same characters for Swift, but not for SQL.
        for (was, now) in [("x", "y"), ("\u{e9}", "e\u{301}")] {
          func changed(_ replacement: String) -> String {
            String(text.prefix(position)) + replacement + String(text.dropFirst(position + 1))
          }
          let first = was == "x" ? first : try fingerprint(change, changed(was))
          let second = try fingerprint(change, changed(now))
          let differences = second.differences(from: first)
          let difference = try #require(
            differences.first { $0.hasPrefix("\(label) was ") },
            "\(label) at \(position): \(differences)"
          )
          #expect(difference.utf8.contains(Array(now.utf8)), "\(difference)")
        }
      }
      // Also where one text is the beginning of the other.
      let longer = try fingerprint(change, text + "y")
      #expect(longer.differences(from: first).contains { $0.hasPrefix("\(label) was ") })
      #expect(first.differences(from: longer).contains { $0.hasPrefix("\(label) was ") })
    }
  }

  @Test func `an invalid fingerprint or one of another version differs as a whole`() throws {
    let fingerprint = try fingerprint(of: Self.job())
    let other = JobFingerprint(text: "{")
    #expect(fingerprint.differences(from: other) == ["the fingerprint is of another kind"])
    let newer = JobFingerprint(text: #"{"format":2}"#)
    #expect(
      fingerprint.differences(from: newer) == ["the fingerprint is of another version of batch"]
    )
  }
}
