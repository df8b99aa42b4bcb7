import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Exports of the log of changes of an SQLite table.
@Suite struct ChangeLogTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(5, in: directory)
    try write()
  }

  private func write(
    _ source: String = #""entity": "numbers", "changes": "log""#,
    named name: String = "job",
    action: String = #""file": "out-{runStartedAt}.csv", "format": "csv", "columns": ["id", "n"]"#,
    more: String = ""
  ) throws {
    try directory.write(
      """
      { "version": 1, "name": "\(name)", "database": { "path": "test.db" },
        "source": { \(source) }, "action": { "type": "export", \(action) }\(more) }
      """,
      to: "\(name).json"
    )
  }

  @discardableResult
  private func track(_ arguments: String...) throws -> String {
    let result = try BatchProgram(["track"] + arguments, in: directory).wait()
    try #require(result.status == 0, "\(result.errors)")
    return result.output
  }

  /// Runs a job; returns the lines of its new file.
  @discardableResult
  private func run(_ arguments: String..., job: String = "job") throws -> [String] {
    let before = try Set(directory.names())
    let result = try BatchProgram(["run", "\(job).json"] + arguments, in: directory).wait()
    try #require(result.status == 0, "\(result.errors)")
    let new = try directory.names().filter { $0.hasPrefix("out") && !before.contains($0) }
    let file = try directory.read(try #require(new.first))
    return String(decoding: file, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
  }

  private func change(_ statements: String...) throws {
    for statement in statements { try TestDatabase.make(in: directory, statement) }
  }

  private func logged() throws -> Int {
    try TestDatabase.texts(path, #"SELECT id FROM "_batch_change_numbers""#).count
  }

  /// What a command says when it is refused.
  private func refusal(_ command: String = "plan", _ arguments: String...) throws -> String {
    let result = try BatchProgram([command, "job.json"] + arguments, in: directory).wait()
    #expect(result.status == 2, "\(result.output)\(result.errors)")
    return result.errors
  }

  // MARK: Runs

  @Test func `each run has the keys that changed, as they are now`() throws {
    #expect(try track("job.json").contains("made"))
    let all = ["id,n,_change"] + (1...5).map { "\($0),0,insert" }
    #expect(try run() == all)
    #expect(try run() == ["id,n,_change"])
    try change(
      "UPDATE numbers SET n = 7 WHERE id IN (2, 3)",
      "UPDATE numbers SET n = 8 WHERE id = 2",
      "DELETE FROM numbers WHERE id = 4",
      "INSERT INTO numbers (id, n) VALUES (6, 1), (7, 1)",
      "UPDATE numbers SET n = 2 WHERE id = 6",
      "DELETE FROM numbers WHERE id = 7",
      "UPDATE numbers SET id = 9 WHERE id = 5"
    )
    #expect(
      try run() == [
        "id,n,_change", "2,8,update", "3,7,update", "4,,delete", "5,,delete", "6,2,insert",
        "7,,delete", "9,0,insert",
      ]
    )
    #expect(try run("--fresh").count == 6)
    #expect(try run() == ["id,n,_change"])
  }

  @Test func `replaced rows are deleted, also those that another unique value removes`() throws {
    try change(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE COLLATE NOCASE, v)",
      "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1), (4, NULL, 1)"
    )
    try write(
      #""entity": "t", "changes": "log""#,
      action: #""file": "out-{runID}.csv", "format": "csv""#
    )
    try track("job.json")
    try run()
    try change("INSERT OR REPLACE INTO t VALUES (5, 'A', 2)")
    #expect(try run() == ["id,u,v,_change", "1,,,delete", "5,A,2,insert"])
    try change("UPDATE OR REPLACE t SET u = 'B' WHERE id = 3")
    #expect(try run() == ["id,u,v,_change", "2,,,delete", "3,B,1,update"])
    try change("INSERT INTO t VALUES (9, 'b', 3) ON CONFLICT (u) DO UPDATE SET v = 4")
    #expect(try run() == ["id,u,v,_change", "3,B,4,update"])
    try change("INSERT OR REPLACE INTO t VALUES (4, NULL, 5)")
    #expect(try run() == ["id,u,v,_change", "4,,5,insert"])
    try change("INSERT OR IGNORE INTO t VALUES (8, 'B', 5)")
    #expect(try run() == ["id,u,v,_change"])
    try change("UPDATE OR REPLACE t SET id = 5 WHERE id = 4")
    #expect(try run() == ["id,u,v,_change", "3,B,4,update", "4,,,delete", "5,,5,insert"])
  }

  @Test(arguments: ["ndjson", "parquet", "gzip", "folder"])
  func `every format has the column`(form: String) throws {
    try track("test.db", "--entity", "numbers")
    let action =
      switch form {
      case "gzip": #""file": "out-{runID}.csv.gz", "format": "csv", "compression": "gzip""#
      case "folder": #""folder": "out-{runID}", "format": "ndjson""#
      default: #""file": "out-{runID}.x", "format": "\#(form)""#
      }
    try write(action: action)
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    try change("DELETE FROM numbers WHERE id = 4", "UPDATE numbers SET n = 3 WHERE id = 1")
    let before = try Set(directory.names())
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    let name = try #require(
      try directory.names().first { $0.hasPrefix("out") && !before.contains($0) }
    )
    switch form {
    case "ndjson":
      let lines = String(decoding: try directory.read(name), as: UTF8.self).split(separator: "\n")
      #expect(lines.count == 2 && lines[0].hasSuffix(#""_change":"update"}"#), "\(lines)")
      #expect(
        lines.last?.hasPrefix(#"{"id":4,"#) == true && lines[1].hasSuffix(#""_change":"delete"}"#)
      )
    case "folder":
      #expect(
        try IncrementModel.text(name, in: directory)?.contains(#""_change":"delete""#) == true
      )
    default:
      #expect(try !directory.read(name).isEmpty)
    }
    #expect(result.errors.contains("2 "), "\(result.errors)")
  }

  @Test func `plan, status and history show the range`() throws {
    try track("job.json")
    func words(_ command: String) throws -> String {
      try BatchProgram.run(command, "job.json", in: directory).output
    }
    #expect(try words("plan").contains("(first increment: no earlier one is recorded)"))
    try run()
    try change("UPDATE numbers SET n = 1 WHERE id < 3")
    let plan = try words("plan")
    #expect(plan.contains("matches    2 rows"), "\(plan)")
    try run()
    for command in ["status", "history"] {
      let text = try words(command)
      #expect(text.contains("change from "), "\(text)")
    }
    let json = try BatchProgram.run("status", "job.json", "--json", in: directory).output
    let range = try #require(try JSONOutput.object(json)["increment"] as? [String: Any])
    let (from, to) = (range["from"] as? String, range["to"] as? String)
    #expect(range["column"] as? String == "change")
    #expect(from.flatMap { Int($0) }.map { $0 + 2 } == to.flatMap { Int($0) })
  }

  @Test func `the log keeps what one of its jobs has not exported`() throws {
    try track("job.json")
    try write(named: "slow", action: #""file": "out-slow-{runID}.csv", "format": "csv""#)
    try run()
    try run(job: "slow")
    try change("UPDATE numbers SET n = 1")
    #expect(try run().count == 6)
    try change("UPDATE numbers SET n = 2 WHERE id = 1")
    #expect(try run().count == 2)
    #expect(try logged() == 6)
    let status = try track("job.json", "--status")
    #expect(status.contains("job       job: 1 change"), "\(status)")
    #expect(status.contains("job       slow: 6 changes"), "\(status)")
    #expect(try run(job: "slow").count == 6)
    try run(job: "slow")
    try run()
    #expect(try logged() == 0)
    try change("UPDATE numbers SET n = 3")
    try track("job.json", "--forget", "slow")
    try run()
    try run()
    #expect(try logged() == 0)
    let result = try BatchProgram.run("run", "slow.json", in: directory)
    #expect(
      result.status == 2 && result.errors.contains("or the job was forgotten"),
      "\(result.errors)"
    )
  }

  @Test func `many changes are removed in bounded transactions`() throws {
    try track("job.json")
    try run()
    try change(
      "INSERT INTO numbers (n) WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 5000) SELECT i FROM c"
    )
    #expect(try run().count == 5_001)
    #expect(try logged() == 5_000)
    #expect(try run().count == 1)
    #expect(try logged() == 0)
  }

  @Test func `a rehearsal exports all rows, and is no reader of the log`() throws {
    try track("job.json")
    let result = try BatchProgram.run("rehearse", "job.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try !track("job.json", "--status").contains("job  "))
  }

  // MARK: Tracking

  @Test func `tracking twice changes nothing, and stopping leaves nothing`() throws {
    let before = try TestDatabase.texts(path, "SELECT name FROM sqlite_schema ORDER BY name")
    #expect(try track("job.json").contains("made"))
    try run()
    try change("UPDATE numbers SET n = 1 WHERE id = 1")
    #expect(try !track("job.json").contains("made"))
    #expect(try run() == ["id,n,_change", "1,1,update"])
    #expect(try track("job.json", "--stop").contains("not logged any more"))
    let after = try TestDatabase.texts(path, "SELECT name FROM sqlite_schema ORDER BY name")
    #expect(before == after)
    #expect(try track("test.db", "--entity", "numbers", "--stop").contains("not logged any more"))
  }

  @Test func `odd names, and a stop after the table is gone`() throws {
    let name = #"o"d'd `t` %;--"#
    let (quoted, column) = ("\"o\"\"d'd `t` %;--\"", #""k""y""#)
    try change(
      "CREATE TABLE \(quoted) (\(column) TEXT, \"ä b\" INTEGER UNIQUE, \"select\", PRIMARY KEY (\(column), \"ä b\")) WITHOUT ROWID",
      "INSERT INTO \(quoted) VALUES ('x', 1, 2), ('y', 2, 2)"
    )
    let json = String(decoding: try JSONEncoder().encode(name), as: UTF8.self)
    try write(
      #""entity": \#(json), "changes": "log""#,
      action: #""file": "out-{runID}.csv", "format": "csv""#
    )
    try track("job.json")
    #expect(try run().count == 3)
    try change(
      "INSERT OR REPLACE INTO \(quoted) VALUES ('z', 1, 3)",
      "DELETE FROM \(quoted) WHERE \(column) = 'y'"
    )
    #expect(
      try run() == [#""k""y","ä b",select,_change"#, "x,1,,delete", "y,2,,delete", "z,1,3,insert"]
    )
    try change("DROP TABLE \(quoted)")
    try track("test.db", "--entity", name, "--stop")
    #expect(
      try TestDatabase.texts(path, "SELECT name FROM sqlite_schema WHERE name LIKE '%batch%'") == []
    )
  }

  @Test func `an index that REPLACE may use unseen is reported`() throws {
    try change("CREATE UNIQUE INDEX part ON numbers (n) WHERE n > 5")
    let result = try BatchProgram.run("track", "job.json", in: directory)
    #expect(result.errors.contains("by the unique index part is not logged"), "\(result.errors)")
  }

  // MARK: Refusals

  @Test func `a table that is not tracked is refused with the command`() throws {
    let words = try refusal()
    #expect(words.contains(#"the changes of "numbers" are not logged"#), "\(words)")
    #expect(words.contains("test.db --entity numbers"), "\(words)")
    #expect(words.contains("source.changes"), "\(words)")
    #expect(try BatchProgram.run("track", "job.json", "--status", in: directory).status == 2)
  }

  @Test func `a trigger that is gone is refused, and so are jobs that have missed changes`() throws
  {
    try track("job.json")
    try run()
    try change("DROP TRIGGER \"_batch_change_numbers_update\"", "UPDATE numbers SET n = 1")
    #expect(try refusal("run").contains("a trigger or an index that logs the changes"))
    #expect(try track("job.json").contains("made"))
    #expect(try refusal("run").contains("was made again since the last increment"))
    #expect(try run("--fresh").count == 6)
    try change("UPDATE numbers SET n = 2 WHERE id = 2")
    #expect(try run() == ["id,n,_change", "2,2,update"])
  }

  @Test func `another key is refused`() throws {
    try change("CREATE TABLE t (a INTEGER NOT NULL, b TEXT, PRIMARY KEY (a)) WITHOUT ROWID")
    try write(
      #""entity": "t", "changes": "log""#,
      action: #""file": "out-{runID}.csv", "format": "csv""#
    )
    try track("job.json")
    try run()
    try change(
      "DROP TABLE t",
      "CREATE TABLE t (a INTEGER, b TEXT NOT NULL, PRIMARY KEY (b)) WITHOUT ROWID"
    )
    let words = try refusal("run")
    #expect(words.contains(#"the key of "t" is not that of its logged changes"#), "\(words)")
    try track("job.json")
    #expect(try run("--fresh").count == 1)
  }

  @Test func `changes that were removed by hand are missed`() throws {
    try track("job.json")
    try run()
    try change("UPDATE numbers SET n = 1 WHERE id = 1")
    try run()
    try change("DELETE FROM \"_batch_change_numbers\"")
    // What was removed was exported.
    #expect(try run() == ["id,n,_change"])
    try change("UPDATE numbers SET n = 1 WHERE id = 2", "DELETE FROM \"_batch_change_numbers\"")
    let words = try refusal("run")
    #expect(words.contains("changes in between were removed"), "\(words)")
    #expect(words.contains("--fresh"))
    #expect(try run("--fresh").count == 6)
  }

  @Test func `a lane that sets off no trigger makes the jobs start over`() async throws {
    try track("job.json")
    try run()
    var configuration = WriterConfiguration()
    configuration.runsTriggers = false
    let lane = try await Store(path: path).makeWriterLane(configuration)
    await lane.close()
    let words = try refusal("run")
    #expect(words.contains("or not logged"), "\(words)")
    #expect(try run("--fresh").count == 6)
    #expect(try run().count == 1)
  }

  @Test func `an older copy of the database is refused`() throws {
    try track("job.json")
    try run()
    let copy = FileManager.default.contents(atPath: path)
    try change("UPDATE numbers SET n = 1 WHERE id = 2")
    try run()
    try #require(copy).write(to: URL(fileURLWithPath: path))
    let words = try refusal("run")
    #expect(words.contains("an older copy of the database was restored"), "\(words)")
  }

  @Test(arguments: [
    (#""since": { "column": "n" }"#, "source.since"), (#""where": "n > 1""#, "source.where"),
    (#""orderBy": ["n"]"#, "source.orderBy"), (#""limit": 3"#, "source.limit"),
    (#""key": ["n"]"#, "source.key"), (#""recheck": "skip""#, "source.recheck"),
    (#""identifiers": "a.ids""#, "source.identifiers"),
  ])
  func `what changes excludes is refused`(source: String, path: String) throws {
    try write(#""entity": "numbers", "changes": "log", \#(source)"#)
    let words = try refusal("validate")
    #expect(words.contains("\(path): "), "\(words)")
  }

  @Test func `other actions, and an output that is not the run's own, are refused`() throws {
    try directory.write(
      """
      { "version": 1, "name": "job", "database": { "path": "test.db" },
        "source": { "entity": "numbers", "changes": "log", "everything": true }, "action": { "type": "delete" } }
      """,
      to: "job.json"
    )
    #expect(try refusal("validate").contains("only an export can leave out"))
    try write(action: #""file": "out.csv", "format": "csv""#)
    #expect(
      try refusal("validate").contains("a job with source.changes needs an output of its own")
    )
  }

  @Test func `what cannot be tracked is refused`() throws {
    try change(
      "CREATE VIEW v AS SELECT * FROM numbers",
      "CREATE TABLE nokey (a)",
      "CREATE TABLE taken (a INTEGER PRIMARY KEY, _change)"
    )
    for (table, reason) in [
      ("v", "is a view, and cannot be tracked"), ("nokey", "has no primary key"),
      ("taken", "has a column _change, and cannot be tracked"), ("none", "there is no entity"),
    ] {
      let result = try BatchProgram.run("track", "test.db", "--entity", table, in: directory)
      #expect(result.status == 2 && result.errors.contains(reason), "\(result.errors)")
    }
    #expect(try BatchProgram.run("track", "test.db", in: directory).status == 64)
    #expect(
      try BatchProgram.run("track", "job.json", "--stop", "--status", in: directory).status == 64
    )
  }

  @Test func `a job that exported since a column goes on with --fresh`() throws {
    try change("UPDATE numbers SET n = id")
    try write(
      #""entity": "numbers", "since": { "column": "n" }"#,
      action: #""file": "out-{runID}.csv", "format": "csv""#
    )
    try run()
    try write()
    try track("job.json")
    #expect(try refusal("run").contains("the last increment was of other rows"))
    #expect(try run("--fresh").count == 6)
  }
}
