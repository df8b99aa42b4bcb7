import BatchIdentifiers
import BatchStore
import BatchTestSupport
import Foundation
import Testing

@Suite struct FetchConformanceTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Shop.make(in: directory)
  }

  /// The example that FreeCoreData checks against Core Data: three rows, each of which but one is
  /// changed or deleted, and two new objects.
  private func pending() async throws -> (ModelContext, [Employee]) {
    let path = try TestDatabase.make(
      "pending.db",
      in: directory,
      "CREATE TABLE employees (id INTEGER PRIMARY KEY, name TEXT, salary INTEGER)",
      "CREATE TABLE versioned (id INTEGER PRIMARY KEY, name TEXT, salary INTEGER, revision INTEGER)",
      "INSERT INTO employees VALUES (1, 'alpha', 22), (2, 'bravo', 25), (3, 'charlie', 10)"
    )
    let context = ModelContext(try await Staff.open(path))
    let stored = try context.fetch(FetchDescriptor<Employee>(sortBy: [.forward(\.name)]))
    stored[0].salary = 5
    stored[2].salary = 21
    context.delete(stored[1])
    let new = [Employee("delta", salary: 30), Employee("echo", salary: 40)]
    for employee in new { context.insert(employee) }
    return (context, stored + new)
  }

  private let isPaid = #Predicate<Employee> { $0.salary > 20 }

  private func identifier(_ entity: String, _ key: Int64, in container: ModelContainer)
    -> PersistentIdentifier
  {
    PersistentIdentifier(
      storeIdentifier: container.stores[0].identity.uuid,
      entityName: entity,
      key: .integer(key)
    )
  }

  @Test func `C38 a predicate over identifiers fetches exactly those rows that there are`()
    async throws
  {
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    let identifiers = [1, 3, 99].map { identifier("Order", $0, in: container) }
    let foreign = PersistentIdentifier(
      storeIdentifier: UUID().uuidString,
      entityName: "Order",
      key: .integer(2)
    )
    let unrelated = [foreign, identifier("Car", 2, in: container), .temporary(entityName: "Order")]
    let array = identifiers + unrelated
    let set = Set(array)
    let list = try context.fetchIdentifierList(
      FetchDescriptor<Order>(predicate: #Predicate { $0.price == 100 || $0.price == 300 })
    )
    let one = identifiers[0]
    let predicates: [Predicate<Order>] = [
      #Predicate { array.contains($0.persistentModelID) },
      #Predicate { set.contains($0.persistentModelID) },
      #Predicate { list.contains($0.persistentModelID) },
      #Predicate { order in array.contains { $0 == order.persistentModelID } },
      #Predicate { $0.persistentModelID == one || $0.price == 300 },
    ]
    for predicate in predicates {
      let orders = try context.fetch(FetchDescriptor(predicate: predicate))
      #expect(orders.map(\.price) == [100, 300])
    }
    let others = FetchDescriptor<Order>(
      predicate: #Predicate { !array.contains($0.persistentModelID) && $0.price < 1_000 }
    )
    #expect(try context.fetch(others).map(\.price) == [200])
  }

  @Test func `an identifier of an entity also names objects of its sub-entities`() async throws
  {
    let container = try await Shop.open(path)
    let context = ModelContext(container)
    func keys(_ entity: String) throws -> [String] {
      let identifiers = (1...4).map { identifier(entity, $0, in: container) }
      let descriptor = FetchDescriptor<Car>(
        predicate: #Predicate { identifiers.contains($0.persistentModelID) }
      )
      return try context.fetchIdentifiers(descriptor).map(\.primaryKey)
    }
    #expect(try keys("Car") == ["p1", "p2", "p3", "p4"])
    #expect(try keys("SportCar") == ["p2", "p3"])
    #expect(try keys("ExpensiveSportCar") == ["p3"])
    #expect(try keys("Order") == [])
    let cars = (1...4).map { identifier("Car", $0, in: container) }
    let sportCars = FetchDescriptor<SportCar>(
      predicate: #Predicate { cars.contains($0.persistentModelID) }
    )
    #expect(try context.fetchIdentifiers(sportCars).map(\.primaryKey) == ["p2", "p3"])
  }

  @Test func `C39 in predicates id is rejected and persistentModelID accepted`() async throws {
    let context = ModelContext(try await Shop.open(path))
    let predicate = Predicate<Order> { row in
      PredicateExpressions.Equal(
        lhs: PredicateExpressions.KeyPath(root: row, keyPath: \.id),
        rhs: PredicateExpressions.KeyPath(root: row, keyPath: \.id)
      )
    }
    let error = #expect(throws: BatchError.self) {
      try context.fetch(FetchDescriptor(predicate: predicate))
    }
    #expect(error?.code == .unsupportedPredicate)
    #expect(error?.remedy?.contains("persistentModelID") == true)
  }

  @Test func `C40 an id fetch returns ids only and registers no object`() async throws {
    let context = ModelContext(try await Shop.open(path))
    let descriptor = FetchDescriptor<Order>(predicate: #Predicate { $0.price > 100 })
    #expect(try context.fetchIdentifiers(descriptor).map(\.primaryKey) == ["p2", "p3", "p4"])
    #expect(try context.fetchIdentifierList(descriptor).count == 3)
    #expect(context.registeredModels.isEmpty)
  }

  @Test func `C41 an id fetch finds sub-entities of the class that is asked for`() async throws {
    let context = ModelContext(try await Shop.open(path))
    func count<Model: Car & PersistentModel>(
      _ type: Model.Type,
      _ predicate: Predicate<Model>
    ) throws -> Int {
      try context.fetchIdentifiers(FetchDescriptor(predicate: predicate)).count
    }
    #expect(try count(Car.self, #Predicate { $0.maker == "McLaren" }) == 2)
    #expect(try count(SportCar.self, #Predicate { $0.maker == "McLaren" }) == 2)
    #expect(
      try count(ExpensiveSportCar.self, #Predicate { $0.maker == "McLaren" && $0.topSpeed == 350 })
        == 1
    )
    #expect(try count(SportCar.self, #Predicate { $0.maker == "FIAT" }) == 0)
  }

  @Test func `C42 an id fetch has temporary ids when pending changes are included`() async throws {
    let (context, employees) = try await pending()
    var descriptor = FetchDescriptor(predicate: isPaid, sortBy: [.reverse(\.name)])
    let identifiers = try context.fetchIdentifiers(descriptor)
    #expect(Set(identifiers) == Set(employees[2...].map(\.persistentModelID)))
    #expect(identifiers.count(where: \.isTemporary) == 2)
    descriptor.includePendingChanges = false
    #expect(try context.fetchIdentifiers(descriptor).map(\.primaryKey) == ["p2", "p1"])
    #expect(try context.fetchIdentifierList(descriptor).map(\.primaryKey) == ["p2", "p1"])
  }

  @Test
  func
    `C43 objects are found and sorted by what is pending, or by the store with values in memory`()
    async throws
  {
    let (context, employees) = try await pending()
    var descriptor = FetchDescriptor(predicate: isPaid, sortBy: [.forward(\.name)])
    #expect(try context.fetch(descriptor).map(\.name) == ["charlie", "delta", "echo"])
    descriptor.sortBy = [.reverse(\.salary)]
    #expect(try context.fetch(descriptor).map(\.name) == ["echo", "delta", "charlie"])
    descriptor.includePendingChanges = false
    let stored = try context.fetch(descriptor)
    #expect(stored.map(\.name) == ["bravo", "alpha"])
    #expect(stored.map(\.salary) == [25, 5])
    #expect(employees.count == 5)
  }

  @Test func `C44 a count follows the same membership`() async throws {
    let (context, employees) = try await pending()
    var descriptor = FetchDescriptor(predicate: isPaid)
    #expect(try context.fetchCount(descriptor) == 3)
    descriptor.fetchOffset = 1
    descriptor.fetchLimit = 5
    #expect(try context.fetchCount(descriptor) == 2)
    descriptor = FetchDescriptor(predicate: isPaid)
    descriptor.includePendingChanges = false
    #expect(try context.fetchCount(descriptor) == 2)
    #expect(employees.count == 5)
  }

  @Test func `C48 offset and limit are taken of sorted objects, pending or not`() async throws {
    let (context, employees) = try await pending()
    var descriptor = FetchDescriptor<Employee>(sortBy: [.forward(\.salary)], fetchLimit: 2)
    descriptor.fetchOffset = 1
    #expect(try context.fetch(descriptor).map(\.salary) == [21, 30])
    try context.save()
    #expect(try context.fetch(descriptor).map(\.salary) == [21, 30])
    #expect(try context.fetchIdentifiers(descriptor).count == 2)
    #expect(employees.count == 5)
  }

  @Test func `C49 an offset beyond the end is empty, no limit is all, and 0 is none`() async throws
  {
    let context = ModelContext(try await Shop.open(path))
    var descriptor = FetchDescriptor<Car>(fetchOffset: 4)
    #expect(try context.fetch(descriptor).isEmpty)
    #expect(try context.fetchCount(descriptor) == 0)
    descriptor = FetchDescriptor<Car>(fetchLimit: 0)
    #expect(try context.fetch(descriptor).isEmpty)
    #expect(try context.fetchCount(descriptor) == 0)
    descriptor = FetchDescriptor<Car>(fetchLimit: nil)
    #expect(try context.fetchCount(descriptor) == 4)
    for (limit, offset) in [(-1, 0), (1, -1), (-1, 5)] {
      let descriptor = FetchDescriptor<Car>(fetchLimit: limit, fetchOffset: offset)
      let error = #expect(throws: BatchError.self) { try context.fetch(descriptor) }
      #expect(error?.code == .invalidSQL)
    }
  }

  @Test func `C52 a count is the number of identifiers`() async throws {
    let context = ModelContext(try await Shop.open(path))
    let predicates: [Predicate<Order>?] = [
      nil, #Predicate { $0.note == nil }, #Predicate { $0.note != nil && $0.isGift },
      #Predicate { $0.price > 100 }, #Predicate { _ in false },
    ]
    for predicate in predicates {
      let descriptor = FetchDescriptor(predicate: predicate)
      let count = try context.fetchCount(descriptor)
      #expect(try context.fetchIdentifiers(descriptor).count == count)
      #expect(try context.fetchIdentifierList(descriptor).count == count)
    }
  }
}
