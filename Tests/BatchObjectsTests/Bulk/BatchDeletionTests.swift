import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

private final class Node: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Node.self,
    entity: "Node",
    table: "nodes",
    properties: [.attribute("label", \.label)]
  )
  var label: String { self[\.label] }
}

@Suite struct BatchDeletionTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func open(_ path: String) async throws -> ModelContext {
    let container = try await ModelContainer(
      for: Node.self,
      configurations: ModelConfiguration(path: path)
    )
    return ModelContext(container)
  }

  @Test func `a batch deletion may delete rows that refer to each other but not rows in use`()
    async throws
  {
    let path = try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE nodes (id INTEGER PRIMARY KEY, label TEXT, next REFERENCES nodes)
      """,
      "INSERT INTO nodes VALUES (1, 'a', 1000), (1000, 'a', 500000), (500000, 'a', 1), (7, 'b', 8)",
      "INSERT INTO nodes VALUES (8, 'c', NULL)"
    )
    let context = try await open(path)
    #expect(
      try context.execute(BatchDeleteRequest<Node>(where: #Predicate { $0.label == "a" })).count
        == 3
    )
    let error = #expect(throws: BatchError.self) {
      try context.execute(BatchDeleteRequest<Node>(where: #Predicate { $0.label == "c" }))
    }
    #expect(error?.code == .constraint)
    #expect(try TestDatabase.texts(path, "SELECT id FROM nodes") == ["7", "8"])
    #expect(try context.execute(BatchDeleteRequest<Node>()).count == 2)
  }

  @Test(arguments: ["rowid INTEGER", "rowid TEXT, _rowid_, oid TEXT"])
  func `a batch deletion finds related rows whatever their columns are named`(_ columns: String)
    async throws
  {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE nodes (id TEXT PRIMARY KEY, label TEXT)",
      """
      CREATE TABLE leaves (name TEXT PRIMARY KEY, \(columns),
        node REFERENCES nodes ON DELETE CASCADE)
      """,
      "CREATE TABLE marks (leaf REFERENCES leaves ON DELETE SET NULL)",
      "INSERT INTO nodes VALUES ('n1', 'a'), ('n2', 'b')",
      "INSERT INTO leaves (name, rowid, node) VALUES ('l1', 1, 'n1'), ('l2', 1, 'n1'), ('l3', 1, 'n2')",
      "INSERT INTO marks VALUES ('l1'), ('l2'), ('l3')"
    )
    let context = try await open(path)
    var request = BatchDeleteRequest<Node>(where: #Predicate { $0.label == "a" })
    request.resultType = .identifiers
    let result = try context.execute(request)
    #expect(result.identifiers?.map(\.primaryKey) == ["p=n1"])
    #expect(result.cascaded.map { $0.map(\.primaryKey) } == [["p=l1", "p=l2"]])
    // Nothing identifies a mark, so it is not reported.
    #expect(result.nullified.isEmpty)
    #expect(try TestDatabase.texts(path, "SELECT name FROM leaves") == ["l3"])
    #expect(
      try TestDatabase.rows(path, "SELECT leaf FROM marks") == [[.null], [.null], [.text("l3")]]
    )
  }

  @Test func `a batch request leaves no temporary table, even if it fails`() async throws {
    let path = directory.file("depot.db")
    let context = ModelContext(try await Depot.open(path))
    try TestDatabase.make(
      "depot.db",
      in: directory,
      "INSERT INTO boxes (id, kind, weight) VALUES (1, 'box', 1), (2, 'box', 2)",
      "INSERT INTO seals VALUES (1, 2)"
    )
    for _ in 0..<2 {
      var request = BatchDeleteRequest<Box>()
      request.chunkSize = 1
      let error = #expect(throws: BatchError.self) { try context.execute(request) }
      #expect(error?.code == .deleteDenied)
      // The chunk before is committed.
      #expect(try TestDatabase.texts(path, "SELECT id FROM boxes") == ["2"])
    }
    try TestDatabase.make("depot.db", in: directory, "DELETE FROM seals")
    #expect(try context.execute(BatchDeleteRequest<Box>()).count == 1)
    let tables = try TestDatabase.texts(path, "SELECT name FROM sqlite_schema")
    #expect(!tables.contains { $0.hasPrefix("_batch_deleted") })
  }
}
