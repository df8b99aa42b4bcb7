import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// What scripts read: JSON, counts, exit statuses.
@Suite struct OutputTests {
  private let directory: TemporaryDirectory
  private let path: String

  /// The fields of a summary.
  private static let summaryFields: Set<String> = [
    "job", "run", "state", "total", "done", "outcomes", "chunks", "resumedAt", "elapsedSeconds",
    "identifiersPerSecond", "etaSeconds", "peakResidentBytes", "peakWALBytes", "checkpoint",
    "stopReason", "throttle", "throttledSeconds",
  ]

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(2500, in: directory)
    try directory.write(JobText.update(), to: "job.json")
  }

  private func succeed(
    _ arguments: String...,
    at location: SourceLocation = #_sourceLocation
  ) throws -> String {
    let result = try BatchProgram(arguments, in: directory).wait()
    #expect(result.status == 0, "\(arguments): \(result.errors)", sourceLocation: location)
    return result.output
  }

  @Test func `run --json writes events and the summary last`() throws {
    let lines = try JSONOutput.lines(succeed("run", "job.json", "--json"))
    #expect(lines.first?["event"] as? String == "started")
    let last = try #require(lines.last)
    #expect(last["event"] as? String == "finished")
    #expect(Self.summaryFields.subtracting(last.keys) == [])
    #expect(last["state"] as? String == "completed")
    #expect(last["job"] as? String == "job")
    #expect(last["total"] as? Int == 2500)
    #expect(last["done"] as? Int == 2500)
    #expect(last["chunks"] as? Int == 3)
    #expect(last["checkpoint"] as? String == "job.batch")
    #expect(last["etaSeconds"] is NSNull)
    #expect(last["throttle"] is NSNull)
    #expect(UUID(uuidString: last["run"] as? String ?? "") != nil)
    let outcomes = try #require(last["outcomes"] as? [String: Int])
    #expect(
      outcomes == [
        "succeeded": 2500, "unchanged": 0, "vanished": 0, "noLongerMatching": 0, "failed": 0,
      ]
    )
    for field in ["peakResidentBytes", "peakWALBytes", "identifiersPerSecond"] {
      #expect(last[field] as? Int ?? 0 > 0, "\(field)")
    }
  }

  @Test func `status --json prints the summary of the run`() throws {
    try Refusal.expect(["status", "job.json"], in: directory, says: ["has no checkpoint"])
    try Refusal.expect(["status", "job.json", "--json"], in: directory, says: ["run it first"])
    var last = try #require(JSONOutput.lines(succeed("run", "job.json", "--json")).last)
    last["event"] = nil
    var status = try JSONOutput.object(succeed("status", "job.json", "--json"))
    #expect(status.removeValue(forKey: "next") as? String == "begin")
    #expect(status.removeValue(forKey: "nextWords") as? String == "starts a new run")
    #expect(status.removeValue(forKey: "undoneBy") is NSNull)
    #expect(status.removeValue(forKey: "warnings") is [String])
    #expect((status.removeValue(forKey: "actions") as? [Any])?.count == 1)
    #expect(Set(status.keys) == Set(last.keys))
    // What is measured differs from one look to the next.
    for field in [
      "elapsedSeconds", "processSeconds", "identifiersPerSecond", "peakResidentBytes",
      "peakWALBytes",
    ] {
      status[field] = nil
      last[field] = nil
    }
    #expect(NSDictionary(dictionary: status) == NSDictionary(dictionary: last))
    #expect(try succeed("status", "job.json").hasPrefix("job: completed, 2,500 of 2,500 done"))
  }

  /// A folder in which the job was done, with a list of its rows, and the files in it; made once, and copied.
  ///
  /// The checkpoint names the database of this folder, so a command in a copy may open it and have more files beside it.
  private static let done = Result {
    let tests = try OutputTests()
    _ = try tests.succeed("run", "job.json")
    _ = try tests.succeed("ids", "job.json", "--output", "all.ids")
    try tests.directory.write("1\n2\n", to: "keys.txt")
    return (folder: tests.directory, names: try tests.directory.names())
  }

  @Test(
    .enabled(if: FileManager.default.fileExists(atPath: "/dev/full"), "there is no full device"),
    arguments: [
      "run job.json", "run job.json --json", "retry-failed job.json", "validate job.json",
      "plan job.json", "plan job.json --json", "status job.json", "status job.json --json",
      "ids job.json", "ids job.json --count", "ids job.json --format json",
      "ids union all.ids", "ids split 2 all.ids --output part.ids",
      "ids from keys.txt --database test.db --entity numbers", "inspect job.batch",
      "inspect all.ids --json", "doctor test.db", "doctor test.db --json", "schema test.db",
      "schema test.db --json", "cleanup job.json",
    ]
  )
  func `a result that cannot be written is an error`(command: String) throws {
    let done = try Self.done.get()
    for name in done.names {
      try? FileManager.default.removeItem(atPath: directory.file(name))
      try FileManager.default.copyItem(atPath: done.folder.file(name), toPath: directory.file(name))
    }
    let process = Process()
    let errors = Pipe()
    process.executableURL = URL(fileURLWithPath: BatchProgram.path)
    process.arguments = command.components(separatedBy: " ")
    process.currentDirectoryURL = URL(fileURLWithPath: directory.path)
    process.standardOutput = FileHandle(forWritingAtPath: "/dev/full")
    process.standardError = errors
    try process.run()
    let said = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 6, "\(said)")
    let expected = "error: standard output: the results cannot be written: No space left on device"
    #expect(said.contains(expected), "\(said)")
    // Done work stays done.
    if command.hasPrefix("run") {
      #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["2"])
    }
  }

  @Test func `only the readable summary goes to standard output`() throws {
    let loud = try BatchProgram.run("run", "job.json", in: directory)
    #expect(loud.output.hasPrefix("job: completed, 2,500 of 2,500 done"))
    #expect(loud.errors == "job: 2,500 identifiers selected\n")
    let quiet = try BatchProgram.run("run", "job.json", "--quiet", in: directory)
    #expect(quiet.status == 0)
    #expect(quiet.output + quiet.errors == "")
    #expect(try succeed("validate", "job.json") == "job: valid (update of numbers)\n")
    #expect(try succeed("validate", "job.json", "--quiet") == "")
  }

  @Test func `rows that changed since the selection are counted separately`() throws {
    // The trigger takes away and changes rows of later chunks.
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER meddle AFTER UPDATE ON numbers WHEN old.id = 1 BEGIN
        DELETE FROM numbers WHERE id > 2490;
        UPDATE numbers SET label = NULL WHERE id BETWEEN 2000 AND 2004;
      END
      """
    )
    let job = try JobText.update(
      where: "label IS NOT NULL",
      adding: ["chunk": ["size": 100], "workers": 1]
    )
    try directory.write(job, to: "job.json")
    let last = try #require(JSONOutput.lines(succeed("run", "job.json", "--json")).last)
    let outcomes = try #require(last["outcomes"] as? [String: Int])
    #expect(outcomes["vanished"] == 10)
    #expect(outcomes["noLongerMatching"] == 5)
    #expect(outcomes["succeeded"] == 2485)
    #expect(last["done"] as? Int == 2500)
  }

  @Test func `a run over an empty selection is complete`() throws {
    try directory.write(JobText.update(where: "id < 0"), to: "job.json")
    let last = try #require(JSONOutput.lines(succeed("run", "job.json", "--json")).last)
    #expect(last["total"] as? Int == 0)
    #expect(last["state"] as? String == "completed")
    #expect(try succeed("ids", "job.json", "--count") == "0\n")
  }

  @Test func `schema shows entities, keys and attributes`() throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE pairs (a TEXT, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID",
      "CREATE VIEW shown AS SELECT id, n FROM numbers",
      "CREATE TABLE keyless (x)"
    )
    let schema = try JSONOutput.object(succeed("schema", "test.db", "--json"))
    #expect(UUID(uuidString: schema["store"] as? String ?? "") != nil)
    let entities = try #require(schema["entities"] as? [[String: Any]])
    #expect(entities.map { $0["name"] as? String } == ["keyless", "numbers", "pairs", "shown"])
    let numbers = entities[1]
    #expect(numbers["table"] as? String == "numbers")
    #expect(numbers["count"] as? Int == 2500)
    let keys = try #require(numbers["keys"] as? [[String: Any]])
    #expect(keys.map { $0["name"] as? String } == ["id"])
    #expect(keys.map { $0["type"] as? String } == ["INTEGER"])
    let attributes = try #require(numbers["attributes"] as? [[String: Any]])
    #expect(attributes.map { $0["name"] as? String } == ["id", "n", "label"])
    for field in ["name", "column", "type", "optional"] { #expect(attributes[1][field] != nil) }
    #expect(attributes.map { $0["optional"] as? Bool } == [true, false, true])
    let pairs = entities[2]["keys"] as? [[String: Any]]
    #expect(pairs?.map { $0["name"] as? String } == ["a", "b"])
    #expect((entities[0]["keys"] as? [Any])?.isEmpty == true)
    let text = try succeed("schema", "test.db")
    #expect(text.contains("numbers: 2,500 rows"))
    #expect(text.contains("shown (view)"))
  }

  @Test func `schema shows the indexes, foreign keys and triggers of each table`() throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE lines (
        a TEXT, b INTEGER REFERENCES numbers ON DELETE CASCADE, c UNIQUE,
        PRIMARY KEY (a, b), FOREIGN KEY (a, b) REFERENCES lines (a, b) ON UPDATE SET NULL)
      """,
      "CREATE INDEX \"by c\" ON lines (c DESC, lower(a)) WHERE b > 0",
      """
      CREATE TRIGGER "update" /* DELETE */ AFTER UPDATE OF a, b
        ON lines WHEN new.a = 'INSERT' BEGIN SELECT 1; SELECT 2; END
      """,
      "CREATE TRIGGER gone DELETE ON lines BEGIN SELECT 1; END",
      "CREATE VIEW shown AS SELECT id, n FROM numbers",
      "CREATE TRIGGER [on] INSTEAD OF INSERT ON shown BEGIN SELECT 1; END"
    )
    let text = try succeed("schema", "test.db")
    let lines = """
        unique  (c)
        index   by c (c desc, an expression), of some rows
        refers  b to numbers, on delete cascade
        refers  a, b to lines (a, b), on update set null
        trigger gone, BEFORE DELETE
        trigger update, AFTER UPDATE OF a, b
      """
    #expect(text.contains("\n\(lines)\n"), "\(text)")
    #expect(text.contains("\n  trigger on, INSTEAD OF INSERT\n"), "\(text)")
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(text)")

    let schema = try JSONOutput.object(succeed("schema", "test.db", "--json"))
    let entities = try #require(schema["entities"] as? [[String: Any]])
    let table = try #require(entities.first { $0["name"] as? String == "lines" })
    let indexes = try #require(table["indexes"] as? [[String: Any]])
    #expect(indexes.map { $0["origin"] as? String } == ["unique", "primaryKey", "created"])
    #expect((indexes[2]["sql"] as? String)?.hasPrefix("CREATE INDEX") == true)
    let keys = try #require(table["foreignKeys"] as? [[String: Any]])
    #expect(keys.map { $0["targets"] as? [String] } == [[], ["a", "b"]])
    let triggers = try #require(table["triggers"] as? [[String: Any]])
    #expect(triggers.map { $0["event"] as? String } == ["BEFORE DELETE", "AFTER UPDATE OF a, b"])
    #expect((triggers[0]["sql"] as? String)?.hasSuffix("END") == true)
  }

  @Test func `inspect shows a checkpoint and a list`() throws {
    _ = try succeed("run", "job.json")
    _ = try succeed("ids", "job.json", "--output", "all.ids")
    let checkpoint = try JSONOutput.object(succeed("inspect", "job.batch", "--json"))
    #expect(checkpoint["entity"] as? String == "numbers")
    #expect(checkpoint["count"] as? Int == 2500)
    #expect(checkpoint["isSorted"] as? Bool == true)
    let run = try #require(checkpoint["run"] as? [String: Any])
    #expect(run["state"] as? String == "completed")
    #expect(run["done"] as? Int == 2500)
    let list = try JSONOutput.object(succeed("inspect", "all.ids", "--json"))
    #expect(list["run"] == nil || list["run"] is NSNull)
    #expect(list["store"] as? String == checkpoint["store"] as? String)
    let text = try succeed("inspect", "job.batch")
    #expect(text.contains("identifiers") && text.contains("2,500"))
    #expect(text.contains("every block, header and record is intact"))
  }

  // MARK: Plans

  @Test func `a plan shows everything and writes nothing`() throws {
    _ = try succeed("run", "job.json")
    let job = try JobText.update(["n": "n * 10", "label": "NULL"], where: "label LIKE '%0'")
    try directory.write(job, to: "job.json")
    let before = try directory.contents()
    let plan = try JSONOutput.object(succeed("plan", "job.json", "--json", "--chunk-size", "100"))
    #expect(plan["matches"] as? Int == 250)
    #expect(plan["chunks"] as? Int == 3)
    let sql = try #require(plan["sql"] as? [String: String])
    #expect(sql["fetch"]?.hasPrefix("SELECT `id` FROM `numbers`") == true)
    #expect(sql["apply"]?.hasPrefix("UPDATE `numbers` SET") == true)
    #expect(plan["fullScan"] as? Bool == true)
    #expect((plan["queryPlan"] as? [String])?.first?.hasPrefix("SCAN") == true)
    let warnings = try #require(plan["warnings"] as? [String])
    #expect(warnings.contains { $0.contains("every row of \"numbers\"") })
    let sample = try #require(plan["sample"] as? [[String: Any]])
    #expect(sample.count == 5)
    #expect(sample[0]["identifier"] as? String == "10")
    #expect((sample[0]["before"] as? [String: Any])?["n"] as? Int == 1)
    #expect((sample[0]["after"] as? [String: Any])?["n"] as? Int == 10)
    #expect((sample[0]["after"] as? [String: Any])?["label"] is NSNull)
    let text = try BatchProgram.run("plan", "job.json", in: directory)
    #expect(text.status == 0)
    #expect(text.errors.contains("warning: where reads every row"))
    #expect(try directory.changes(since: before) == [])
  }

  @Test func `a plan warns of triggers, references and full scans`() throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE children (id INTEGER PRIMARY KEY, number REFERENCES numbers)",
      "CREATE TRIGGER noted AFTER DELETE ON numbers BEGIN SELECT 1; END"
    )
    try directory.write(JobText.delete(where: "id < 10"), to: "job.json")
    let plan = try JSONOutput.object(succeed("plan", "job.json", "--json"))
    let warnings = try #require(plan["warnings"] as? [String])
    #expect(warnings.contains { $0.contains("journal mode changes from delete to wal") })
    #expect(warnings.contains { $0.contains("triggers") && $0.contains("noted") })
    #expect(warnings.contains { $0.contains("children") })
    #expect(plan["fullScan"] as? Bool == false)
  }

  // MARK: The command line

  @Test(arguments: [
    ["run"], ["run", "job.json", "--workers", "0"], ["run", "job.json", "--workers", "-1"],
    ["run", "job.json", "--workers", "two"], ["run", "job.json", "--chunk-size", "0"],
    ["run", "job.json", "--nonsense"], ["run", "job.json", "surplus"], ["nonsense"],
    ["plan", "job.json", "--chunk-size", "-3"], ["ids", "job.json", "--outcome", "some"],
    ["ids", "job.json", "--format", "xml"], ["ids", "job.json", "--count", "--output", "x"],
    ["inspect"], ["schema"], ["run", "job.json", "--param"],
  ])
  func `an invalid command line has exit status 64`(arguments: [String]) throws {
    let before = try directory.contents()
    let result = try BatchProgram(arguments, in: directory).wait()
    #expect(result.status == 64, "\(arguments): \(result.errors)")
    #expect(result.output == "")
    #expect(result.errors.hasPrefix("error: "))
    #expect(try directory.changes(since: before) == [])
  }

  @Test func `every command has help and shell completions`() throws {
    #expect(try succeed("--version").split(separator: ".").count == 3)
    let commands = ["validate", "plan", "run", "status", "ids", "inspect", "schema"]
    let help = try succeed("--help")
    for command in commands {
      #expect(help.contains("  \(command)"))
      let own = try succeed(command, "--help")
      #expect(own.hasPrefix("OVERVIEW: "), "\(command)")
      #expect(own.contains("USAGE: batch \(command)"), "\(command)")
      #expect(own.contains("OPTIONS:"), "\(command)")
    }
    for shell in ["bash", "zsh", "fish"] {
      let script = try succeed("--generate-completion-script", shell)
      for command in commands { #expect(script.contains(command), "\(shell)") }
    }
  }

  @Test(arguments: [[:], ["NO_COLOR": "1"], ["TERM": "dumb"], ["TERM": "xterm-256color"]])
  func `output to a pipe has no colours`(environment: [String: String]) throws {
    for arguments in [["run", "job.json"], ["plan", "job.json"], ["run", "none.json"]] {
      let program = try BatchProgram(arguments, in: directory, environment: environment)
      let result = program.wait()
      #expect(!result.errors.contains("\u{1b}") && !result.output.contains("\u{1b}"))
      #expect(!result.errors.contains("\r"))
    }
  }
}
