import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct ModelContainerTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func error(_ configurations: ModelConfiguration...) async -> BatchError? {
    await #expect(throws: BatchError.self) {
      try await ModelContainer(for: [], configurations: configurations)
    }
  }

  @Test func `the error of a container without a database says what to pass`() async {
    let refused = await error()
    #expect(refused?.code == .invalidMapping)
    #expect(refused?.description.contains("ModelConfiguration(path: …), or .inMemory") == true)
  }

  @Test func `a writable store keeps the UUID that its first container assigned`() async throws {
    let path = try TestDatabase.makeNumbers(1, in: directory)
    let first = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let second = try await ModelContainer(
      configurations: ModelConfiguration(url: URL(fileURLWithPath: path))
    )
    #expect(!first.stores[0].identity.isDerived)
    #expect(first.stores[0].identity == second.stores[0].identity)
  }

  @Test func `a read-only store is not written`() async throws {
    let path = try TestDatabase.makeNumbers(1, in: directory)
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    let container = try await ModelContainer(
      configurations: ModelConfiguration(path: path, isReadOnly: true)
    )
    #expect(container.stores[0].identity.isDerived)
    #expect(container.stores[0].isReadOnly)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
  }

  @Test func `a Core Data store keeps its own UUID and gets no further table`() async throws {
    let uuid = "753753D3-A961-4901-AB05-8CC48B1D3853"
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
      "INSERT INTO Z_METADATA VALUES (1, '\(uuid)', x'')"
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    #expect(container.stores[0].identity.uuid == uuid)
    #expect(try TestDatabase.texts(path, "SELECT name FROM sqlite_schema") == ["Z_METADATA"])
  }

  @Test func `a configuration loads the extensions that its schema needs`() async throws {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT)",
      "INSERT INTO books (title) VALUES ('The Sea')",
      "CREATE VIEW sorted AS SELECT id, title_sort(title) AS sort FROM books"
    )
    var configuration = ModelConfiguration(path: path)
    let without = try await ModelContainer(configurations: configuration)
    #expect(throws: BatchError.self) { try without.stores[0].schema.entity(named: "sorted") }
    configuration.extensions = [try SQLiteExtension.put(in: directory)]
    let container = try await ModelContainer(configurations: configuration)
    #expect(try container.stores[0].schema.entity(named: "sorted").attributes.count == 2)
    let store = try await Store(path: path, extensions: configuration.extensions)
    #expect(try await store.count(of: store.schema.entity(named: "sorted")) == 1)
  }

  @Test func `the initial schema creates a new file once`() async throws {
    let path = directory.file("new.db")
    let configuration = ModelConfiguration(
      path: path,
      initialSchema: "CREATE TABLE a (id INTEGER PRIMARY KEY); INSERT INTO a VALUES (7);"
    )
    for _ in 0..<2 {
      let container = try await ModelContainer(configurations: configuration)
      #expect(container.stores[0].schema.entities.map(\.name) == ["a"])
    }
    #expect(try TestDatabase.texts(path, "SELECT id FROM a") == ["7"])
  }

  @Test func `an initial schema that fails or ends the transaction leaves no table`() async throws {
    let path = directory.file("new.db")
    for script in ["CREATE TABLE a (id); CREATE TABLE a (id)", "CREATE TABLE a (id); COMMIT"] {
      let error = await error(ModelConfiguration(path: path, initialSchema: script))
      #expect(error?.code == .invalidSQL)
      #expect(try TestDatabase.texts(path, "SELECT name FROM sqlite_schema").isEmpty)
    }
  }

  @Test func `a missing file is an error without an initial schema`() async {
    #expect(await error(ModelConfiguration(path: directory.file("none")))?.code == .fileAccess)
    let inNoFolder = ModelConfiguration(path: directory.file("no/where"), initialSchema: "")
    #expect(await error(inNoFolder)?.code == .fileAccess)
  }

  @Test func `a path that is empty or contains NUL is refused`() async {
    for path in ["", directory.file("a\0b")] {
      for schema in [nil, ""] {
        let configuration = ModelConfiguration(path: path, initialSchema: schema)
        let error = await error(configuration)
        #expect(error?.code == .fileAccess && error?.message.contains("path") == true)
      }
    }
    #expect(!FileManager.default.fileExists(atPath: directory.file("a")))
  }

  @Test func `a class that is given twice counts once`() async throws {
    let container = try await ModelContainer(
      for: [Badge.self, Person.self] + Family.types,
      configurations: [ModelConfiguration(inMemoryWith: Family.schema)]
    )
    #expect(container.stores[0].schema.entities.count { $0.name == "Badge" } == 1)
  }

  @Test func `each container has its own store in memory`() async throws {
    let configuration = ModelConfiguration(
      inMemoryWith: "CREATE TABLE a (id INTEGER PRIMARY KEY); INSERT INTO a VALUES (1), (2)"
    )
    let first = try await ModelContainer(configurations: configuration)
    let second = try await ModelContainer(configurations: configuration)
    #expect(configuration.isStoredInMemoryOnly && configuration.url == nil)
    #expect(first.stores[0].identity != second.stores[0].identity)
    #expect(try await first.stores[0].fetchCount(FetchRequest(entity: "a")) == 2)
  }

  @Test func `a container refuses two stores with one UUID`() async throws {
    let path = try TestDatabase.makeNumbers(1, in: directory)
    let configuration = ModelConfiguration(path: path)
    #expect(await error(configuration, configuration)?.code == .ambiguousStore)
  }

  @Test func `an identifier resolves only in a container that has its store`() async throws {
    let one = try await ModelContainer(
      configurations: ModelConfiguration(path: try TestDatabase.makeNumbers(3, in: directory)),
      ModelConfiguration(inMemoryWith: "CREATE TABLE pairs (a, b, PRIMARY KEY (a, b))")
    )
    let numbers = "x-coredata://\(one.stores[0].identity.uuid)/numbers"
    let pairs = "x-coredata://\(one.stores[1].identity.uuid)/pairs"
    for text in ["\(numbers)/p1", "\(numbers)/p999", "\(pairs)/p=a,2"] {
      #expect(one.identifier(for: text)?.uriString == text, "\(text)")
      let uri = try #require(URL(string: text))
      #expect(one.identifier(forURI: uri)?.uriRepresentation == uri)
    }
    let malformed = [
      "", "numbers", "\(numbers)", "\(numbers)/p", "\(numbers)/1", "\(numbers)/p=a,2",
      "\(numbers)/p=a", "\(numbers)/pabc", "\(numbers)/p1/2", "\(pairs)/p1", "\(pairs)/p=a,2,3",
      numbers.replacing("numbers", with: "pairs") + "/p1", numbers.replacing("numbers", with: "x"),
      "http://\(one.stores[0].identity.uuid)/numbers/p1", "x-coredata:///numbers/p1",
      "x-coredata://\(UUID().uuidString)/numbers/p1",
      "x-coredata:///numbers/t6E5D1507-3E60-41F0-A5F7-C1F28DC63F402",
      "x-swiftdata://numbers/6E5D1507-3E60-41F0-A5F7-C1F28DC63F40",
      "x-developer-provided://\(one.stores[0].identity.uuid)/numbers/1",
    ]
    for text in malformed { #expect(one.identifier(for: text) == nil, "\(text)") }
  }

  @Test func `an entity and a key make an identifier if exactly one store has the entity`()
    async throws
  {
    let path = try Shop.make(in: directory)
    let container = try await Shop.open(path)
    let made = try container.identifier(ofEntity: "car", key: .integer(3))
    #expect(made.uriString == "x-coredata://\(container.stores[0].identity.uuid)/Car/p3")
    let context = ModelContext(container)
    #expect(try context.existingModel(for: made) is ExpensiveSportCar)
    let ada = try container.identifier(ofEntity: "people", key: .text("Ada"))
    #expect(try context.existingModel(for: ada)["age"] == .integer(36))
    for (entity, key, code) in [
      ("cra", .integer(1), .unknownEntity), ("Car", .text("1"), .invalidIdentifier),
    ] as [(String, PrimaryKey, BatchError.Code)] {
      let error = #expect(throws: BatchError.self) {
        try container.identifier(ofEntity: entity, key: key)
      }
      #expect(error?.code == code)
    }
    let two = try await ModelContainer(
      configurations: ModelConfiguration(inMemoryWith: "CREATE TABLE a (id INTEGER PRIMARY KEY)"),
      ModelConfiguration(inMemoryWith: "CREATE TABLE a (id INTEGER PRIMARY KEY)")
    )
    let error = #expect(throws: BatchError.self) {
      try two.identifier(ofEntity: "a", key: .integer(1))
    }
    #expect(error?.code == .ambiguousStore)
  }
}
