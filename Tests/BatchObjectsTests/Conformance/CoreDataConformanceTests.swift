import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Stores written by Core Data, read by their model; each fixture as a whole.
@Suite struct CoreDataConformanceTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func context(_ fixture: CoreDataFixture) async throws -> ModelContext {
    let path = directory.file(fixture.rawValue)
    if !FileManager.default.fileExists(atPath: path) {
      try fixture.copy(to: directory, as: fixture.rawValue)
    }
    return ModelContext(
      try await ModelContainer(configurations: ModelConfiguration(path: path))
    )
  }

  /// The result of a statement on the store's own tables.
  private func rows(_ fixture: CoreDataFixture, _ sql: String) throws -> [[SQLValue]] {
    try fixture.copy(to: directory, as: "own.sqlite")
    defer { try? FileManager.default.removeItem(atPath: directory.file("own.sqlite")) }
    return try TestDatabase.rows(directory.file("own.sqlite"), sql)
  }

  // MARK: Names

  @Test func `C166 entities have the names and hierarchy of Z_PRIMARYKEY`()
    async throws
  {
    let expected: [CoreDataFixture: [String: String?]] = [
      .cars: ["Car": nil, "SportCar": "Car", "ExpensiveSportCar": "SportCar", "Person": nil],
      .books: [
        "Book": nil, "GraphicNovel": "Book", "Feedback": nil, "Page": nil, "Writer": nil,
        "Author": "Writer",
      ],
      .families: ["Letter": nil, "Party": nil, "Company": "Party", "Person": "Party", "Tag": nil],
    ]
    for fixture in CoreDataFixture.allCases {
      let store = try await Store(path: fixture.path)
      let model = try #require(store.coreData)
      #expect(model.isCached)
      #expect(store.identity.uuid == fixture.uuid)
      let found = Dictionary(
        uniqueKeysWithValues: model.entities.map { ($0.name, $0.superentity) }
      )
      #expect(found == expected[fixture])
      #expect(Set(store.schema.entities.map(\.name)) == Set(found.keys))
      #expect(store.schema.entities.allSatisfy { $0.kind == .model })
    }
  }

  @Test func `C167 the URI of an object names store, entity and key, and resolves`() async throws {
    for fixture in CoreDataFixture.allCases {
      let context = try await context(fixture)
      let model = try #require(context.container.stores[0].coreData)
      for entity in model.entities {
        let stored = try rows(
          fixture,
          "SELECT Z_PK FROM \(entity.table) WHERE Z_ENT = \(entity.number) ORDER BY Z_PK"
        )
        let objects = try context.fetch(
          FetchRequest(entity: entity.name, where: "Z_ENT = \(entity.number)")
        )
        #expect(objects.count == stored.count, "\(entity.name)")
        for (object, row) in zip(objects, stored) {
          guard case .integer(let key) = row[0] else { continue }
          let uri = "x-coredata://\(fixture.uuid)/\(entity.name)/p\(key)"
          #expect(object.persistentModelID.uriString == uri)
          let identifier = try #require(context.container.identifier(for: uri))
          #expect(try context.existingModel(for: identifier) === object)
        }
      }
    }
  }

  @Test func `C168 attributes have the model's names and types in every entity`() async throws {
    let expected: [CoreDataFixture: [String: [String: String]]] = [
      .cars: [
        "Car": Self.car, "SportCar": Self.car,
        "ExpensiveSportCar": Self.car.merging(["isLimitedEdition": "BOOLEAN"]) { $1 },
        "Person": [
          "Z_PK": "INTEGER", "updatedAt": "DATE TEXT", "firstName": "TEXT", "lastName": "TEXT",
          "id": "UUID TEXT",
        ],
      ],
      .books: [
        "Book": Self.book,
        "GraphicNovel": Self.book.merging(["isBlackAndWhite": "BOOLEAN"]) { $1 },
        "Feedback": [
          "Z_PK": "INTEGER", "rating": "REAL", "authorAlias": "TEXT", "comment": "TEXT",
          "bookID": "UUID TEXT",
        ],
        "Page": [
          "Z_PK": "INTEGER", "isBookmarked": "BOOLEAN", "number": "INTEGER", "book": "INTEGER",
          "content": "BLOB",
        ],
        "Writer": ["Z_PK": "INTEGER", "age": "INTEGER"],
        "Author": ["Z_PK": "INTEGER", "age": "INTEGER", "alias": "TEXT", "siteURL": "URI TEXT"],
      ],
      .families: [
        "Letter": ["Z_PK": "INTEGER", "sentAt": "DATE TEXT", "sender": "INTEGER"],
        "Party": ["Z_PK": "INTEGER", "name": "TEXT"],
        "Company": ["Z_PK": "INTEGER", "name": "TEXT", "note": "TEXT"],
        "Person": [
          "Z_PK": "INTEGER", "name": "TEXT", "note": "TEXT", "bornAt": "DATE TEXT",
          "isAlive": "BOOLEAN", "key": "UUID TEXT",
        ],
        "Tag": ["Z_PK": "INTEGER", "text": "TEXT"],
      ],
    ]
    for fixture in CoreDataFixture.allCases {
      for entity in try await Store(path: fixture.path).schema.entities {
        let types = Dictionary(
          uniqueKeysWithValues: entity.attributes.map { ($0.name, $0.type) }
        )
        #expect(types == expected[fixture]?[entity.name], "\(entity.name)")
      }
    }
  }

  private static let car = [
    "Z_PK": "INTEGER", "owner": "INTEGER", "markedForDeletionAsOf": "DATE TEXT", "maker": "TEXT",
    "model": "TEXT", "numberPlate": "TEXT", "color": "BLOB",
  ]
  private static let book = [
    "Z_PK": "INTEGER", "pagesCount": "INTEGER", "author": "INTEGER", "publishedAt": "DATE TEXT",
    "price": "DECIMAL", "title": "TEXT", "uniqueID": "UUID TEXT", "cover": "BLOB",
  ]

  @Test func `C169 siblings store attributes of the same name in separate columns`() async throws {
    let context = try await context(.families)
    let parties = try context.fetch(FetchRequest(entity: "Party"))
    #expect(
      parties.map(\.persistentModelID.entityName) == [
        "Person", "Person", "Person", "Company", "Person",
      ]
    )
    #expect(parties[0]["note"] == .text("a person's"))
    #expect(parties[3]["note"] == .text("a company's"))
    #expect(throws: BatchError.self) { try parties[3].value(forKey: "bornAt") }
  }

  // MARK: Values

  @Test func `C170 a date is the moment that Core Data stored, in ISO 8601`() async throws {
    let attributes: [CoreDataFixture: [(entity: String, name: String, column: String, sql: String)]]
    attributes = [
      .cars: [
        ("Person", "updatedAt", "ZUPDATEDAT", "ZPERSON"),
        ("Car", "markedForDeletionAsOf", "ZMARKEDFORDELETIONASOF", "ZCAR"),
      ],
      .books: [("Book", "publishedAt", "ZPUBLISHEDAT", "ZBOOK")],
      .families: [
        ("Person", "bornAt", "ZBORNAT", "ZPARTY WHERE Z_ENT = 4"),
        ("Letter", "sentAt", "ZSENTAT", "ZLETTER"),
      ],
    ]
    let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    for (fixture, attributes) in attributes {
      let context = try await context(fixture)
      for (entity, name, column, table) in attributes {
        let stored = try rows(fixture, "SELECT \(column) FROM \(table) ORDER BY Z_PK")
        let objects = try context.fetch(FetchRequest(entity: entity))
        #expect(objects.count == stored.count)
        for (object, row) in zip(objects, stored) {
          let seconds: Double? =
            switch row[0] {
            case .real(let seconds): seconds
            case .integer(let seconds): Double(seconds)
            default: nil
            }
          // A time after the year 9999 has no such text.
          guard let seconds, seconds < 1e12 else {
            #expect(object[name] == row[0])
            continue
          }
          guard case .text(let text) = object[name] else {
            Issue.record("\(entity).\(name) is \(object[name])")
            continue
          }
          let date = try Date(text, strategy: style)
          #expect(abs(date.timeIntervalSinceReferenceDate - seconds) < 0.001, "\(text)")
        }
      }
    }
    let person = try await context(.cars).fetch(FetchRequest(entity: "Person"))[0]
    #expect(person["updatedAt"] == .text("2021-04-07T15:52:49.639Z"))
  }

  @Test func `C171 a UUID is its text, and every other value is as stored`() async throws {
    for fixture in CoreDataFixture.allCases {
      let context = try await context(fixture)
      let model = try #require(context.container.stores[0].coreData)
      for entity in model.entities {
        let schema = try context.container.stores[0].schema.entity(named: entity.name)
        let columns = try schema.attributes.map { attribute in
          try #require(entity.column(ofAttribute: attribute.name)).column
        }
        let numbers = entity.members.map { "\($0)" }.joined(separator: ", ")
        let stored = try rows(
          fixture,
          """
          SELECT \(columns.joined(separator: ", ")) FROM \(entity.table)
          WHERE Z_ENT IN (\(numbers)) ORDER BY Z_PK
          """
        )
        let objects = try context.fetch(FetchRequest(entity: entity.name))
        #expect(objects.count == stored.count)
        for (object, row) in zip(objects, stored) {
          for (attribute, value) in zip(schema.attributes, row) {
            let found = object[attribute.name]
            switch (attribute.type, value) {
            case ("DATE TEXT", _): break
            case ("UUID TEXT", .blob(let bytes)) where bytes.count == 16:
              #expect(found == .text(UUID(bytes).uuidString))
            default: #expect(found == value, "\(entity.name).\(attribute.name)")
            }
          }
        }
      }
    }
  }

  // MARK: Hierarchies

  @Test func `C172 an entity has the rows of its own number and of its sub-entities`() async throws
  {
    let counts: [CoreDataFixture: [String: Int]] = [
      .cars: ["Car": 125, "SportCar": 10, "ExpensiveSportCar": 5, "Person": 20],
      .books: [
        "Book": 52, "GraphicNovel": 1, "Feedback": 444, "Page": 4970, "Writer": 2, "Author": 2,
      ],
      .families: ["Party": 5, "Person": 4, "Company": 1, "Letter": 2, "Tag": 2],
    ]
    for (fixture, counts) in counts {
      let context = try await context(fixture)
      for (entity, count) in counts {
        let request = FetchRequest(entity: entity)
        #expect(try context.fetchCount(request) == count, "\(entity)")
        #expect(try context.fetchIdentifiers(request).count == count, "\(entity)")
      }
    }
    let context = try await context(.cars)
    func count(_ entity: String, _ condition: String) throws -> Int {
      try context.fetchCount(FetchRequest(entity: entity, where: condition))
    }
    #expect(try count("Car", "maker = 'FIAT'") == 103)
    #expect(try count("Car", "maker = 'McLaren'") == 2)
    #expect(try count("SportCar", "maker = 'McLaren' AND Z_ENT = 2") == 1)
    #expect(try count("ExpensiveSportCar", "maker = 'McLaren'") == 1)
  }

  @Test
  func `C173 the object of a row has the row's own entity, whatever name is requested`()
    async throws
  {
    let context = try await context(.cars)
    let cars = try context.fetch(FetchRequest(entity: "Car"))
    var counts: [String: Int] = [:]
    for car in cars { counts[car.persistentModelID.entityName, default: 0] += 1 }
    #expect(counts == ["Car": 115, "SportCar": 5, "ExpensiveSportCar": 5])
    let car = try #require(
      cars.first { $0.persistentModelID.entityName == "ExpensiveSportCar" }
    )
    let key = try #require(car.persistentModelID.key)
    for name in ["Car", "SportCar", "ExpensiveSportCar"] {
      let identifier = try context.container.identifier(ofEntity: name, key: key)
      #expect(try context.existingModel(for: identifier) === car)
    }
  }

  // MARK: Relationships

  @Test func `C174 a to-one relationship leads to its object, and its inverse to all its objects`()
    async throws
  {
    let context = try await context(.cars)
    let persons = try context.fetch(FetchRequest(entity: "Person"))
    var found = 0
    for person in persons {
      for car in try person.relatedObjects(forKey: "cars") {
        #expect(try car.relatedObject(forKey: "owner") === person)
        found += 1
      }
    }
    let owned = try rows(.cars, "SELECT count(*) FROM ZCAR WHERE ZOWNER IS NOT NULL")
    #expect(owned == [[.integer(Int64(found))]])

    let books = try await self.context(.books)
    let author = try books.fetch(FetchRequest(entity: "Author", where: "alias = 'Andrea'"))[0]
    #expect(try author.relatedObjects(forKey: "books").count == 49)
    var pages = 0
    for book in try books.fetch(FetchRequest(entity: "Book")) {
      let related = try book.relatedObjects(forKey: "pages")
      #expect(book["pagesCount"] == .integer(Int64(related.count)))
      #expect(try related.allSatisfy { try $0.relatedObject(forKey: "book") === book })
      pages += related.count
    }
    #expect(pages == 4970)
  }

  @Test func `C175 many-to-many relationships are found in their tables of pairs`()
    async throws
  {
    let context = try await context(.families)
    let objects = try context.fetch(FetchRequest(entity: "Person"))
    let persons = Dictionary(uniqueKeysWithValues: objects.map { ("\($0["name"])", $0) })
    func related(_ name: String, _ relationship: String, by attribute: String = "name") throws
      -> [String]
    {
      let person = try #require(persons["\(SQLValue.text(name))"])
      return try person.relatedObjects(forKey: relationship).map { object in
        if case .text(let text) = object[attribute] { text } else { "" }
      }
    }
    #expect(try related("Ada", "children") == ["Cleo"])
    #expect(try related("Cleo", "parents") == ["Ada", "Ben"])
    #expect(try related("Cleo", "children") == ["Dan"])
    #expect(try related("Dan", "parents") == ["Cleo"])
    #expect(try related("Ada", "friends") == ["Ben"])
    #expect(try related("Ben", "friends") == ["Ada"])
    #expect(try related("Ada", "tags", by: "text") == ["old", "new"])
    let tag = try context.fetch(FetchRequest(entity: "Tag"))[0]
    #expect(
      try tag.relatedObjects(forKey: "people").map { $0["name"] } == [.text("Ada"), .text("Ben")]
    )
    // Join tables are not entities.
    #expect(context.container.stores[0].schema.entities.allSatisfy { !$0.name.hasPrefix("Z") })
  }

  @Test
  func `C176 a one-way relationship is kept on the other side, one to a hierarchy in two columns`()
    async throws
  {
    let context = try await context(.families)
    let cleo = try context.fetch(FetchRequest(entity: "Person", where: "name = 'Cleo'"))[0]
    let letters = try cleo.relatedObjects(forKey: "letters")
    #expect(letters.count == 2)
    let senders = try letters.map { try #require(try $0.relatedObject(forKey: "sender")) }
    #expect(senders.map(\.persistentModelID.entityName) == ["Person", "Company"])
    #expect(senders.map { $0["name"] } == [.text("Ada"), .text("Works")])
  }

  // MARK: What is missing

  @Test func `C177 a store without its model has the entities, and attributes named after columns`()
    async throws
  {
    let path = try CoreDataFixture.cars.copy(to: directory)
    try TestDatabase.make("store.sqlite", in: directory, "DROP TABLE Z_MODELCACHE")
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    #expect(container.stores[0].coreData?.isCached == false)
    let context = ModelContext(container)
    let person = try context.fetch(FetchRequest(entity: "Person"))[0]
    #expect(person.persistentModelID.uriString.hasSuffix("/Person/p1"))
    #expect(person["firstname"] == .text("Victoria"))
    #expect(person["updatedat"] == .text("2021-04-07T15:52:49.639Z"))
    // SQLite ignores case.
    #expect(
      try context.fetchCount(
        FetchRequest(entity: "Person", where: "firstName = 'Victoria' AND LASTNAME = 'Coster'")
      ) == 1
    )
    #expect(try context.fetchCount(FetchRequest(entity: "SportCar")) == 10)
  }

  @Test func `C178 a damaged model counts as missing`() async throws {
    let path = try CoreDataFixture.cars.copy(to: directory)
    for content in ["NULL", "zeroblob(100)", "'text'", "randomblob(1000)", "x'62706c6973743030'"] {
      try TestDatabase.make(
        "store.sqlite",
        in: directory,
        "UPDATE Z_MODELCACHE SET Z_CONTENT = \(content)"
      )
      let store = try await Store(path: path)
      #expect(store.coreData?.isCached == false, "\(content)")
      #expect(try await store.fetchIdentifiers(FetchRequest(entity: "SportCar")).count == 10)
    }
  }

  // MARK: Reading only

  @Test func `C179 a Core Data store is read-only and refuses to save`() async throws {
    let context = try await context(.cars)
    let before = try directory.contents()
    #expect(context.container.stores[0].isReadOnly)
    let car = try context.fetch(FetchRequest(entity: "Car"))[0]
    car["maker"] = .text("FCA")
    #expect(throws: BatchError.self) { try context.save() }
    context.rollback()
    #expect(throws: BatchError.self) { try context.insertNewObject(ofEntity: "Car") }
    context.delete(car)
    #expect(throws: BatchError.self) { try context.save() }
    #expect(try directory.changes(since: before) == [])
  }

  @Test func `C180 reading a store with a write-ahead log changes no byte and creates no file`()
    async throws
  {
    // As a killed app leaves it: the log has a row that the file lacks.
    let path = try CoreDataFixture.cars.copy(to: directory)
    let writer = try Connection(path: path)
    try writer.execute("PRAGMA journal_mode = WAL")
    try writer.execute("PRAGMA wal_autocheckpoint = 0")
    try writer.execute(
      "INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZFIRSTNAME) VALUES (21, 4, 1, 'Zoe')"
    )
    for (suffixes, count) in [(["", "-wal", "-shm"], 21), (["", "-wal"], 21), ([""], 20)] {
      let folder = try TemporaryDirectory()
      for suffix in suffixes {
        try Data(directory.read("store.sqlite\(suffix)"))
          .write(to: URL(fileURLWithPath: folder.file("a ?#%.sqlite\(suffix)")))
      }
      let before = try folder.contents()
      let configuration = ModelConfiguration(path: folder.file("a ?#%.sqlite"))
      let container = try await ModelContainer(configurations: configuration)
      let context = ModelContext(container)
      #expect(container.stores[0].journalMode == "wal")
      #expect(try context.fetchCount(FetchRequest(entity: "Person")) == count, "\(suffixes)")
      #expect(try context.fetch(FetchRequest(entity: "Person")).count == count)
      #expect(try folder.changes(since: before) == [], "\(suffixes)")
      withExtendedLifetime(context) {}
    }
    try writer.execute("SELECT 1")
  }
}

extension UUID {
  /// A UUID of 16 bytes.
  fileprivate init(_ bytes: [UInt8]) {
    self = bytes.withUnsafeBytes { $0.loadUnaligned(as: UUID.self) }
  }
}
