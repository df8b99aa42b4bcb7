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
    properties: [
      .attribute("code", \.code), .attribute("name", \.name), .attribute("n", \.n),
      .toOne("parent", \.parent, column: "parent_id", inverse: "children"),
      .toMany("children", \.children, inverse: "parent", onDelete: .deny),
    ]
  )

  var code: String {
    get { self[\.code] }
    set { self[\.code] = newValue }
  }
  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var n: Int? { self[\.n] }
  var parent: Node? { self[\.parent] }
  var children: [Node] { self[\.children] }
}

/// Batch requests that are larger than a chunk, or meet rows that constraints keep.
@Suite struct BatchFaultTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE nodes (id INTEGER PRIMARY KEY, code TEXT UNIQUE, name TEXT NOT NULL, n INTEGER,
        parent_id INTEGER REFERENCES nodes)
      """,
      "CREATE TABLE leaves (id INTEGER PRIMARY KEY, a INTEGER, b TEXT, FOREIGN KEY (a, b) REFERENCES nodes (id, code))",
      "CREATE UNIQUE INDEX pairs ON nodes (id, code)"
    )
  }

  private func context(tracksHistory: Bool = false) async throws -> ModelContext {
    var configuration = ModelConfiguration(path: path)
    configuration.tracksHistory = tracksHistory
    return ModelContext(try await ModelContainer(for: Node.self, configurations: configuration))
  }

  @Test func `a batch deletion deletes rows that refer to each other in one chunk of any size`()
    async throws
  {
    try TestDatabase.make(
      in: directory,
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 6000)
      INSERT INTO nodes (id, code, name, parent_id)
      SELECT i, 'c' || i, 'n', CASE WHEN i > 1 THEN 1 END FROM c
      """
    )
    let context = try await context()
    var some = BatchDeleteRequest<Node>(where: #Predicate { $0.code != "c6000" })
    some.chunkSize = 10
    let error = #expect(throws: BatchError.self) { try context.execute(some) }
    #expect(error?.code == .deleteDenied)
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM nodes") == ["6000"])
    #expect(try context.execute(BatchDeleteRequest<Node>()).count == 6000)
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM nodes") == ["0"])
  }

  @Test
  func `the error of a denied batch deletion names the referring table and its number of rows`()
    async throws
  {
    try TestDatabase.make(
      in: directory,
      "INSERT INTO nodes (id, code, name) VALUES (1, 'a', 'n'), (2, 'b', 'n')",
      "INSERT INTO leaves (a, b) VALUES (1, 'a'), (1, 'a'), (2, 'b')"
    )
    let context = try await context()
    let request = BatchDeleteRequest<Node>(where: #Predicate { $0.code == "a" })
    let error = #expect(throws: BatchError.self) { try context.execute(request) }
    #expect(error?.code == .constraint)
    #expect(
      error?.message == #"2 rows of "leaves" would refer to deleted rows of "nodes""#,
      "\(String(describing: error))"
    )
    #expect(error?.remedy?.contains("delete those first") == true)
  }

  @Test(arguments: [false, true])
  func `an upsert need not set the values of an existing row`(tracksHistory: Bool) async throws {
    try TestDatabase.make(
      in: directory,
      "INSERT INTO nodes (id, code, name) VALUES (1, 'a', 'old'), (2, 'b', 'old')"
    )
    let context = try await context(tracksHistory: tracksHistory)
    func execute(
      _ codes: [String],
      _ conflict: BatchInsertRequest<Node>.Conflict
    ) throws -> BatchResult {
      var request = BatchInsertRequest<Node>(codes) { code, row in
        row.set(\.code, to: code)
        row.set(\.n, to: 7)
      }
      request.conflict = conflict
      request.resultType = .identifiers
      return try context.execute(request)
    }
    #expect(try execute(["b"], .update).identifiers?.map(\.primaryKey) == ["p2"])
    #expect(try execute(["a"], .ignore).count == 0)
    let rows = "SELECT code || name || coalesce(n, '') FROM nodes ORDER BY id"
    #expect(try TestDatabase.texts(path, rows) == ["aold", "bold7"])
    let error = #expect(throws: BatchError.self) { try execute(["a", "c"], .update) }
    #expect(error?.code == .constraint)
    #expect(try TestDatabase.texts(path, rows) == ["aold", "bold7"])
    if tracksHistory {
      let changes = try context.fetchHistory().flatMap(\.changes)
      #expect(changes.map(\.kind) == [.update])
      #expect(changes.first?.updatedAttributes.contains("n") == true)
    }
  }

  @Test func `the error of a temporary identifier considers that its object may have been saved`()
    async throws
  {
    let context = try await context()
    let node = Node()
    (node.code, node.name) = ("x", "n")
    context.insert(node)
    let temporary = node.persistentModelID
    try context.save()
    let error = #expect(throws: BatchError.self) {
      try context.existingModel(for: temporary, as: Node.self)
    }
    #expect(error?.remedy?.contains("if its object was saved") == true)
  }
}
