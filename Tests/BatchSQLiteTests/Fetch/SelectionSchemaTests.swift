import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchSQLite

/// Others change the schema between the making of a query and its fetch.
@Suite struct SelectionSchemaTests {
  private let directory: TemporaryDirectory
  private let store: Store
  private let connection: Connection

  init() async throws {
    directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c INTEGER)",
      "CREATE TABLE d (t_id INTEGER, x INTEGER)",
      "CREATE VIEW v AS SELECT t_id FROM d WHERE x > 0",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 300000)
      INSERT INTO t SELECT i, i % 2, 0, 0 FROM c
      """,
      "INSERT INTO d SELECT id, id % 3 FROM t WHERE id <= 90"
    )
    store = try await Store(path: path)
    connection = try Connection(path: path)
  }

  private func query(_ condition: String) throws -> IdentifierQuery {
    try IdentifierQuery(
      FetchRequest(entity: "t", where: condition),
      schema: Schema(reading: connection),
      connection: connection
    ).expectingSchema(in: connection)
  }

  @Test(arguments: [1, 3], ["a = 1", "id IN (SELECT t_id FROM v)"])
  func `a fetch stops only if the tables and views that it reads have changed`(
    readers: Int,
    condition: String
  ) async throws {
    let query = try query(condition)
    func fetch() async throws -> Int {
      try await IdentifierFetch(query, from: store, readers: readers).run(store: store.identity)
        .count
    }
    let count = try await fetch()
    let isOfView = condition.contains("v")
    #expect(count == (isOfView ? 60 : 150_000))
    for (change, undoing, concerns) in [
      (
        ["t RENAME COLUMN a TO z", "t RENAME COLUMN b TO a"],
        ["t RENAME COLUMN a TO b", "t RENAME COLUMN z TO a"], true
      ),
      (["d RENAME COLUMN x TO y"], ["d RENAME COLUMN y TO x"], isOfView),
      (["d RENAME TO e"], ["e RENAME TO d"], isOfView),
      (["t RENAME COLUMN c TO z"], ["t RENAME COLUMN z TO c"], false),
      (["t ADD COLUMN new"], ["t DROP COLUMN new"], false),
    ] {
      for sql in change { try connection.execute("ALTER TABLE \(sql)") }
      if concerns {
        let error = await #expect(throws: BatchError.self) { try await fetch() }
        #expect(error?.message.contains("the schema has changed") == true, "\(change)")
      } else {
        #expect(try await fetch() == count, "\(change)")
      }
      for sql in undoing { try connection.execute("ALTER TABLE \(sql)") }
      // SQLite has put the names of the view in quotes, which changes nothing.
      #expect(try await fetch() == count, "\(undoing)")
    }
  }
}
