import BatchTestSupport
import Foundation
import Testing

/// Jobs whose condition reads other rows of the table that they write, as a user runs them.
@Suite struct RecheckTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE c (id INTEGER PRIMARY KEY, v, email)",
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
      INSERT INTO c SELECT i, i, 'e' || (i % 700) FROM n
      """
    )
  }

  private func write(
    _ action: [String: Any],
    where condition: String,
    recheck: String? = nil
  ) throws {
    var source: [String: Any] = ["entity": "c", "where": condition]
    source["recheck"] = recheck
    let job: [String: Any] = [
      "version": 1, "name": "job", "database": ["path": "test.db"], "source": source,
      "action": action,
    ]
    let data = try JSONSerialization.data(withJSONObject: job)
    try directory.write(String(decoding: data, as: UTF8.self), to: "job.json")
  }

  private func plan() throws -> [String: Any] {
    let result = try BatchProgram.run("plan", "job.json", "--json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    return try JSONOutput.object(result.output)
  }

  private func warnings() throws -> [String] { try plan()["warnings"] as? [String] ?? [] }

  private static var timesTen: [String: Any] { ["type": "update", "set": ["v": "v * 10"]] }
  private static let average = "v > (SELECT avg(v) FROM c)"
  private static let duplicate = "id NOT IN (SELECT min(id) FROM c GROUP BY email)"

  @Test(arguments: ["1", "10", "37", "1000"])
  func `the rows above the average are those at the time of the selection`(
    chunk: String
  ) throws {
    try write(Self.timesTen, where: Self.average)
    let result = try BatchProgram.run(
      "run",
      "job.json",
      "--chunk-size",
      chunk,
      in: directory
    )
    #expect(result.status == 0, "\(result.errors)")
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM c WHERE v <> id") == ["500"])
    #expect(
      try TestDatabase.texts(path, "SELECT count(*) FROM c WHERE v = id * 10 AND id > 500")
        == ["500"]
    )
  }

  @Test func `duplicates are removed whatever the query plan`() throws {
    try write(["type": "delete"], where: Self.duplicate)
    let warnings = try warnings()
    #expect(!warnings.contains { $0.contains("an index on id") })
    #expect(
      warnings.contains { $0.contains("every row of \"c\", and what its subqueries read") }
    )
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM c") == ["700"])
    #expect(try TestDatabase.texts(path, "SELECT max(id) FROM c") == ["700"])
  }

  @Test func `a plan lists the terms that are rechecked and those that are not`() throws {
    try write(Self.timesTen, where: "email <> 'x' AND \(Self.average) AND random() IS NOT NULL")
    let recheck = try #require(plan()["recheck"] as? [String: Any])
    #expect(recheck["mode"] as? String == "row")
    #expect(recheck["terms"] as? [String] == ["email <> 'x'"])
    let omissions = try #require(recheck["notRechecked"] as? [[String: String]])
    #expect(
      omissions == [
        ["term": Self.average, "because": "reads \"c\""],
        ["term": "random() IS NOT NULL", "because": "calls random"],
      ]
    )
    #expect(recheck["secondsPerChunk"] == nil)
    #expect(try !warnings().contains { $0.contains("source.recheck") })
    let text = try BatchProgram.run("plan", "job.json", in: directory)
    #expect(
      text.output.contains(
        """
        recheck   the row, and `email <> 'x'`; not rechecked: `\(Self.average)`, which reads "c"; \
        `random() IS NOT NULL`, which calls random
        """
      ),
      "\(text.output)"
    )
  }

  @Test(arguments: ["skip", "fail"])
  func `a plan warns of the consequences of rechecking everything`(mode: String) throws {
    try write(Self.timesTen, where: "email <> 'x' AND \(Self.average)", recheck: mode)
    let plan = try plan()
    let recheck = try #require(plan["recheck"] as? [String: Any])
    #expect((recheck["terms"] as? [String])?.count == 2)
    #expect((recheck["notRechecked"] as? [Any])?.isEmpty == true)
    #expect(recheck["secondsPerChunk"] as? Double ?? -1 > 0)
    let warnings = try warnings()
    #expect(
      warnings.contains {
        $0.contains("`\(Self.average)` is rechecked for each chunk")
          && $0.contains("\"c\", which the run itself writes")
      }
    )
    #expect(warnings.contains { $0.contains("again in each chunk") && $0.contains("in all") })
    try write(Self.timesTen, where: Self.average, recheck: "off")
    #expect(try !self.warnings().contains { $0.contains("source.recheck") })
  }

  @Test func `a plan warns of values computed from other rows that the run writes`() throws {
    func isWarned(_ value: String, _ column: String = "v") throws -> Bool {
      try write(["type": "update", "set": [column: value]], where: "id > 5")
      return try warnings().contains { $0.contains("set.\(column) reads c.v of other rows") }
    }
    #expect(try isWarned("(SELECT max(v) FROM c)"))
    #expect(try isWarned("v - (SELECT avg(o.v) FROM c AS o WHERE o.email = c.email)"))
    #expect(try !isWarned("(SELECT max(email) FROM c)"))
    #expect(try !isWarned("(SELECT max(v) FROM c)", "email"))
    #expect(try !isWarned("v * 10"))
    #expect(try !isWarned("(SELECT v + 1)"))
  }

  @Test func `a plan suggests an index for a subquery that scans a table for each row`() throws {
    try write(
      ["type": "delete"],
      where: "EXISTS (SELECT 1 FROM c AS o WHERE o.email = c.email AND o.v < c.v)"
    )
    #expect(try warnings().contains { $0.contains("scans all of \"o\" for each row of") })
    try TestDatabase.make(in: directory, "CREATE INDEX by_email ON c (email)")
    #expect(try !warnings().contains { $0.contains("scans all of") })
  }
}
