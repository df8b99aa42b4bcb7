import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
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

  /// The example that FreeCoreData checks against Core Data: three rows, all but one of them changed or deleted, and
  /// two new objects.
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

  @Test func `C38 a predicate over identifiers fetches exactly the existing rows`()
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

  @Test func `an identifier of an entity also names objects of its sub-entities`() async throws {
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

  @Test func `C39 a predicate rejects id and accepts persistentModelID`() async throws {
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

  @Test func `C40 a fetch of ids registers no object`() async throws {
    let context = ModelContext(try await Shop.open(path))
    let descriptor = FetchDescriptor<Order>(predicate: #Predicate { $0.price > 100 })
    #expect(try context.fetchIdentifiers(descriptor).map(\.primaryKey) == ["p2", "p3", "p4"])
    #expect(try context.fetchIdentifierList(descriptor).count == 3)
    #expect(context.registeredModels.isEmpty)
  }

  @Test func `C41 a fetch of ids finds sub-entities of the requested class`() async throws {
    let context = ModelContext(try await Shop.open(path))
    func count<Model: Car & PersistentModel>(
      _ type: Model.Type,
      _ predicate: Predicate<Model>,
      only: Bool = false
    ) throws -> Int {
      var descriptor = FetchDescriptor(predicate: predicate)
      descriptor.includesSubentities = !only
      return try context.fetchIdentifiers(descriptor).count
    }
    #expect(try count(Car.self, #Predicate { $0.maker == "McLaren" }, only: true) == 0)
    #expect(try count(SportCar.self, #Predicate { $0.maker == "McLaren" }, only: true) == 1)
    #expect(
      try count(ExpensiveSportCar.self, #Predicate { $0.maker == "McLaren" }, only: true) == 1
    )
    #expect(try count(Car.self, #Predicate { $0.maker == "McLaren" }) == 2)
    #expect(try count(SportCar.self, #Predicate { $0.maker == "McLaren" }) == 2)
    #expect(
      try count(ExpensiveSportCar.self, #Predicate { $0.maker == "McLaren" && $0.topSpeed == 350 })
        == 1
    )
    #expect(try count(SportCar.self, #Predicate { $0.maker == "FIAT" }) == 0)
  }

  @Test func `C42 a fetch of ids returns temporary ids when pending changes are included`()
    async throws
  {
    let (context, employees) = try await pending()
    var descriptor = FetchDescriptor(predicate: isPaid, sortBy: [.reverse(\.name)])
    let identifiers = try context.fetchIdentifiers(descriptor)
    #expect(Set(identifiers) == Set(employees[2...].map(\.persistentModelID)))
    #expect(identifiers.count(where: \.isTemporary) == 2)
    descriptor.includePendingChanges = false
    #expect(try context.fetchIdentifiers(descriptor).map(\.primaryKey) == ["p2", "p1"])
    #expect(try context.fetchIdentifierList(descriptor).map(\.primaryKey) == ["p2", "p1"])
  }

  @Test func `C43 a fetch uses pending values, or the store's if pending changes are excluded`()
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

  @Test func `C44 a count includes the objects that the fetch with the same options returns`()
    async throws
  {
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

  @Test func `C48 offset and limit apply to the sorted objects, pending or not`() async throws {
    let (context, employees) = try await pending()
    var descriptor = FetchDescriptor<Employee>(sortBy: [.forward(\.salary)], fetchLimit: 2)
    descriptor.fetchOffset = 1
    #expect(try context.fetch(descriptor).map(\.salary) == [21, 30])
    try context.save()
    #expect(try context.fetch(descriptor).map(\.salary) == [21, 30])
    #expect(try context.fetchIdentifiers(descriptor).count == 2)
    #expect(employees.count == 5)
  }

  @Test func `C49 an offset beyond the end gives nothing, no limit gives all, and limit 0 nothing`()
    async throws
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

  @Test func `C45 a fetch of properties ignores pending changes`() async throws {
    let (context, employees) = try await pending()
    let descriptor = FetchDescriptor(predicate: isPaid, sortBy: [.forward(\.name)])
    let rows = try context.fetchProperties(descriptor)
    #expect(
      rows.map(\.values) == [
        ["name": .text("alpha"), "salary": .integer(22)],
        ["name": .text("bravo"), "salary": .integer(25)],
      ]
    )
    #expect(try rows.map { try $0.value(of: \.salary) } == [22, 25])
    #expect(employees.count == 5)
  }

  @Test func `C46 a fetch of properties has all or the requested attributes, and ids for to-one`()
    async throws
  {
    let context = ModelContext(try await Market.open(try Market.make(in: directory)))
    var descriptor = FetchDescriptor<Purchase>(sortBy: [.reverse(\.total)])
    let all = try context.fetchProperties(descriptor)
    #expect(all.map(\.values) == [30, 20, 10].map { ["total": .integer($0)] })
    #expect(all.allSatisfy { $0.identifiers.isEmpty })
    descriptor.propertiesToFetch = [\.customer]
    let customers = try context.fetchProperties(descriptor)
    #expect(customers.map { $0.identifiers["customer"]?.primaryKey } == ["p2", "p1", "p1"])
    #expect(customers[0].identifiers["customer"]?.entityName == "Customer")
    #expect(context.registeredModels.isEmpty)
    descriptor.sortBy = []
    #expect(try context.fetchProperties(descriptor, distinct: true).count == 2)
    let error = #expect(throws: BatchError.self) { try customers[0].value(of: \.total) }
    #expect(error?.code == .unknownAttribute)
    descriptor.propertiesToFetch = [\.tags]
    let toMany = #expect(throws: BatchError.self) { try context.fetchProperties(descriptor) }
    #expect(toMany?.code == .unknownAttribute)
  }

  @Test func `C51 a fetch of properties without a list of them returns all`() async throws {
    let context = ModelContext(try await Shop.open(path))
    var descriptor = FetchDescriptor<Order>(predicate: #Predicate { $0.price == 200 })
    #expect(descriptor.propertiesToFetch.isEmpty)
    let names = ["price", "note", "created", "shipped", "state", "address", "isGift"]
    let all = try context.fetchProperties(descriptor)
    #expect(all.map { Set($0.values.keys) } == [Set(names)])
    descriptor.propertiesToFetch = [\.note]
    #expect(try context.fetchProperties(descriptor).map(\.values) == [["note": .text("two")]])
  }

  @Test func `C47 sub-entities can be excluded from the store's objects and pending ones`()
    async throws
  {
    let context = ModelContext(try await Shop.open(path))
    let new = SportCar()
    new.maker = "Lotus"
    context.insert(new)
    var descriptor = FetchDescriptor<Car>()
    #expect(try context.fetchCount(descriptor) == 5)
    descriptor.includesSubentities = false
    #expect(try context.fetch(descriptor).map(\.maker) == ["FIAT", "FIAT"])
    #expect(try context.fetchCount(descriptor) == 2)
    #expect(try context.fetchIdentifiers(descriptor).map(\.primaryKey) == ["p1", "p4"])
    let sportCars = FetchDescriptor<Car>(predicate: #Predicate { $0 is SportCar })
    #expect(try context.fetchIdentifierList(sportCars).map(\.primaryKey) == ["p2", "p3"])
    let fast = FetchDescriptor<Car>(
      predicate: #Predicate { ($0 as? SportCar)?.topSpeed == 350 }
    )
    #expect(try context.fetchIdentifierList(fast).map(\.primaryKey) == ["p3"])
  }

  /// Random changes against a naive twin: the objects themselves, filtered and sorted in Swift.
  @Test func `a fetch with pending changes finds what Swift finds among the objects`()
    async throws
  {
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    let (context, employees) = try await pending()
    try context.save()
    var all = employees.filter { !$0.isDeleted && $0.modelContext != nil }
    for step in 0..<300 {
      switch Int.random(in: 0..<6, using: &generator) {
      case 0:
        let new = Employee("n\(step % 7)", salary: Int.random(in: 0...50, using: &generator))
        context.insert(new)
        all.append(new)
      case 1 where all.count > 4:
        context.delete(all.remove(at: Int.random(in: all.indices, using: &generator)))
      case 2: try context.save()
      default:
        all[Int.random(in: all.indices, using: &generator)].salary =
          Int.random(in: 0...50, using: &generator)
      }
      let least = Int.random(in: 0...50, using: &generator)
      var descriptor = FetchDescriptor<Employee>(
        predicate: #Predicate { $0.salary > least || $0.name == "n3" },
        sortBy: [.reverse(\.salary), .forward(\.name)],
        fetchLimit: Bool.random(using: &generator) ? Int.random(in: 0...9, using: &generator) : nil,
        fetchOffset: Int.random(in: 0...4, using: &generator)
      )
      let sorted = all.filter { $0.salary > least || $0.name == "n3" }
        .sorted { left, right in
          left.salary != right.salary
            ? left.salary > right.salary
            : left.name != right.name
              ? left.name < right.name : left.persistentModelID < right.persistentModelID
        }
      let window = sorted.dropFirst(descriptor.fetchOffset ?? 0)
        .prefix(descriptor.fetchLimit ?? .max)
      let comment: Comment = "seed \(seed), step \(step)"
      #expect(try context.fetch(descriptor) == Array(window), comment)
      #expect(try context.fetchCount(descriptor) == window.count, comment)
      #expect(try context.fetchIdentifiers(descriptor).count == window.count, comment)
      #expect(Array(try context.fetch(descriptor, batchSize: 3)).count == window.count, comment)
      descriptor.fetchLimit = nil
      descriptor.fetchOffset = nil
      #expect(
        Set(try context.fetchIdentifiers(descriptor)) == Set(sorted.map(\.persistentModelID)),
        comment
      )
    }
  }
}
