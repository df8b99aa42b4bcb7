import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Exports of what changed since the last run.
@Suite struct IncrementTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(10, in: directory)
    try TestDatabase.make(
      in: directory,
      "CREATE INDEX numbers_n ON numbers (n)",
      "UPDATE numbers SET n = id"
    )
  }

  /// A job that exports by a column; the last part of the name is that of the run.
  private func write(
    _ column: String = "n",
    lag: String? = nil,
    file: String = "out-{runStartedAt}.csv",
    _ source: String = #""entity": "numbers""#,
    more: String = ""
  ) throws {
    try directory.write(
      """
      { "version": 1, "name": "job", "database": { "path": "test.db" },
        "source": { \(source),
          "since": { "column": "\(column)"\(lag.map { ", \"lag\": \($0)" } ?? "") } },
        "action": { "type": "export", "file": "\(file)", "format": "csv", "columns": ["id"] }\(more) }
      """,
      to: "job.json"
    )
  }

  /// Runs the job, and returns the keys in its file, and what it says.
  private func run(_ arguments: String...) throws -> (keys: [String], errors: String) {
    let before = try Set(directory.names())
    let result = try BatchProgram(["run", "job.json"] + arguments, in: directory).wait()
    try #require(result.status == 0, "\(result.errors)")
    let new = try directory.names().filter { $0.hasPrefix("out") && !before.contains($0) }
    let file = try directory.read(try #require(new.first))
    #expect(new.count == 1)
    let lines = String(decoding: file, as: UTF8.self).split(whereSeparator: \.isNewline)
    return (lines.dropFirst().map(String.init), result.errors)
  }

  private func change(_ statements: String...) throws {
    for statement in statements { try TestDatabase.make(in: directory, statement) }
  }

  @Test func `each run exports what changed since the last one, into a file of its own`() throws {
    try write()
    let first = try run()
    #expect(first.keys == (1...10).map(String.init))
    #expect(
      first.errors.contains("first increment, since no earlier one is recorded"),
      "\(first.errors)"
    )
    #expect(first.errors.contains("n up to 10 (key 10)"), "\(first.errors)")
    #expect(try run().keys == [])
    // An equal cursor with a greater key, and a greater one with a smaller key.
    try change(
      "INSERT INTO numbers (id, n) VALUES (11, 10)",
      "UPDATE numbers SET n = 11 WHERE id = 3"
    )
    let second = try run()
    #expect(second.keys == ["3", "11"])
    #expect(second.errors.contains("increment: n after 10 (key 10) up to 11 (key 3)"))
    #expect(try run().keys == [])
  }

  @Test func `plan, status and history show the range`() throws {
    try write()
    func plan() throws -> BatchProgram.Result {
      try BatchProgram.run("plan", "job.json", in: directory)
    }
    #expect(
      try plan().output.contains(
        "n up to 10 (key 10) (first increment: no earlier one is recorded)"
      )
    )
    _ = try run()
    try change("UPDATE numbers SET n = 20 WHERE id = 4")
    #expect(try plan().output.contains("increment  n after 10 (key 10) up to 20 (key 4)\n"))
    #expect(try plan().output.contains("matches    1 row in 1 chunk"))
    _ = try run()
    let status = try BatchProgram.run("status", "job.json", in: directory).output
    #expect(status.contains("increment: n after 10 (key 10) up to 20 (key 4)"), "\(status)")
    let history = try BatchProgram.run("history", "job.json", in: directory).output
    #expect(history.contains("n up to 10 (key 10)") && history.contains("n after 10"), "\(history)")
    let json = try BatchProgram.run("status", "job.json", "--json", in: directory).output
    let range = try #require(try JSONOutput.object(json)["increment"] as? [String: Any])
    #expect(range["column"] as? String == "n" && range["from"] as? String == "10")
    #expect(range["fromKey"] as? [String] == ["10"] && range["to"] as? String == "20")
    #expect(range["toKey"] as? [String] == ["4"])
  }

  @Test func `a row that changes during the run is left to the next one`() throws {
    try write(more: #", "chunk": { "size": 1 }, "throttle": { "flagFile": "hold" }"#)
    try directory.write("", to: "hold")
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    while let line = program.nextLine(), !line.contains("throttled") {}
    try change("UPDATE numbers SET n = 11 WHERE id = 7")
    try FileManager.default.removeItem(atPath: directory.file("hold"))
    let result = program.wait()
    #expect(result.status == 0)
    #expect(result.output.contains(#""noLongerMatching":1"#), "\(result.output)")
    #expect(try run().keys == ["7"])
  }

  @Test func `an unfinished increment that is set aside is done again from where it began`() throws
  {
    try write()
    _ = try run()
    try change("UPDATE numbers SET n = 20 + id WHERE id > 4")
    // It ends before its first row.
    let hours = Calendar.current.component(.hour, from: .now) < 12 ? "22:00-23:00" : "01:00-02:00"
    try write(more: #", "throttle": { "window": { "hours": "\#(hours)", "otherwise": "stop" } }"#)
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 3)
    try change("UPDATE numbers SET n = 40 WHERE id = 1")
    try write()
    // A plan has the range of the run that would be resumed.
    let plan = try BatchProgram.run("plan", "job.json", in: directory).output
    #expect(plan.contains("n after 10 (key 10) up to 30 (key 10)"), "\(plan)")
    #expect(try run("--fresh").keys == ["1"] + (5...10).map(String.init))
    // After a finished one, it starts over.
    let all = try run("--fresh")
    #expect(all.keys == (1...10).map(String.init))
    #expect(all.errors.contains("--fresh starts over"))
  }

  @Test func `no increment exports a NULL, and each run says so`() throws {
    try write()
    try change(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n)",
      "INSERT INTO t VALUES (1, NULL), (2, 5)"
    )
    try write("n", #""entity": "t""#)
    let words = "1 row has NULL in n, and no increment exports it"
    let plan = try BatchProgram.run("plan", "job.json", in: directory)
    #expect(plan.errors.contains("warning: \(words)"), "\(plan.errors)")
    #expect(
      plan.errors.contains(
        #"no index finds rows of "t" by n, so each run reads all of them: CREATE INDEX "t_n" ON "t" ("n")"#
      ),
      "\(plan.errors)"
    )
    let result = try run()
    #expect(result.keys == ["2"] && result.errors.contains(words))
    try change("DELETE FROM t", "INSERT INTO t VALUES (1, NULL)")
    #expect(try run().keys == [])
  }

  @Test func `an empty table has an empty first increment, and nothing is lost`() throws {
    try change("DELETE FROM numbers")
    try write()
    #expect(try run().keys == [])
    try change("INSERT INTO numbers (id, n) VALUES (1, -5)")
    #expect(try run().keys == ["1"])
  }

  @Test func `a number of values as lag leaves the largest ones to the next run`() throws {
    try write(lag: "2")
    #expect(try run().keys == (1...8).map(String.init))
    #expect(try run().keys == [])
    try change("INSERT INTO numbers (id, n) VALUES (12, 12)")
    #expect(try run().keys == ["9", "10"])
    // Without a lag again, nothing is left.
    try write()
    #expect(try run().keys == ["12"])
  }

  @Test func `a counter that is smaller than before is reported`() throws {
    try write()
    _ = try run()
    try change("DELETE FROM numbers WHERE id > 6")
    let result = try run()
    #expect(result.keys == [])
    #expect(
      result.errors.contains("n ends at 6 now, and the last increment at 10 (key 10)"),
      "\(result.errors)"
    )
  }

  @Test(
    arguments: [
      ("(1, 5), (2, 'five')", nil, "5 and 'five' are of different types"),
      ("(1, 5), (2, x'00')", nil, "5 and x'00' are of different types"),
      (
        "(1, '2026-01-01 10:00:00'), (2, 'soon')", "\"1m\"",
        "'soon' is no time from which lag can be told"
      ),
      (
        "(1, '2026-01-01 10:00:00'), (2, '2026-01-02T10:00:00')", "\"1m\"",
        "'2026-01-01 10:00:00' and '2026-01-02T10:00:00' are times in different forms"
      ),
      (
        "(1, '2026-01-01 10:00:00'), (2, '2026-01-02 10:00:00+02:00'), (3, '2026-01-03 10:00:00')",
        "\"1m\"",
        "'2026-01-02 10:00:00+02:00' and '2026-01-03 10:00:00' are times in different forms"
      ),
      (
        "(1, 1700000000), (2, 1700000000000)", "\"1m\"",
        "1700000000 and 1700000000000 are times in different forms"
      ),
      ("(1, 0), (2, 1700000000)", "\"1m\"", ""),
      (
        "(1, '2026-01-01 10:00:00')", nil,
        "'2026-01-01 10:00:00' is a time, which rows may get after"
      ),
      ("(1, 9e999)", nil, "comes after every other value"),
      ("(1, 1.5)", "3", "1.5 is no whole number, and lag is a number of values"),
    ] as [(String, String?, String)]
  )
  func `a column without one order is refused with one line`(
    rows: String,
    lag: String?,
    problem: String
  ) throws {
    try change("CREATE TABLE t (id INTEGER PRIMARY KEY, c)", "INSERT INTO t VALUES \(rows)")
    try write("c", lag: lag, #""entity": "t""#)
    if problem == "" {
      #expect(try run().keys == ["1", "2"])
      return
    }
    for command in ["plan", "run", "validate"] {
      try Refusal.expect(
        [command, "job.json"],
        in: directory,
        says: ["job.json:3:", problem, "source.since"]
      )
    }
  }

  @Test func `times that get another form are refused, and nothing is lost`() throws {
    try change(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, c)",
      "INSERT INTO t VALUES (1, '2026-01-01T10:00:00'), (9, '9999-01-01T00:00:00')"
    )
    try write("c", lag: "\"1s\"", #""entity": "t""#)
    _ = try run()
    // Before the end of the last increment in the order of texts, and after it in time.
    try change("INSERT INTO t SELECT 2, datetime('now')")
    try Refusal.expect(["run", "job.json"], in: directory, says: ["are times in different forms"])
    try change("UPDATE t SET c = strftime('%Y-%m-%dT%H:%M:%S', 'now', '+1 second') WHERE id = 2")
    let deadline = ContinuousClock.now + .seconds(30)
    var keys: [String] = []
    while keys.isEmpty, ContinuousClock.now < deadline { keys = try run().keys }
    #expect(keys == ["2"])
  }

  @Test func `an increment that would end before the last one is refused`() throws {
    try change(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, c)",
      "INSERT INTO t VALUES (1, unixepoch() - 60)"
    )
    try write("c", lag: "\"1s\"", #""entity": "t""#)
    #expect(try run().keys == ["1"])
    try write("c", lag: "\"10m\"", #""entity": "t""#)
    try Refusal.expect(
      ["run", "job.json"],
      in: directory,
      says: ["source.since", "the clock has gone back, or lag is longer now"]
    )
    let status = try BatchProgram.run("status", "job.json", in: directory).output
    #expect(status.contains("the clock has gone back"), "\(status)")
    try write("c", lag: "\"1s\"", #""entity": "t""#)
    #expect(try run().keys == [])
  }

  @Test func `other rows than those of the last increment are refused, and may start over`() throws
  {
    try write()
    _ = try run()
    try write("id")
    try Refusal.expect(
      ["run", "job.json"],
      in: directory,
      says: [#"the last increment was of other rows: since was "n", is now "id""#, "--fresh"]
    )
    #expect(try run("--fresh").keys.count == 10)
    #expect(try run().keys == [])
    // Another condition is a warning: rows that it leaves out now may be on purpose.
    try write("id", #""entity": "numbers", "where": "id <> 3""#)
    let result = try run()
    #expect(result.keys == [])
    #expect(
      result.errors.contains(
        #"where was not set, is now "id <> 3": rows before 10 (key 10) that match only now"#
      ),
      "\(result.errors)"
    )
  }

  @Test func `rows that fail are left out, and the next increment goes on behind them`() throws {
    try change(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, j TEXT)",
      "INSERT INTO t VALUES (1, 1, '1'), (2, 2, '{'), (3, 3, '3')",
      "CREATE VIEW v AS SELECT id, n, json_extract(j, '$') AS j FROM t"
    )
    try directory.write(
      """
      { "version": 1, "name": "job", "database": { "path": "test.db" },
        "source": { "entity": "v", "key": ["id"], "since": { "column": "n" } }, "skip": { "limit": 5 },
        "action": { "type": "export", "file": "out-{runID}.csv", "format": "csv" } }
      """,
      to: "job.json"
    )
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 4, "\(result.errors)")
    let failed = try BatchProgram.run("ids", "job.json", "--outcome", "failed", in: directory)
      .output
    #expect(failed == "2\n")
    try change("INSERT INTO t VALUES (4, 4, '4')")
    let next = try BatchProgram.run("run", "job.json", in: directory)
    #expect(next.status == 0 && next.output.contains("1 of 1 done"), "\(next.output)")
  }

  @Test func `cleanup and history leave the end of the last increment`() throws {
    try write(more: #", "history": 0"#)
    for id in 11...13 {
      _ = try run()
      try change("INSERT INTO numbers (id, n) VALUES (\(id), \(id))")
      let cleanup = try BatchProgram.run("cleanup", "job.json", "--history", in: directory)
      #expect(cleanup.status == 0, "\(cleanup.errors)")
    }
    #expect(try run().keys == ["13"])
  }

  @Test func `increments of a query, a text key and a collation are exact`() throws {
    try change(
      "CREATE TABLE t (k TEXT PRIMARY KEY COLLATE NOCASE, c TEXT COLLATE NOCASE)",
      "INSERT INTO t VALUES ('a', 'x'), ('B', 'X'), ('c', 'Y')"
    )
    try directory.write(
      """
      { "version": 1, "name": "job", "database": { "path": "test.db" },
        "source": { "query": "SELECT k AS id, c FROM t", "key": ["id"], "since": { "column": "c" } },
        "action": { "type": "export", "file": "out-{runID}.csv", "format": "csv", "columns": ["id"] } }
      """,
      to: "job.json"
    )
    #expect(try run().keys.sorted() == ["B", "a", "c"])
    try change("INSERT INTO t VALUES ('D', 'y'), ('e', 'Z')")
    #expect(try run().keys.sorted() == ["D", "e"])
    #expect(try run().keys == [])
  }

  @Test(arguments: [
    (
      #""entity": "numbers", "limit": 5"#, "out-{runID}.csv",
      "would leave out rows that no later run exports"
    ),
    (#""entity": "numbers", "recheck": "off""#, "out-{runID}.csv", "source.recheck"),
    (#""entity": "numbers""#, "out.csv", "needs an output of its own"),
    (#""entity": "numbers""#, "{runID}/out.csv", "only the last part of the path"),
    (
      #""entity": "numbers", "identifiers": "x.ids""#, "out-{runID}.csv", "contradicts source.since"
    ),
  ])
  func `a job that would lose rows or files is refused`(
    source: String,
    file: String,
    problem: String
  ) throws {
    try write(file: file, source)
    try Refusal.expect(["run", "job.json"], in: directory, says: [problem])
  }

  @Test func `only exports have increments`() throws {
    try directory.write(
      """
      { "version": 1, "name": "job", "database": { "path": "test.db" },
        "source": { "entity": "numbers", "everything": true, "since": { "column": "n" } },
        "action": { "type": "delete" } }
      """,
      to: "job.json"
    )
    try Refusal.expect(["run", "job.json"], in: directory, says: ["only an export can leave out"])
    try write("nn")
    try Refusal.expect(["run", "job.json"], in: directory, says: ["nn", "source.since"])
  }
}
