import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct ModelContextTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Shop.make(in: directory)
  }

  @Test func `properties have the values of their columns`() async throws {
    let context = ModelContext(try await Shop.open(path))
    let orders = try context.fetch(Order.self, where: "id < :id", parameters: ["id": .integer(4)])
    #expect(orders.map(\.price) == [100, 200, 300])
    #expect(orders.map(\.note) == [nil, "two", "three"])
    #expect(orders[0].created == orders[2].created)
    #expect(orders[1].created.timeIntervalSince(orders[0].created) == 0.25)
    #expect(orders[1].shipped == Date(timeIntervalSince1970: 86400.5))
    #expect(orders.map(\.state) == [.open, .paid, .open])
    #expect(orders.map(\.address) == [nil, Order.Address(city: "Bonn"), nil])
    #expect(orders.map(\.isGift) == [false, true, false])
    #expect(orders[1]["price"] == .integer(200))
  }

  @Test func `a table without a class has dynamic objects`() async throws {
    let context = ModelContext(try await Shop.open(path))
    let people = try context.fetch(FetchRequest(entity: "people", orderBy: [.init("age")]))
    #expect(people.map { $0["name"] } == [.text("Bob"), .text("Ada")])
    #expect(people[0].persistentModelID.primaryKey == "p=Bob")
    let error = #expect(throws: BatchError.self) { try people[0].value(forKey: "nam") }
    #expect(error?.code == .unknownAttribute)
    #expect(error?.remedy == "did you mean \"name\"?")
  }

  @Test func `the error of a row that does not fit its class names row and attribute`() async throws
  {
    let context = ModelContext(try await Shop.open(path))
    let error = #expect(throws: BatchError.self) { try context.fetch(Order.self) }
    #expect(error?.code == .valueMismatch)
    #expect(error?.place?.hasSuffix("/Order/p4") == true)
    #expect(error?.message.contains("\"price\" is declared Int") == true)
  }

  @Test func `an error in a getter is thrown once by the next throwing call`() async throws {
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    let uri = "x-coredata://\(container.stores[0].identity.uuid)/Order"
    for (key, code) in [("p4", BatchError.Code.valueMismatch), ("p9", .objectNotFound)] {
      let identifier = try #require(container.identifier(for: "\(uri)/\(key)"))
      let order = try #require(context.model(for: identifier) as? Order)
      #expect(order.price == 0)
      #expect(order.note == nil)
      #expect(order.isFault)
      let error = #expect(throws: BatchError.self) {
        try context.fetchCount(.init(entity: "Order"))
      }
      #expect(error?.code == code)
      #expect(try context.fetchCount(FetchRequest(entity: "Order")) == 4)
    }
  }

  @Test func `an object of a reset context has no values`() async throws {
    let context = ModelContext(try await Shop.open(path))
    let order = try #require(try context.fetch(Order.self, limit: 1).first)
    context.reset()
    #expect(context.registeredModels.isEmpty)
    let error = #expect(throws: BatchError.self) { try order.value(forKey: "price") }
    #expect(error?.code == .noContext)
  }

  @Test func `a reset also removes a deleted object whose key a new one has taken`() async throws {
    let context = ModelContext(try await Shop.open(path))
    let old = try #require(try context.fetch(FetchRequest(entity: "people")).first)
    context.delete(old)
    let new = try context.insertNewObject(ofEntity: "people")
    new["name"] = old["name"]
    try context.obtainPermanentIdentifiers(for: [new])
    #expect(new.persistentModelID == old.persistentModelID)
    context.reset()
    #expect(old.modelContext == nil && !old.isDeleted && new.modelContext == nil)
  }

  @Test(arguments: [true, false])
  func `reading an object whose row is known to be gone is an error`(
    isMerged: Bool
  ) async throws {
    let context = ModelContext(try await Shop.open(path))
    context.mergePolicy = .mergeByPropertyStoreTrump
    let order = try #require(try context.fetch(Order.self, limit: 1).first)
    if isMerged {
      context.mergeChanges(deleted: [order.persistentModelID])
      #expect(order.isDeleted && order.price == 100)
      context.refreshAllObjects()
    } else {
      order.price = 5
      try TestDatabase.make(in: directory, "DELETE FROM orders WHERE id = 1")
      try context.save()
    }
    #expect(order.isDeleted && order.price == 0)
    for read in [
      { _ = try context.fetchCount(.init(entity: "Order")) },
      { _ = try order.value(forKey: "price") },
    ] {
      let error = #expect(throws: BatchError.self) { try read() }
      #expect(error?.code == .objectNotFound)
    }
    // Unless the context takes such objects for deleted.
    context.shouldDeleteInaccessibleFaults = true
    #expect(try order.value(forKey: "price") == .null)
  }

  @Test func `a refreshed object reads its row again`() async throws {
    let context = ModelContext(try await Shop.open(path))
    context.stalenessInterval = 0
    let order = try #require(try context.fetch(Order.self, limit: 1).first)
    try TestDatabase.make(in: directory, "UPDATE orders SET price_cents = 5 WHERE id = 1")
    #expect(try context.fetch(Order.self, limit: 1).first === order)
    #expect(order.price == 100)
    context.refresh(order, mergeChanges: false)
    #expect(order.isFault)
    #expect(order.price == 5)
  }

  @Test func `a class whose table or column is missing is refused at opening`() async throws {
    let other = try TestDatabase.make("b.db", in: directory, "CREATE TABLE orders (id INTEGER)")
    let noTable = try TestDatabase.makeNumbers(1, in: directory, name: "c.db")
    for path in [other, noTable] {
      let error = await #expect(throws: BatchError.self) {
        try await ModelContainer(
          for: Order.self,
          configurations: ModelConfiguration(path: path)
        )
      }
      #expect(error?.code == .invalidMapping)
    }
  }

  @Test func `a context reads a store in memory`() async throws {
    let container = try await ModelContainer(
      configurations: ModelConfiguration(
        inMemoryWith: "CREATE TABLE a (id INTEGER PRIMARY KEY, n); INSERT INTO a VALUES (1, 'x')"
      )
    )
    let objects = try ModelContext(container).fetch(FetchRequest(entity: "a"))
    #expect(objects.map { $0["n"] } == [.text("x")])
  }
}
