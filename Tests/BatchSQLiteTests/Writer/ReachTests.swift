import BatchRuns
import BatchSQLite
import BatchTestSupport
import Testing

/// Which changes may reach other rows than their own.
@Suite struct ReachTests {
  private static let audit =
    "CREATE TRIGGER u AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (new.n); END"
  private static let child = "CREATE TABLE child (p REFERENCES T (N))"

  @Test(
    arguments: [
      // What is there, the condition, whether foreign keys are enforced, and what is expected.
      ([], nil, true, false),
      ([audit], "m > 0", false, false),
      ([audit], "m > 0", true, true),
      ([audit], "(SELECT count(*) FROM log) < 5", false, true),
      ([audit, "CREATE VIEW v AS SELECT * FROM log"], "EXISTS (SELECT 1 FROM v)", false, true),
      ([audit, "CREATE TRIGGER l AFTER INSERT ON log BEGIN DELETE FROM t; END"], nil, false, true),
      (["CREATE TRIGGER u BEFORE UPDATE ON t BEGIN UPDATE T SET m = 1; END"], nil, false, true),
      (
        ["CREATE TRIGGER u AFTER UPDATE OF m ON t BEGIN UPDATE t SET m = 1; END"], nil, false, false
      ),
      (["CREATE TRIGGER u AFTER DELETE ON t BEGIN UPDATE t SET m = 1; END"], nil, false, false),
      (["CREATE TRIGGER u AFTER UPDATE ON t BEGIN SELECT RAISE(IGNORE); END"], "m", true, false),
      ([child], nil, true, true), ([child], nil, false, false),
      (["CREATE TABLE child (p REFERENCES t)"], nil, true, false),
      (["CREATE TABLE child (p REFERENCES other (n))"], nil, true, false),
    ] as [([String], String?, Bool, Bool)]
  )
  func `an update affects other rows through triggers and foreign keys`(
    statements: [String],
    predicate: String?,
    enforcesForeignKeys: Bool,
    expected: Bool
  ) async throws {
    #expect(
      try await reaches(
        .update([("n", SQLExpression("n + 1"))]),
        statements,
        predicate,
        enforcesForeignKeys
      ) == expected
    )
  }

  @Test func `a delete affects other rows through any foreign key to its table`() async throws {
    let delete = BulkChange.Action.delete(archive: nil)
    let child = ["CREATE TABLE child (p REFERENCES t)"]
    #expect(try await reaches(delete, child, nil, true))
    #expect(try await !reaches(delete, child, nil, false))
    #expect(try await !reaches(delete, [Self.audit], nil, true))
  }

  @Test func `an update whose conflicts replace rows counts as a delete`() async throws {
    let update = BulkChange.Action.update([("m", SQLExpression("m + 1"))])
    let child = "CREATE TABLE child (p REFERENCES t)"
    let replacing = [
      child, "DROP TABLE t",
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n, m UNIQUE ON CONFLICT REPLACE)",
    ]
    #expect(try await reaches(update, replacing, nil, true))
    #expect(try await !reaches(update, replacing, nil, false))
    #expect(try await !reaches(update, [child], nil, true))
  }

  private func reaches(
    _ action: BulkChange.Action,
    _ statements: [String],
    _ predicate: String?,
    _ enforcesForeignKeys: Bool
  ) async throws -> Bool {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, n UNIQUE, m)",
      "CREATE TABLE log (n)"
    )
    let connection = try Connection(path: path)
    for statement in statements { try connection.execute(statement) }
    let entity = try await Store(path: path).schema.entity(named: "t")
    let change = BulkChange(
      entity: entity,
      key: try entity.requireKey(),
      action: action,
      predicate: predicate.map { SQLExpression($0) },
      recheck: .skip,
      parameters: [:]
    )
    return try change.reach(enforcesForeignKeys: enforcesForeignKeys, in: connection) != .nothing
  }
}
