import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

final class Author: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Author.self,
    entity: "Author",
    table: "authors",
    properties: [
      .attribute("name", \.name),
      .toMany("books", \.books, inverse: "author", onDelete: .cascade),
      .toMany("fans", \.fans, inverse: "author", onDelete: .nullify),
    ]
  )
  var name: String { self[\.name] }
  var books: [Book] { self[\.books] }
  var fans: [Fan] { self[\.fans] }
}

final class Book: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Book.self,
    entity: "Book",
    table: "books",
    properties: [
      .attribute("code", \.code), .attribute("title", \.title), .version("revision", \.revision),
      .toOne("author", \.author, column: "author_id"),
    ]
  )
  var code: String { self[\.code] }
  var title: String? {
    get { self[\.title] }
    set { self[\.title] = newValue }
  }
  var revision: Int { self[\.revision] }
  var author: Author? { self[\.author] }
}

final class Fan: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Fan.self,
    entity: "Fan",
    table: "fans",
    properties: [.toOne("author", \.author, column: "author_id")]
  )
  var author: Author? { self[\.author] }
}

private final class Ratio: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Ratio.self,
    entity: "Ratio",
    table: "ratios",
    properties: [.attribute("ratio", \.ratio)]
  )

  var ratio: Double {
    get { self[\.ratio] }
    set { self[\.ratio] = newValue }
  }
}

@Suite struct BatchConformanceTests {
  let directory: TemporaryDirectory
  let path: String
  let library: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Shop.make(in: directory)
    try TestDatabase.make(
      in: directory,
      """
      WITH RECURSIVE c(i) AS (SELECT 5 UNION ALL SELECT i + 1 FROM c WHERE i < 105)
      INSERT INTO cars SELECT i, 1 + i % 3, 'FIAT', NULL FROM c
      """
    )
    library = try TestDatabase.make(
      "library.db",
      in: directory,
      "CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
      """
      CREATE TABLE books (id INTEGER PRIMARY KEY, code TEXT UNIQUE NOT NULL, title TEXT,
        revision INTEGER, author_id INTEGER REFERENCES authors ON DELETE CASCADE)
      """,
      """
      CREATE TABLE fans (id INTEGER PRIMARY KEY,
        author_id INTEGER REFERENCES authors ON DELETE SET NULL)
      """,
      "INSERT INTO authors VALUES (1, 'Ada'), (2, 'Bob'), (3, 'Eve')",
      "INSERT INTO books VALUES (1, 'a', 'A', 1, 1), (2, 'b', 'B', 1, 1), (3, 'c', 'C', 1, 2)",
      "INSERT INTO fans VALUES (1, 1), (2, 2)"
    )
  }

  private func openLibrary() async throws -> ModelContainer {
    try await ModelContainer(
      for: Author.self,
      Book.self,
      Fan.self,
      configurations: ModelConfiguration(path: library)
    )
  }

  private func code<Result>(_ body: () throws -> Result) -> BatchError.Code? {
    #expect(throws: BatchError.self) { _ = try body() }?.code
  }

  private let fiats = #Predicate<Car> { $0.maker == "FIAT" }

  @Test(arguments: [1, 7, 5_000])
  func `C73 a batch update reports count and ids, and contexts see it once it is merged`(
    _ chunkSize: Int
  ) async throws {
    let context = ModelContext(try await Shop.open(path))
    let cars = try context.fetch(FetchDescriptor(predicate: fiats))
    #expect(cars.count == 103)
    var request = BatchUpdateRequest(where: fiats, [.set(\.maker, to: "FCA")])
    request.resultType = .identifiers
    request.chunkSize = chunkSize
    let result = try context.execute(request)
    #expect(result.count == 103)
    let identifiers = try #require(result.identifiers)
    #expect(Set(identifiers.compactMap(\.key)) == Set(cars.compactMap(\.persistentModelID.key)))
    #expect(cars.allSatisfy { $0.maker == "FIAT" })
    context.mergeChanges(updated: Array(identifiers))
    #expect(cars.allSatisfy { $0.maker == "FCA" })
    #expect(try context.fetchCount(FetchDescriptor(predicate: fiats)) == 0)
    let nothing = try context.execute(BatchUpdateRequest(where: fiats, [.set(\.maker, to: "X")]))
    #expect(nothing.count == 0)
    #expect(nothing.identifiers == nil)
  }

  @Test func `a batch request for the status reports only success`() async throws {
    let context = ModelContext(try await Shop.open(path))
    var update = BatchUpdateRequest(where: fiats, [.set(\.maker, to: "FCA")])
    update.resultType = .status
    let updated = try context.execute(update)
    #expect(updated.count == nil && updated.identifiers == nil)
    var insert = BatchInsertRequest<Car>(1...3) { _, row in row.set(\.maker, to: "FIAT") }
    insert.resultType = .status
    #expect(try context.execute(insert).count == nil)
    #expect(try context.fetchCount(FetchDescriptor(predicate: fiats)) == 3)
    var delete = BatchDeleteRequest(where: fiats)
    delete.resultType = .status
    #expect(try context.execute(delete).count == nil)
    #expect(try context.fetchCount(FetchDescriptor<Car>()) == 105)
  }

  @Test func `a batch update sets the result of an expression over the row`() async throws {
    let context = ModelContext(try await Shop.open(path))
    let request = BatchUpdateRequest<Order>(
      where: #Predicate { $0.note != nil && $0.price < 1_000 },
      [.set(\.price, toSQL: "price_cents * 2"), .set(\.note, toSQL: "upper(note)")]
    )
    #expect(try context.execute(request).count == 2)
    #expect(
      try TestDatabase.texts(path, "SELECT price_cents || note FROM orders WHERE id IN (2, 3)")
        == ["400TWO", "600THREE"]
    )
    for expression in ["1; DROP TABLE orders", "nosuch + 1", "(SELECT", ":name", "count(*)"] {
      let request = BatchUpdateRequest<Order>([.set(\.price, toSQL: expression)])
      #expect(code { try context.execute(request) } == .invalidSQL)
    }
    let nothing = BatchUpdateRequest<Order>([])
    #expect(code { try context.execute(nothing) } == .invalidSQL)
  }

  @Test func `C74 a batch request by ids of another entity is an error`() async throws {
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    let orders = try context.fetchIdentifierList(FetchDescriptor<Order>())
    let delete = BatchDeleteRequest<Car>(identifiers: orders)
    #expect(code { try context.execute(delete) } == .foreignIdentifier)
    let update = BatchUpdateRequest<Car>(identifiers: orders, [.set(\.maker, to: "X")])
    #expect(code { try context.execute(update) } == .foreignIdentifier)
    let cars = try context.fetchIdentifierList(FetchDescriptor<Car>(fetchLimit: 10))
    try TestDatabase.make(in: directory, "DELETE FROM cars WHERE id = 1")
    #expect(try context.execute(BatchDeleteRequest<Car>(identifiers: cars)).count == 9)
    #expect(try context.fetchCount(FetchDescriptor<Car>()) == 95)
  }

  @Test func `C75 a batch delete applies delete rules, by foreign keys or by itself`()
    async throws
  {
    let context = ModelContext(try await openLibrary())
    let request = BatchDeleteRequest<Author>(where: #Predicate { $0.name == "Ada" })
    #expect(try context.execute(request).count == 1)
    #expect(try TestDatabase.texts(library, "SELECT code FROM books") == ["c"])
    #expect(
      try TestDatabase.rows(library, "SELECT author_id FROM fans") == [[.null], [.integer(2)]]
    )
    // In this schema the foreign keys would refuse it.
    let market = try Market.make(in: directory)
    try TestDatabase.make("market.db", in: directory, "INSERT INTO cards VALUES (7, 1)")
    let other = ModelContext(try await Market.open(market))
    let card = try #require(other.fetch(Card.self).first)
    let purchases = try other.fetch(Purchase.self)
    let ada = try #require(card.customer)
    #expect(ada.name == "Ada")
    var delete = BatchDeleteRequest<Customer>(where: #Predicate { $0.name == "Ada" })
    delete.resultType = .identifiers
    let result = try other.execute(delete)
    #expect(result.count == 1)
    #expect(result.identifiers?.map(\.primaryKey) == ["p1"])
    #expect(result.cascaded.flatMap { $0.map(\.description) }.count == 2)
    #expect(result.nullified.map { $0.map(\.primaryKey) } == [["p7"]])
    #expect(try TestDatabase.texts(market, "SELECT name FROM customers") == ["Bob"])
    #expect(try TestDatabase.texts(market, "SELECT id FROM purchases") == ["3"])
    #expect(try TestDatabase.texts(market, "SELECT purchase FROM purchase_tags") == ["3"])
    #expect(try TestDatabase.integrity(market) == ["ok"])
    // Objects in all contexts change at once.
    #expect(card.customer === ada && !ada.isDeleted && !purchases[0].isDeleted)
    other.mergeChanges(result)
    #expect(card.customer == nil && ada.isDeleted)
    #expect(purchases.map(\.isDeleted) == [true, true, false])
    #expect(try other.execute(BatchDeleteRequest<Tag>()).count == 2)
    #expect(try TestDatabase.texts(market, "SELECT * FROM purchase_tags").isEmpty)
  }

  @Test func `a batch delete is refused by the rule deny`() async throws {
    let market = try Market.make(in: directory)
    try TestDatabase.make("market.db", in: directory, "INSERT INTO complaints VALUES (1, 2)")
    let context = ModelContext(try await Market.open(market))
    let error = #expect(throws: BatchError.self) {
      try context.execute(BatchDeleteRequest<Customer>())
    }
    #expect(error?.code == .deleteDenied)
    #expect(error?.message.contains("Complaint/p1") == true)
    #expect(try TestDatabase.texts(market, "SELECT name FROM customers") == ["Ada", "Bob"])
    #expect(try TestDatabase.texts(market, "SELECT count(*) FROM purchases") == ["3"])
    let ada = BatchDeleteRequest<Customer>(where: #Predicate { $0.name == "Ada" })
    #expect(try context.execute(ada).count == 1)
  }

  @Test func `a batch delete cannot nullify a mandatory inverse`() async throws {
    let library = try TestDatabase.make(
      "mandatory.db",
      in: directory,
      "CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
      "CREATE TABLE books (id INTEGER PRIMARY KEY, code, title, revision INTEGER, author_id INTEGER)",
      "CREATE TABLE fans (id INTEGER PRIMARY KEY, author_id INTEGER NOT NULL)",
      "INSERT INTO authors VALUES (1, 'Ada'), (2, 'Bob')",
      "INSERT INTO books VALUES (1, 'a', NULL, 1, 1)",
      "INSERT INTO fans VALUES (5, 1)"
    )
    let container = try await ModelContainer(
      for: Author.self,
      Book.self,
      Fan.self,
      configurations: ModelConfiguration(path: library)
    )
    let context = ModelContext(container)
    let error = #expect(throws: BatchError.self) {
      try context.execute(BatchDeleteRequest<Author>())
    }
    #expect(error?.code == .constraint)
    #expect(error?.message.contains("Fan/p5") == true)
    #expect(try TestDatabase.texts(library, "SELECT name FROM authors") == ["Ada", "Bob"])
    #expect(try TestDatabase.texts(library, "SELECT id FROM books") == ["1"])
    let bob = BatchDeleteRequest<Author>(where: #Predicate { $0.name == "Bob" })
    #expect(try context.execute(bob).count == 1)
  }

  @Test func `C76 a batch delete includes sub-entities by default`() async throws {
    let context = ModelContext(try await Shop.open(path))
    func counts() throws -> [Int] {
      [
        try context.fetchCount(FetchDescriptor<Car>()),
        try context.fetchCount(FetchDescriptor<SportCar>()),
        try context.fetchCount(FetchDescriptor<ExpensiveSportCar>()),
      ]
    }
    let before = try counts()
    let own = try context.execute(BatchDeleteRequest<SportCar>(includesSubentities: false))
    #expect(own.count == before[1] - before[2])
    #expect(try counts() == [before[0] - (own.count ?? 0), before[2], before[2]])
    #expect(try context.execute(BatchDeleteRequest<SportCar>()).count == before[2])
    #expect(try counts() == [before[0] - before[1], 0, 0])
  }

  @Test func `C77 merged deletions of a batch request make the count 0 in another context`()
    async throws
  {
    let container = try await Shop.open(path)
    let (context, other) = (ModelContext(container), ModelContext(container))
    let cars = try other.fetch(FetchDescriptor(predicate: fiats))
    var request = BatchDeleteRequest(where: fiats)
    request.resultType = .identifiers
    let identifiers = try #require(try context.execute(request).identifiers)
    #expect(identifiers.count == 103)
    #expect(cars.allSatisfy { !$0.isDeleted })
    other.mergeChanges(deleted: Array(identifiers))
    #expect(cars.allSatisfy { $0.isDeleted })
    #expect(try other.fetchCount(FetchDescriptor(predicate: fiats)) == 0)
  }

  @Test(arguments: [1, 2, 5_000])
  func `C78 a batch insert stops when its closure says so and resolves duplicates by policy`(
    _ chunkSize: Int
  ) async throws {
    let context = ModelContext(try await openLibrary())
    func request() -> BatchInsertRequest<Book> {
      var codes = ["d", "a", "e"].makeIterator()
      var request = BatchInsertRequest<Book> { row in
        guard let code = codes.next() else { return true }
        row.set(\.code, to: code)
        row.set(\.title, to: "new \(code)")
        return false
      }
      request.resultType = .identifiers
      request.chunkSize = chunkSize
      return request
    }
    func titles() throws -> [String] {
      try TestDatabase.texts(library, "SELECT title || revision FROM books ORDER BY code")
    }
    #expect(code { try context.execute(request()) } == .constraint)
    // The changes of earlier chunks stay.
    try TestDatabase.make("library.db", in: directory, "DELETE FROM books WHERE id > 3")
    var ignoring = request()
    ignoring.conflict = .ignore
    var result = try context.execute(ignoring)
    #expect(result.count == 2)
    #expect(result.identifiers?.count == 2)
    #expect(try titles() == ["A1", "B1", "C1", "new d1", "new e1"])
    var updating = request()
    updating.conflict = .update
    result = try context.execute(updating)
    #expect(result.count == 3)
    #expect(result.identifiers?.contains { $0.primaryKey == "p1" } == true)
    #expect(try titles() == ["new a2", "B1", "C1", "new d2", "new e2"])
  }

  @Test func `an identifier in a batch request names no row of another entity in its table`()
    async throws
  {
    let context = ModelContext(try await Shop.open(path))
    let sports = try context.fetchIdentifierList(FetchDescriptor<SportCar>())
    let count = sports.count
    // One of them becomes a plain car after the selection.
    let id = try #require(TestDatabase.texts(path, "SELECT min(id) FROM cars WHERE kind = 2").first)
    try TestDatabase.make(in: directory, "UPDATE cars SET kind = 1 WHERE id = \(id)")
    #expect(
      try context.execute(BatchDeleteRequest<SportCar>(identifiers: sports)).count == count - 1
    )
    #expect(try TestDatabase.texts(path, "SELECT kind FROM cars WHERE id = \(id)") == ["1"])
  }

  @Test func `a batch update refuses a constant that its column cannot store`() async throws {
    try TestDatabase.make(
      "ratios.db",
      in: directory,
      "CREATE TABLE ratios (id INTEGER PRIMARY KEY, ratio REAL)",
      "INSERT INTO ratios VALUES (1, 0.5)"
    )
    let configuration = ModelConfiguration(path: directory.file("ratios.db"))
    let container = try await ModelContainer(for: Ratio.self, configurations: configuration)
    let context = ModelContext(container)
    #expect(
      code { try context.execute(BatchUpdateRequest<Ratio>([.set(\.ratio, to: .nan)])) }
        == .valueMismatch
    )
    #expect(try context.fetch(FetchDescriptor<Ratio>()).map(\.ratio) == [0.5])
    #expect(try context.execute(BatchUpdateRequest<Ratio>([.set(\.ratio, to: 2)])).count == 1)
  }

  @Test func `keys assigned by a batch insert differ from those of other new rows`() async throws {
    try TestDatabase.make(
      "keys.db",
      in: directory,
      "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)",
      "INSERT INTO things VALUES (7, 'old')"
    )
    let configuration = ModelConfiguration(path: directory.file("keys.db"))
    let container = try await ModelContainer(configurations: configuration)
    let context = ModelContext(container)
    let named = try context.insertNewObject(ofEntity: "things")
    named["name"] = .text("given")
    let keyed = try context.insertNewObject(ofEntity: "things")
    try keyed.setValue(.integer(8), forKey: "id")
    try context.save()
    #expect(keyed.persistentModelID.primaryKey == "p8")
    #expect(named.persistentModelID.primaryKey == "p9")
  }

  @Test func `a batch insert assigns keys and sets the entity of sub-entities`() async throws {
    let context = ModelContext(try await Shop.open(path))
    var request = BatchInsertRequest<SportCar>(1...3) { speed, row in
      row.set(\.maker, to: "Lotus")
      row.set(\.topSpeed, to: 200 + speed)
    }
    request.resultType = .identifiers
    let result = try context.execute(request)
    #expect(result.identifiers?.map(\.primaryKey) == ["p106", "p107", "p108"])
    let lotus = FetchDescriptor<SportCar>(predicate: #Predicate { $0.maker == "Lotus" })
    #expect(try context.fetch(lotus).map(\.topSpeed) == [201, 202, 203])
    let expensive = FetchDescriptor<ExpensiveSportCar>(
      predicate: #Predicate { $0.maker == "Lotus" }
    )
    #expect(try context.fetchCount(expensive) == 0)
    struct Stopped: Error {}
    #expect(throws: Stopped.self) {
      try context.execute(BatchInsertRequest<SportCar> { _ in throw Stopped() })
    }
  }

  @Test func `C79 a batch update increments the version and conflicts with values read before`()
    async throws
  {
    let context = ModelContext(try await openLibrary())
    let books = try context.fetch(FetchDescriptor<Book>())
    books[0].title = "mine"
    #expect(try context.execute(BatchUpdateRequest<Book>([.set(\.title, to: "batch")])).count == 3)
    #expect(try TestDatabase.texts(library, "SELECT revision FROM books") == ["2", "2", "2"])
    #expect(code { try context.save() } == .mergeConflict)
  }

  @Test func `a failing chunk of a batch update leaves earlier chunks committed`() async throws {
    let context = ModelContext(try await openLibrary())
    var request = BatchUpdateRequest<Book>([
      .set(\.title, toSQL: "CASE WHEN id < 3 THEN 'done' ELSE abs(-9223372036854775808) END")
    ])
    request.chunkSize = 2
    let error = #expect(throws: BatchError.self) { try context.execute(request) }
    #expect(error != nil)
    #expect(try TestDatabase.texts(library, "SELECT title FROM books") == ["done", "done", "C"])
    #expect(try TestDatabase.integrity(library) == ["ok"])
    request.chunkSize = 0
    #expect(code { try context.execute(request) } == .invalidParameter)
  }
}
