import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Triggers simulate another writer between two chunks.
@Suite struct BatchRecheckTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  @Test func `a batch request leaves rows unchanged that no longer match when their chunk begins`()
    async throws
  {
    let path = try Shop.make(in: directory)
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER sold AFTER UPDATE ON cars WHEN new.id = 1
      BEGIN UPDATE cars SET maker = 'sold' WHERE id = 4; END
      """,
      """
      CREATE TRIGGER scrapped AFTER DELETE ON cars WHEN old.id = 2
      BEGIN UPDATE cars SET maker = 'scrapped' WHERE id = 3; END
      """
    )
    let context = ModelContext(try await Shop.open(path))
    var update = BatchUpdateRequest<Car>(
      where: #Predicate { $0.maker == "FIAT" },
      [.set(\.maker, to: "FCA")]
    )
    update.chunkSize = 1
    update.resultType = .identifiers
    #expect(try context.execute(update).identifiers?.map(\.primaryKey) == ["p1"])
    var delete = BatchDeleteRequest<Car>(where: #Predicate { $0.maker.contains("Lare") })
    delete.chunkSize = 1
    #expect(try context.execute(delete).count == 1)
    let left = try TestDatabase.texts(path, "SELECT id || maker FROM cars")
    #expect(left == ["1FCA", "3scrapped", "4sold"])
  }

  @Test(arguments: [1, 3, 5_000])
  func `a predicate over identifiers selects exactly the rows of each chunk`(_ chunkSize: Int)
    async throws
  {
    let path = try Shop.make(in: directory)
    try TestDatabase.make(
      in: directory,
      """
      WITH RECURSIVE c(i) AS (SELECT 5 UNION ALL SELECT i + 1 FROM c WHERE i < 100)
      INSERT INTO cars SELECT i, 1 + i % 3, 'FIAT', NULL FROM c
      """,
      "CREATE INDEX by_maker ON cars (maker)"
    )
    let context = ModelContext(try await Shop.open(path))
    let sports = try context.fetchIdentifierList(FetchDescriptor<SportCar>())
    let shuffled = Array(sports.shuffled())
    var builder = IdentifierListBuilder(
      storeIdentifier: sports.header.storeIdentifier,
      entityName: "SportCar",
      keyKind: .integer
    )
    for identifier in sports.reversed() { identifier.key.map { builder.append($0) } }
    let unsorted = builder.finish()
    #expect(!unsorted.isSorted)
    func update(_ predicate: Predicate<Car>, _ maker: String) throws -> Int? {
      var request = BatchUpdateRequest(where: predicate, [.set(\.maker, to: maker)])
      request.chunkSize = chunkSize
      return try context.execute(request).count
    }
    let count = sports.count
    #expect(
      try update(#Predicate { sports.contains($0.persistentModelID) && $0.maker == "FIAT" }, "A")
        == count - 2
    )
    #expect(
      try update(#Predicate { shuffled.contains($0.persistentModelID) && $0.maker == "A" }, "B")
        == count - 2
    )
    #expect(
      try update(#Predicate { unsorted.contains($0.persistentModelID) && $0.maker == "B" }, "C")
        == count - 2
    )
    #expect(
      try update(#Predicate { !sports.contains($0.persistentModelID) && $0.maker == "C" }, "D") == 0
    )
    #expect(
      try TestDatabase.texts(path, "SELECT count(*) FROM cars WHERE kind > 1 AND maker = 'C'")
        == ["\(count - 2)"]
    )
  }

  @Test func `an identifier in a batch request selects only the row with exactly its key`()
    async throws
  {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE words (word TEXT PRIMARY KEY COLLATE NOCASE, text TEXT)",
      "INSERT INTO words VALUES ('Ada', 'x'), ('bob', 'x'), ('5', 'x')"
    )
    let container = try await ModelContainer(
      for: Word.self,
      configurations: ModelConfiguration(path: path)
    )
    let context = ModelContext(container)
    var builder = IdentifierListBuilder(
      storeIdentifier: container.stores[0].identity.uuid,
      entityName: "Word",
      keyKind: .encoded
    )
    for key in [KeyComponent.text("ada"), .text("bob"), .integer(5)] {
      builder.append(.encoded(EncodedKey([key])))
    }
    let list = builder.finish()
    var update = BatchUpdateRequest<Word>(identifiers: list, [.set(\.text, to: "y")])
    update.resultType = .identifiers
    #expect(try context.execute(update).identifiers?.map(\.primaryKey) == ["p=bob"])
    #expect(try context.execute(BatchDeleteRequest<Word>(identifiers: list)).count == 1)
    #expect(try TestDatabase.texts(path, "SELECT text FROM words") == ["x", "x"])
  }

  @Test(arguments: [1, 2, 5_000])
  func `the changes of a batch request itself do not affect which rows match`(_ chunkSize: Int)
    async throws
  {
    let path = directory.file("depot.db")
    let context = ModelContext(try await Depot.open(path))
    try TestDatabase.make(
      "depot.db",
      in: directory,
      """
      INSERT INTO boxes (id, kind, weight, neighbour) VALUES (1, 'box', 1, NULL),
        (2, 'box', 2, 1), (3, 'box', 3, 2), (4, 'box', 4, NULL)
      """
    )
    var update = BatchUpdateRequest<Box>(
      where: #Predicate { $0.neighbour?.weight ?? 9 < 5 },
      [.set(\.weight, toSQL: "weight + 10")]
    )
    update.chunkSize = chunkSize
    #expect(try context.execute(update).count == 2)
    // Deleting the second nullifies the neighbour of the third.
    var delete = BatchDeleteRequest<Box>(where: #Predicate { $0.weight > 10 })
    delete.chunkSize = chunkSize
    #expect(try context.execute(delete).count == 2)
    #expect(try TestDatabase.texts(path, "SELECT id FROM boxes") == ["1", "4"])
  }
}
