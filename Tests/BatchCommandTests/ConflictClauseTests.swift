import BatchTestSupport
import Foundation
import Testing

/// Tables whose constraints replace or ignore rows, and triggers that ignore them: no row may be lost, or be left as it
/// is, without a word.
@Suite struct ConflictClauseTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("test.db") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  private static let clauses = ["REPLACE", "IGNORE", "FAIL", "ROLLBACK", "ABORT", ""]

  /// Thirty rows, of which each has the `u` that another gets.
  private func makeTable(_ clause: String, trigger: String? = nil) throws {
    let conflict = clause.isEmpty ? "" : "ON CONFLICT \(clause)"
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, u UNIQUE \(conflict), n INTEGER NOT NULL DEFAULT 0)",
      """
      WITH RECURSIVE i(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM i WHERE k < 30)
      INSERT INTO t (id, u) SELECT k, k FROM i
      """
    )
    if let trigger { try TestDatabase.make(in: directory, trigger) }
  }

  private func run(_ action: [String: Any], where condition: String = "id > 0") throws -> [String:
    Int]
  {
    let job: [String: Any] = [
      "version": 1, "name": "job", "database": ["path": "test.db"],
      "source": ["entity": "t", "where": condition], "action": action,
      "skip": ["limit": 30], "undo": true,
      // One worker does the chunks in their order.
      "chunk": ["size": 4], "workers": 1,
    ]
    let text = try JSONSerialization.data(withJSONObject: job)
    try directory.write(String(decoding: text, as: UTF8.self), to: "job.json")
    _ = try BatchProgram.run("run", "job.json", in: directory)
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory)
    return try #require(try JSONOutput.object(status.output)["outcomes"] as? [String: Int])
  }

  private func texts(_ sql: String) throws -> [String] { try TestDatabase.texts(path, sql) }

  @Test(arguments: clauses, [false, true])
  func `an update that violates a unique constraint fails its row and loses no other`(
    clause: String,
    isTransform: Bool
  ) throws {
    try makeTable(clause)
    // Rows from 11 on get what rows from 1 on have: all collide, but for those whose rival has moved away.
    let command =
      #"while read -r l; do k=${l#*\"id\":}; k=${k%%[,\}]*}; echo "{\"id\":$k,\"u\":$((k - 10))}"; done"#
    let outcomes = try run(
      isTransform
        ? [
          "type": "transform", "columns": ["id"], "writes": ["u"],
          "command": ["sh", "-c", command],
        ] : ["type": "update", "set": ["u": "u - 10"]],
      where: "id > 10 AND id <= 20"
    )
    #expect(try texts("SELECT count(*) FROM t") == ["30"])
    #expect(outcomes["failed"] == 10 && outcomes["succeeded"] == 0, "\(outcomes)")
    #expect(try texts("SELECT count(*) FROM t WHERE u = id") == ["30"])
  }

  @Test(arguments: clauses)
  func `a copy in an archive replaces no other row`(clause: String) throws {
    try makeTable("")
    let conflict = clause.isEmpty ? "" : "ON CONFLICT \(clause)"
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE kept (id INTEGER, u, n UNIQUE \(conflict))",
      "UPDATE t SET n = id % 7"
    )
    let outcomes = try run(["type": "delete", "archive": "kept"])
    let kept = try #require(try texts("SELECT count(*) FROM kept").first.flatMap { Int($0) })
    let left = try #require(try texts("SELECT count(*) FROM t").first.flatMap { Int($0) })
    #expect(kept == 7 && left == 23)
    #expect(outcomes["succeeded"] == kept && outcomes["failed"] == left, "\(outcomes)")
  }

  @Test(arguments: ["update", "delete", "archive"])
  func `the error of a row that a trigger ignores names the trigger`(action: String) throws {
    let event = action == "update" ? "UPDATE" : "DELETE"
    try makeTable(
      "",
      trigger: """
        CREATE TRIGGER guard BEFORE \(event) ON t WHEN old.id % 3 = 0
        BEGIN SELECT RAISE ( IGNORE); END
        """
    )
    let job: [String: Any] =
      switch action {
      case "update": ["type": "update", "set": ["n": "n + 1"]]
      case "delete": ["type": "delete"]
      default: ["type": "delete", "archive": ["entity": "kept", "create": true]]
      }
    let outcomes = try run(job)
    #expect(outcomes["succeeded"] == 20 && outcomes["failed"] == 10, "\(outcomes)")
    let changed = action == "update" ? "SELECT sum(n) FROM t" : "SELECT 30 - count(*) FROM t"
    #expect(try texts(changed) == ["20"])
    let reasons = try BatchProgram.run(
      "ids",
      "job.json",
      "--outcome",
      "failed",
      "--reasons",
      in: directory
    )
    #expect(reasons.output.contains("guard"), "\(reasons.output)")
  }

  @Test func `a row that no longer matches and one that a trigger ignores have different outcomes`()
    throws
  {
    try makeTable(
      "",
      trigger: """
        CREATE TRIGGER guard BEFORE UPDATE ON t WHEN old.id = 3 BEGIN SELECT RAISE(IGNORE); END
        """
    )
    try TestDatabase.make(
      in: directory,
      // The first chunk changes a row of the second.
      """
      CREATE TRIGGER ahead AFTER UPDATE OF n ON t WHEN new.id = 1
      BEGIN UPDATE t SET u = NULL WHERE id = 10; END
      """
    )
    let outcomes = try run(["type": "update", "set": ["n": "n + 1"]], where: "u IS NOT NULL")
    #expect(outcomes["succeeded"] == 28 && outcomes["noLongerMatching"] == 1, "\(outcomes)")
    #expect(outcomes["failed"] == 1)
    #expect(try texts("SELECT id FROM t WHERE n = 0 ORDER BY id") == ["3", "10"])
  }
}
