import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// What an undo says of rows that triggers and foreign keys change, against the rows.
@Suite(.timeLimit(.minutes(10))) struct UndoEffectTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private static let keys = [
    "id INTEGER PRIMARY KEY, e TEXT, n INTEGER", "id TEXT PRIMARY KEY, e TEXT, n INTEGER",
    "id TEXT PRIMARY KEY, e TEXT, n INTEGER|WITHOUT ROWID",
  ]

  /// What a trigger does to the row that it fires for.
  private static let bodies = [
    "UPDATE t SET e = lower(new.e) WHERE id = new.id", "UPDATE t SET n = n + 1 WHERE id = new.id",
    "UPDATE t SET e = NULL WHERE id = new.id AND new.n % 3 = 0",
    "DELETE FROM t WHERE id = new.id AND new.n % 5 = 0", "INSERT INTO log VALUES (new.id)",
    "UPDATE t SET e = new.e WHERE id = new.id", "SELECT RAISE(IGNORE) WHERE new.n % 7 = 0",
  ]

  /// The rows, with the columns that an undo restores.
  private func rows(_ path: String, ofDeletion isDeletion: Bool) throws -> Set<String> {
    let columns = "id || '|' || ifnull(e, 'NULL')" + (isDeletion ? " || '|' || n" : "")
    return Set(try TestDatabase.texts(path, "SELECT \(columns) FROM t"))
  }

  private func count(_ outcome: String, in output: String) throws -> Int {
    let pattern = try Regex("\(outcome): +([0-9]+)", as: (Substring, Substring).self)
    return try #require(Int(output.firstMatch(of: pattern)?.output.1 ?? "0"))
  }

  @Test func `a second undo is refused with the name of the first and changes no row`() throws {
    let path = try TestDatabase.makeNumbers(50, in: directory)
    let job = try JobText.update(["n": "n + 1"], adding: ["name": "job", "undo": true])
    try directory.write(job, to: "job.json")
    for _ in 1...2 { #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0) }
    #expect(try BatchProgram.run("undo", "job.json", in: directory).status == 0)
    #expect(try TestDatabase.value(path, "SELECT sum(n) FROM numbers") == .integer(50))
    try Connection(path: path).execute("UPDATE numbers SET n = 2 WHERE id = 7")
    let result = try BatchProgram.run("undo", "job.json", in: directory)
    #expect(result.status == 2)
    #expect(result.errors.contains(#/the last run of the job, .* was undone by run /#))
    #expect(result.errors.contains("to undo an earlier one, use --run: "), "\(result.errors)")
    #expect(try TestDatabase.value(path, "SELECT sum(n) FROM numbers") == .integer(51))
  }

  @Test(arguments: 0..<12)
  func `a row that a trigger prevents from being restored fails and is not counted as undone`(
    number: UInt64
  ) throws {
    let seed = UInt64(ProcessInfo.processInfo.environment["BATCH_SEED"] ?? "") ?? 7_000 + number
    print("undo and triggers: seed \(seed)")
    var generator = SeededGenerator(seed: seed)
    let key = Self.keys.randomElement(using: &generator)!.split(separator: "|")
    let isDeletion = Bool.random(using: &generator)
    let body = Self.bodies.randomElement(using: &generator)!
    let time = ["AFTER", "BEFORE"].randomElement(using: &generator)!
    let event = isDeletion ? "INSERT" : "UPDATE OF e"
    let condition = isDeletion ? "" : "WHEN new.e <> lower(new.e) OR new.n % 2 = 0"
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (\(key[0])) \(key.count > 1 ? key[1] : "")",
      "CREATE TABLE log (id)",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60)
      INSERT INTO t SELECT i * 3, CASE i % 3 WHEN 0 THEN 'Ada' ELSE 'bob' END || i, i FROM c
      """
    )
    try directory.write(
      """
      {"version": 1, "name": "j", "database": {"path": "test.db"},
       "source": {"entity": "t", "everything": true}, "chunk": {"size": 7}, "undo": true,
       "action": \(isDeletion ? #"{"type": "delete"}"# : #"{"type": "update", "set": {"e": "e || 'X'"}}"#)}
      """,
      to: "job.json"
    )
    let before = try rows(path, ofDeletion: isDeletion)
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    let left = try rows(path, ofDeletion: isDeletion)
    try TestDatabase.make(
      in: directory,
      "CREATE TRIGGER tr \(time) \(event) ON t \(condition) BEGIN \(body); END"
    )
    let undo = try BatchProgram.run("undo", "job.json", in: directory)
    let after = try rows(path, ofDeletion: isDeletion)
    let text = undo.output + undo.errors
    let context = "\(event) \(time) \(body): \(text)"
    if after == before {
      #expect(undo.status == 0, "\(context)")
    } else {
      // Whatever is not back is as the run left it, and failed.
      #expect(after.isSubset(of: before.union(left)), "\(context)")
      let missing = before.subtracting(after).count
      #expect(try count("failed", in: text) == missing, "\(context)")
      #expect(undo.status == 4, "\(context)")
    }
  }

  @Test(arguments: ["CASCADE", "SET NULL", "SET DEFAULT"], [false, true])
  func `rows that foreign keys change are reported before and after an undo`(
    action: String,
    isOwn: Bool
  ) throws {
    let parent = isOwn ? "t" : "p"
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE p (id INTEGER PRIMARY KEY, up INTEGER)",
      "CREATE TABLE t (id INTEGER PRIMARY KEY, up INTEGER DEFAULT NULL REFERENCES \(parent) ON DELETE \(action))",
      "INSERT INTO p VALUES (1, NULL), (2, NULL)",
      "INSERT INTO t VALUES (1, NULL), (2, 1), (3, \(isOwn ? 2 : 1)), (4, NULL)"
    )
    try directory.write(
      """
      {"version": 1, "name": "j", "database": {"path": "test.db", "foreignKeys": true},
       "source": {"entity": "\(parent)", "where": "id = 1"}, "undo": true, "action": {"type": "delete"}}
      """,
      to: "job.json"
    )
    func all() throws -> [String] {
      try TestDatabase.texts(path, "SELECT id || '|' || ifnull(up, '') FROM t ORDER BY id")
    }
    let before = try all()
    let plan = try BatchProgram.run("plan", "job.json", in: directory)
    let warnings = (plan.output + plan.errors).split(whereSeparator: \.isWhitespace)
      .joined(separator: " ")
    let words = [
      "CASCADE": "are deleted with it", "SET NULL": "lose the reference",
      "SET DEFAULT": "get the default reference",
    ]
    #expect(
      warnings.contains("rows of t that refer to a deleted row \(words[action]!)"),
      "\(warnings)"
    )
    #expect(warnings.contains("which batch undo leaves as it is"), "\(warnings)")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try all() != before)
    let undo = try BatchProgram.run("undo", "job.json", in: directory)
    #expect(try all() != before)
    #expect(undo.errors.contains("not undone: what the run may have written in "), "\(undo.errors)")
    #expect(undo.errors.contains("\"t\""), "\(undo.errors)")
  }

  @Test func `a run that empties a long log blames no other connection`() throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, b)",
      "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 6) INSERT INTO t SELECT i, randomblob(3000000) FROM c"
    )
    try directory.write(
      """
      {"version": 1, "name": "j", "database": {"path": "test.db"}, "throttle": {"maximumWAL": "1MB"},
       "source": {"entity": "t", "everything": true},
       "action": {"type": "update", "set": {"b": "randomblob(3000000)"}}}
      """,
      to: "job.json"
    )
    let run = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(run.status == 0)
    #expect(!(run.output + run.errors).contains("another connection"), "\(run.errors)")
  }

  @Test(arguments: ["job.batch.lock", "job.batch.control", "job.batch.history", "hook.sh"])
  func `an export refuses the name of a file that the run needs`(file: String) throws {
    try TestDatabase.makeNumbers(10, in: directory)
    try directory.write("#!/bin/sh\n", to: "hook.sh")
    try directory.write(
      """
      {"version": 1, "name": "job", "database": {"path": "test.db"}, "source": {"entity": "numbers"},
       "hooks": {"onFinish": ["./hook.sh"]},
       "action": {"type": "export", "file": "\(file)", "format": "csv", "overwrite": true}}
      """,
      to: "job.json"
    )
    let before = try directory.contents()
    try Refusal.expect(["run", "job.json"], in: directory, says: ["are the same file"])
    #expect(try directory.changes(since: before) == [])
  }
}
