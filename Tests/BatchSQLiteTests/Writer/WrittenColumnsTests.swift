import BatchRuns
import BatchSQLite
import BatchTestSupport
import Testing

/// What a change writes beside its own columns.
@Suite struct WrittenColumnsTests {
  private static let update = BulkChange.Action.update([("v", SQLExpression("v + 1"))])

  private func writes(
    _ action: BulkChange.Action,
    _ statements: String...,
    enforcesForeignKeys: Bool = true
  ) async throws -> WrittenColumns {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE c (id INTEGER PRIMARY KEY, v UNIQUE, w)",
      "CREATE TABLE log (n, m)"
    )
    let connection = try Connection(path: path)
    for statement in statements { try connection.execute(statement) }
    let entity = try await Store(path: path).schema.entity(named: "c")
    let change = BulkChange(
      entity: entity,
      key: try #require(entity.key),
      action: action,
      predicate: nil,
      recheck: .row,
      parameters: [:]
    )
    return try change.writes(enforcesForeignKeys: enforcesForeignKeys, in: connection)
  }

  private func changed(
    _ names: Set<String>,
    in table: String,
    _ writes: WrittenColumns
  ) -> [String] {
    writes.changed(of: names, in: table, generated: ["g"]).sorted()
  }

  @Test func `an update writes the columns it sets and those generated from them`() async throws {
    let writes = try await writes(Self.update)
    #expect(changed(["V", "w", "g"], in: "C", writes) == ["V", "g"])
    #expect(changed([], in: "c", writes).isEmpty)
    #expect(writes.contains(table: "C") && !writes.contains(table: "log"))
  }

  @Test func `a delete writes whole rows`() async throws {
    let writes = try await writes(.delete(archive: nil))
    #expect(changed(["w"], in: "c", writes) == ["w"])
    #expect(changed([], in: "c", writes) == ["*"])
  }

  @Test func `the written columns of a change include those that triggers write`() async throws {
    let writes = try await writes(
      Self.update,
      """
      CREATE TRIGGER t AFTER UPDATE OF v ON c BEGIN
        UPDATE log SET n = 1; INSERT INTO more VALUES (1); END
      """,
      "CREATE TABLE more (x)"
    )
    #expect(changed(["n", "m"], in: "log", writes) == ["n"])
    #expect(changed(["x"], in: "more", writes) == ["x"])
  }

  @Test
  func `the written columns of a change include those of foreign key actions and their triggers`()
    async throws
  {
    let statements = (
      "CREATE TABLE child (p REFERENCES c ON DELETE CASCADE, x)",
      "CREATE TABLE grandchild (q REFERENCES child (x) ON DELETE SET NULL, y)",
      "CREATE TRIGGER t AFTER UPDATE ON grandchild BEGIN UPDATE log SET m = 1; END"
    )
    let deletion = try await writes(
      .delete(archive: nil),
      statements.0,
      statements.1,
      statements.2
    )
    #expect(changed(["x"], in: "child", deletion) == ["x"])
    #expect(changed(["q", "y"], in: "grandchild", deletion) == ["q"])
    #expect(changed(["n", "m"], in: "log", deletion) == ["m"])
    let unenforced = try await writes(
      .delete(archive: nil),
      statements.0,
      enforcesForeignKeys: false
    )
    #expect(!unenforced.contains(table: "child"))
    let update = try await writes(
      Self.update,
      "CREATE TABLE by_v (p REFERENCES c (v) ON UPDATE CASCADE, x)",
      "CREATE TABLE by_w (p REFERENCES c (id) ON UPDATE CASCADE, x)"
    )
    #expect(changed(["p", "x"], in: "by_v", update) == ["p"])
    #expect(!update.contains(table: "by_w"))
  }
}
