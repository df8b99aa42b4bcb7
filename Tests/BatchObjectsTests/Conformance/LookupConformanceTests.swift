import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct LookupConformanceTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Shop.make(in: directory)
  }

  private func identifier(_ entity: String, _ key: Int64, in container: ModelContainer)
    -> PersistentIdentifier
  {
    PersistentIdentifier(
      storeIdentifier: container.stores[0].identity.uuid,
      entityName: entity,
      key: .integer(key)
    )
  }

  /// Removes the table, so that every read of it fails.
  private func forbidReading(_ table: String) throws {
    try TestDatabase.make(in: directory, "DROP TABLE \(table)")
  }

  private func code<Result>(_ body: () throws -> Result) -> BatchError.Code? {
    #expect(throws: BatchError.self) { _ = try body() }?.code
  }

  @Test func `C10 a temporary id gives no object in another context`() async throws {
    let container = try await Shop.open(path)
    let (own, context) = (ModelContext(container), ModelContext(container))
    let car = Car()
    car.maker = "Lotus"
    own.insert(car)
    let identifier = car.persistentModelID
    // Both before and after the object is saved.
    for isSaved in [false, true] {
      let registered: ManagedObject? = context.registeredModel(for: identifier)
      #expect(registered == nil)
      #expect(context[identifier, as: Car.self] == nil)
      #expect(code { try context.existingModel(for: identifier) } == .objectNotFound)
      let fault = context.model(for: identifier)
      #expect(code { try fault.value(forKey: "maker") } == .foreignIdentifier)
      #expect(try context.fetch([identifier], as: Car.self, skippingMissing: true).isEmpty)
      #expect(own[identifier, as: Car.self] == (isSaved ? nil : car))
      try own.save()
    }
  }

  @Test func `C17 an id resolves only in a container that has its store`() async throws {
    let container = try await Shop.open(path)
    let other = try await ModelContainer(
      configurations: ModelConfiguration(inMemoryWith: "CREATE TABLE \"Order\" (id PRIMARY KEY)")
    )
    let identifier = identifier("Order", 1, in: container)
    let context = ModelContext(other)
    #expect(code { try context.existingModel(for: identifier) } == .foreignIdentifier)
    let again = try await Shop.open(path)
    #expect(again.identifier(forURI: identifier.uriRepresentation) == identifier)
  }

  @Test func `C18 identifier(forURI:) succeeds for a row that does not exist`() async throws {
    let container = try await Shop.open(path)
    let identifier = identifier("Order", 999, in: container)
    #expect(container.identifier(forURI: identifier.uriRepresentation) == identifier)
  }

  @Test
  func `C19 identifier(forURI:) is nil for unknown stores, entities or schemes and temporary ids`()
    async throws
  {
    let container = try await Shop.open(path)
    let uuid = container.stores[0].identity.uuid
    for text in [
      "x-coredata://\(UUID().uuidString)/Order/p1", "x-coredata://\(uuid)/nosuch/p1",
      "https://\(uuid)/Order/p1", "x-coredata:///Order/t6E5D1507-3E60-41F0-A5F7-C1F28DC63F402",
    ] {
      #expect(container.identifier(forURI: try #require(URL(string: text))) == nil, "\(text)")
    }
  }

  @Test func `C20 identifier(for: String) equals the URL form`() async throws {
    let container = try await Shop.open(path)
    let text = identifier("Car", 2, in: container).uriString
    let uri = try #require(URL(string: text))
    #expect(container.identifier(for: text) == container.identifier(forURI: uri))
    #expect(container.identifier(for: text) != nil)
  }

  @Test func `C21 copying the file keeps the store UUID; both copies give the same URIs`()
    async throws
  {
    let first = try await Shop.open(path)
    let copy = directory.file("copy.db")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    let second = try await Shop.open(copy)
    let uris = try [first, second].map {
      try ModelContext($0).fetch(Car.self).map(\.persistentModelID.uriString)
    }
    #expect(uris[0] == uris[1])
  }

  @Test
  func `C24 a sub-entity row's id names the sub-entity; the key is unique across the hierarchy`()
    async throws
  {
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    let cars = try context.fetch(Car.self)
    #expect(
      cars.map(\.persistentModelID.entityName) == ["Car", "SportCar", "ExpensiveSportCar", "Car"]
    )
    #expect(Set(cars.map(\.persistentModelID.primaryKey)).count == 4)
    #expect((cars[1] as? SportCar)?.topSpeed == 330)
    // The identifier of a super-entity finds the object; that of a sibling or sub-entity does not.
    let found: Car = try context.existingModel(for: identifier("Car", 3, in: container))
    #expect(found === cars[2])
    #expect(context[identifier("SportCar", 1, in: container), as: Car.self] == nil)
  }

  @Test func `C26 registeredModel(for:) never does I/O; nil for an unregistered existing row`()
    async throws
  {
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    let order = try #require(try context.fetch(Order.self, limit: 1).first)
    try forbidReading("orders")
    #expect(context.registeredModel(for: order.persistentModelID) === order)
    let other: Order? = context.registeredModel(for: identifier("Order", 2, in: container))
    #expect(other == nil)
  }

  @Test
  func `C27 model(for:) never returns nil, and reads a row only to find its class in a hierarchy`()
    async throws
  {
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    try forbidReading("orders")
    #expect(context.model(for: identifier("Order", 999, in: container)).isFault)
    // The exception: only the row knows its class within a hierarchy.
    #expect(!context.model(for: identifier("Car", 1, in: container)).isFault)
    #expect(context.model(for: identifier("Car", 999, in: container)).isFault)
    try forbidReading("cars")
    #expect(context.model(for: identifier("ExpensiveSportCar", 3, in: container)).isFault)
    #expect(context.model(for: identifier("Car", 2, in: container)).isFault)
    let foreign = PersistentIdentifier(storeIdentifier: "X", entityName: "Y", key: .integer(1))
    #expect(context.model(for: foreign).isFault)
    #expect(code { try context.model(for: foreign).value(forKey: "a") } == .foreignIdentifier)
  }

  @Test func `C28 firing a fault without a row fails and returns no empty object`() async throws {
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    let fault = context.model(for: identifier("Order", 999, in: container))
    #expect(code { try fault.value(forKey: "price") } == .objectNotFound)
    #expect(fault["price"] == .null)
    #expect(code { try context.fetchCount(.init(entity: "Order")) } == .objectNotFound)
  }

  @Test func `C29 existingModel(for:) throws for an id that is neither registered nor stored`()
    async throws
  {
    let container = try await Shop.open(path)
    let missing = identifier("Order", 999, in: container)
    #expect(code { try ModelContext(container).existingModel(for: missing) } == .objectNotFound)
  }

  @Test func `C30 existingModel(for:) on a fresh stack returns a non-fault with values`()
    async throws
  {
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    let order: Order = try context.existingModel(for: identifier("Order", 2, in: container))
    #expect(!order.isFault)
    #expect(order.price == 200)
  }

  @Test func `C34 existingModel(for:) on a registered fault whose row vanished throws`()
    async throws
  {
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    let fault = context.model(for: identifier("Order", 2, in: container))
    try TestDatabase.make(in: directory, "DELETE FROM orders WHERE id = 2")
    #expect(code { try context.existingModel(for: fault.persistentModelID) } == .objectNotFound)
    #expect(fault.isFault)
    // A property set on a fault does not prove that its row exists.
    let order: Order = try context.existingModel(for: identifier("Order", 1, in: container))
    order.price = 99
    context.refresh(order, mergeChanges: true)
    #expect(try context.existingModel(for: order.persistentModelID) === order)
    context.refresh(order, mergeChanges: true)
    try TestDatabase.make(in: directory, "DELETE FROM orders WHERE id = 1")
    #expect(code { try context.existingModel(for: order.persistentModelID) } == .objectNotFound)
    #expect(
      code { try context.fetch([order.persistentModelID], as: Order.self) } == .objectNotFound
    )
    #expect(order.changedValues == ["price": .integer(99)])
  }

  @Test func `C35 an id gives a single instance per context, and different ones in two contexts`()
    async throws
  {
    let container = try await Shop.open(path)
    let (first, second) = (ModelContext(container), ModelContext(container))
    let identifier = identifier("Order", 1, in: container)
    let order = first.model(for: identifier)
    #expect(try first.existingModel(for: identifier) === order)
    #expect(try first.fetch(Order.self, limit: 1).first === order)
    #expect(second.model(for: identifier) !== order)
    // Identifiers of a row's entity and of its super-entities refer to one object.
    for entities in [["Car", "SportCar"], ["SportCar", "Car"]] {
      let context = ModelContext(container)
      let cars = entities.map { context.model(for: self.identifier($0, 3, in: container)) }
      let fetched = try context.fetch(SportCar.self, where: "id = 3")
      #expect(fetched == [cars[0]] && cars[0] === cars[1])
      #expect(cars[0] is ExpensiveSportCar)
      #expect(cars[0].persistentModelID.entityName == "ExpensiveSportCar")
      #expect(context.registeredModels == fetched)
    }
  }

  @Test func `a row has one identifier, with the key as stored`() async throws {
    let path = try TestDatabase.make(
      "keys.db",
      in: directory,
      "CREATE TABLE codes (code TEXT PRIMARY KEY)",
      "CREATE TABLE names (name TEXT PRIMARY KEY COLLATE NOCASE) WITHOUT ROWID",
      "CREATE TABLE sizes (size REAL PRIMARY KEY)",
      "CREATE TABLE cases (name TEXT COLLATE NOCASE, n, PRIMARY KEY (name COLLATE BINARY))",
      """
      CREATE TABLE uses (id INTEGER PRIMARY KEY, code REFERENCES codes, name REFERENCES names,
        size REFERENCES sizes)
      """,
      "INSERT INTO codes VALUES ('5')",
      "INSERT INTO names VALUES ('Ada')",
      "INSERT INTO sizes VALUES (5)",
      "INSERT INTO cases VALUES ('Ada', 1), ('ada', 2)",
      "INSERT INTO uses VALUES (1, 5, 'ADA', 5), (2, '5', 'Ada', 5.0)"
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let context = ModelContext(container)
    func identifier(_ entity: String, _ key: PrimaryKey) -> PersistentIdentifier {
      PersistentIdentifier(
        storeIdentifier: container.stores[0].identity.uuid,
        entityName: entity,
        key: key
      )
    }
    let keys: [(String, PrimaryKey, [PrimaryKey])] = [
      ("codes", .text("5"), [.integer(5)]),
      ("names", .text("Ada"), [.text("ada"), .text("ADA")]),
      ("sizes", .encoded(EncodedKey([.real(5)])), [.integer(5), .text("5")]),
    ]
    for (entity, key, others) in keys {
      let object = try context.existingModel(for: identifier(entity, key))
      #expect(try context.fetch(FetchRequest(entity: entity)) == [object])
      for other in others {
        let other = identifier(entity, other)
        #expect(code { try context.existingModel(for: other) } == .objectNotFound, "\(other)")
        #expect(code { try context.fetch([other], as: ManagedObject.self) } == .objectNotFound)
        context.delete(context.model(for: other))
      }
    }
    // No object is to be deleted under the other key.
    try context.save()
    for (entity, _, _) in keys {
      #expect(try context.fetchCount(FetchRequest(entity: entity)) == 1)
    }
    for (name, n) in [("Ada", 1), ("ada", 2)] as [(String, Int64)] {
      let object = try context.existingModel(for: identifier("cases", .text(name)))
      #expect(object["n"] == .integer(n))
    }
    // References may write a key differently but mean the same object.
    let uses = try context.fetch(FetchRequest(entity: "uses"))
    for name in ["code", "name", "size"] {
      let related = try uses.map { try $0.relatedObject(forKey: name) }
      #expect(related[0] === related[1], "\(name)")
      #expect(try related[0]?.value(forKey: name) == uses[1].value(forKey: name), "\(name)")
    }
  }

  @Test func `an identifier with a text key that is not UTF-8 finds its row`() async throws {
    let path = try TestDatabase.make(
      "bytes.db",
      in: directory,
      "CREATE TABLE bytes (id TEXT PRIMARY KEY, n INTEGER)",
      "INSERT INTO bytes VALUES (CAST(x'61FF' AS TEXT), 1), (CAST(x'61FE' AS TEXT), 2), ('b', 3)"
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let list = try ModelContext(container).fetchIdentifiers(FetchRequest(entity: "bytes"))
    let context = ModelContext(container)
    let objects = try list.map { try context.existingModel(for: $0) }
    #expect(Set(objects.map { $0["n"] }) == [.integer(1), .integer(2), .integer(3)])
    #expect(try context.fetch(list, as: ManagedObject.self) == objects)
    for object in objects { object["n"] = .integer(9) }
    try context.save()
    context.delete(objects[0])
    try context.save()
    #expect(
      try TestDatabase.texts(path, "SELECT hex(id) FROM bytes WHERE n = 9 ORDER BY id")
        == ["61FF", "62"]
    )
  }

  @Test func `a row that moves to another entity gets another object`() async throws {
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    context.stalenessInterval = 0
    let cars = try context.fetch(Car.self)
    let ghost = context.model(for: identifier("Car", 9, in: container))
    #expect(ghost.isFault && type(of: ghost) == Car.self)
    try TestDatabase.make(
      in: directory,
      "UPDATE cars SET kind = 2 WHERE id IN (1, 4)",
      "INSERT INTO cars VALUES (9, 2, 'Lotus', 240)"
    )
    // Using the existing objects reports the move.
    context.refresh(cars[0], mergeChanges: false)
    #expect(code { try cars[0].value(forKey: "maker") } == .modelTypeMismatch)
    #expect(code { try ghost.value(forKey: "maker") } == .modelTypeMismatch)
    let sportCars = try context.fetch(SportCar.self, where: "kind = 2 AND id != 4")
    #expect(sportCars.map(\.maker) == ["FIAT", "McLaren", "Lotus"])
    #expect(sportCars[1] === cars[1])
    #expect(cars[0].modelContext == nil && ghost.modelContext == nil)
    // Unsaved changes are not lost.
    cars[3].maker = "Fiat"
    #expect(code { try context.fetch(SportCar.self) } == .mergeConflict)
    #expect(code { try context.save() } == .mergeConflict)
    context.rollback()
    #expect(try context.fetch(SportCar.self).count == 5)
  }

  @Test func `C36 actor[id, as: Wrong.self] is nil, and actor[id, as: Right.self] is the object`()
    async throws
  {
    let container = try await Shop.open(path)
    let background = container.newBackgroundContext()
    let identifier = identifier("SportCar", 2, in: container)
    #expect(await background.isPresent(identifier, as: SportCar.self))
    #expect(await background.isPresent(identifier, as: Car.self))
    #expect(await !background.isPresent(identifier, as: Order.self))
  }

  @Test func `C37 a URI look-up returns registered objects and existing rows, and nil otherwise`()
    async throws
  {
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    let uri = identifier("Order", 1, in: container).uriRepresentation
    let order = try #require(try context.model(with: uri))
    #expect(!order.isFault)
    try TestDatabase.make(in: directory, "DELETE FROM orders WHERE id = 1")
    #expect(try context.model(with: uri) === order)
    context.refresh(order, mergeChanges: false)
    #expect(try context.model(with: uri) == nil)
    #expect(try context.model(with: try #require(URL(string: "http://a/b/p1"))) == nil)
  }

  @Test func `C70 performAndWait is re-entrant, and perform runs on the context's own executor`()
    async throws
  {
    let background = try await Shop.open(path).newBackgroundContext()
    let counts = try await background.perform { context throws(BatchError) in
      background.assertIsolated()
      let outer = ObjectIdentifier(context)
      return try background.performAndWait { inner throws(BatchError) in
        [
          ObjectIdentifier(inner) == outer ? 1 : 0,
          try inner.fetchCount(FetchRequest(entity: "Order")),
        ]
      }
    }
    #expect(counts == [1, 4])
    #expect(background.performAndWait { $0.registeredModels.count } == 0)
  }

  @Test func `C72 shouldDeleteInaccessibleFaults gives a deleted, zeroed object and no error`()
    async throws
  {
    let container = try await Shop.open(path)
    for deletes in [true, false] {
      let context = ModelContext(container)
      context.shouldDeleteInaccessibleFaults = deletes
      let missing = identifier("Order", 999, in: container)
      let fault = try #require(context.model(for: missing) as? Order)
      #expect(fault.price == 0)
      #expect(fault.isDeleted == deletes)
      if deletes {
        #expect(try context.fetchCount(FetchRequest(entity: "Order")) == 4)
      } else {
        #expect(code { try context.fetchCount(.init(entity: "Order")) } == .objectNotFound)
      }
    }
  }
}

extension ModelActor {
  fileprivate func isPresent<Model: ManagedObject & SendableMetatype>(
    _ identifier: PersistentIdentifier,
    as type: Model.Type
  ) -> Bool {
    self[identifier, as: type]?.persistentModelID == identifier
  }
}
