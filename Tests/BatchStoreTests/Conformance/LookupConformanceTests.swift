import BatchIdentifiers
import BatchStore
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

  /// Takes the table away, so that any reading of it fails.
  private func forbidReading(_ table: String) throws {
    try TestDatabase.make(in: directory, "DROP TABLE \(table)")
  }

  private func code<Result>(_ body: () throws -> Result) -> BatchError.Code? {
    #expect(throws: BatchError.self) { _ = try body() }?.code
  }

  @Test func `C10 a temporary id yields nothing in another context`() async throws {
    let context = ModelContext(try await Shop.open(path))
    let identifier = PersistentIdentifier.temporary(entityName: "Order")
    let registered: ManagedObject? = context.registeredModel(for: identifier)
    #expect(registered == nil)
    #expect(context[identifier, as: Order.self] == nil)
    #expect(code { try context.existingModel(for: identifier) } == .objectNotFound)
  }

  @Test
  func
    `C17 an id of a store that a container does not have is refused; a URI resolves where the store is`()
    async throws
  {
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
  func
    `C19 identifier(forURI:) is nil for an unknown store, entity or scheme and for a temporary URI`()
    async throws
  {
    let container = try await Shop.open(path)
    let uuid = container.stores[0].identity.uuid
    for text in [
      "x-coredata://\(UUID().uuidString)/Order/p1", "x-coredata://\(uuid)/orders/p1",
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
    // The id of a super-entity finds the object; that of a sibling or a sub-entity finds none.
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

  @Test func `C27 model(for:) never returns nil, does no I/O, returns a fault for unknown ids`()
    async throws
  {
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    try forbidReading("orders")
    #expect(context.model(for: identifier("Order", 999, in: container)).isFault)
    let foreign = PersistentIdentifier(storeIdentifier: "X", entityName: "Y", key: .integer(1))
    #expect(context.model(for: foreign).isFault)
    #expect(code { try context.model(for: foreign).value(forKey: "a") } == .foreignIdentifier)
  }

  @Test func `C28 firing a fault with no row fails, and is no silent empty object`() async throws {
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
  }

  @Test
  func `C35 the same id twice is the same instance in one context, and different ones in two`()
    async throws
  {
    let container = try await Shop.open(path)
    let (first, second) = (ModelContext(container), ModelContext(container))
    let identifier = identifier("Order", 1, in: container)
    let order = first.model(for: identifier)
    #expect(try first.existingModel(for: identifier) === order)
    #expect(try first.fetch(Order.self, limit: 1).first === order)
    #expect(second.model(for: identifier) !== order)
  }

  @Test func `C36 actor[id, as: Wrong.self] is nil; actor[id, as: Right.self] returns it`()
    async throws
  {
    let container = try await Shop.open(path)
    let background = container.newBackgroundContext()
    let identifier = identifier("SportCar", 2, in: container)
    #expect(await background.isPresent(identifier, as: SportCar.self))
    #expect(await background.isPresent(identifier, as: Car.self))
    #expect(await !background.isPresent(identifier, as: Order.self))
  }

  @Test
  func `C37 the URI look-up: a non-fault at once, a fault verified, missing and bad ones nil`()
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

  @Test func `C70 performAndWait is re-entrant; perform runs on the context's own executor`()
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

  @Test func `C72 shouldDeleteInaccessibleFaults: true gives deleted and zeroed, false an error`()
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
    self[identifier, as: type] != nil
  }
}
