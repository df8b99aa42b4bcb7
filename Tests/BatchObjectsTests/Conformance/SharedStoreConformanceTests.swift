import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Several contexts of one container, in files and in memory.
@Suite struct SharedStoreConformanceTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func person(_ name: String, in context: ModelContext) throws -> Person {
    try #require(
      context.fetch(FetchDescriptor<Person>(predicate: #Predicate { $0.name == name })).first
    )
  }

  private func code<Result>(_ body: () throws -> Result) -> BatchError.Code? {
    #expect(throws: BatchError.self) { _ = try body() }?.code
  }

  // MARK: In memory

  @Test(arguments: [false, true])
  func `C101 an object whose class has an inverse relationship is deleted from a store in memory`(
    tracksHistory: Bool
  ) async throws {
    let container = try await Family.open(tracksHistory: tracksHistory)
    let context = ModelContext(container)
    let ada = try person("Ada", in: context)
    context.delete(ada)
    try context.save()
    #expect(try ModelContext(container).fetchCount(FetchDescriptor<Pet>()) == 1)
    // Unread, and found by a context that has never read anything.
    let other = ModelContext(container)
    let identifiers = try context.fetchIdentifiers(FetchDescriptor<Person>())
    for identifier in identifiers { other.delete(other.model(for: identifier)) }
    try other.save()
    #expect(try context.fetchCount(FetchDescriptor<Pet>()) == 0)
    #expect(try context.fetchCount(FetchDescriptor<Passport>()) == 2)
  }

  @Test func `C102 reading a store in memory never waits for a save of its own thread`()
    async throws
  {
    let container = try await Family.open(tracksHistory: true)
    let (context, other) = (ModelContext(container), ModelContext(container))
    // Faults, members, and a policy that reads, while the save holds the store.
    context.mergePolicy = .mergeByPropertyObjectTrump
    let pet = try context.fetch(FetchDescriptor<Pet>())[0]
    let toy = try context.fetch(FetchDescriptor<Toy>())[0]
    try other.fetch(FetchDescriptor<Pet>())[0].name = "Max"
    try other.save()
    pet.owner = try person("Bob", in: context)
    context.refreshAllObjects()
    toy.pet = try context.fetch(FetchDescriptor<Pet>())[1]
    try context.save()
    #expect(pet.name == "Max")
    // Prefetching, then a save while the fetched rows are kept.
    var descriptor = FetchDescriptor<Person>()
    descriptor.relationshipKeyPathsForPrefetching = [\.pets, \.boss, \.clubs, \.passport]
    let people = try context.fetch(descriptor)
    for person in people { person.clubs = [] }
    context.delete(people[1])
    try context.save()
    // Changes objects that are enumerated and fetched in batches.
    try context.enumerate(FetchDescriptor<Pet>(), batchSize: 1) { pet in
      pet.name += "!"
      try context.save()
    }
    for pet in try context.fetch(FetchDescriptor<Pet>(), batchSize: 1) {
      pet.name += "!"
      try context.save()
    }
    // Batch requests, one of which asks for objects of the same context while it fills its rows.
    var names = ["Una", "Vic"]
    try context.execute(
      BatchInsertRequest<Person> { row in
        guard let name = names.popLast() else { return true }
        let count = try context.fetchCount(FetchDescriptor<Person>())
        row.set(\.name, to: "\(name) \(count)")
        return false
      }
    )
    try context.execute(
      BatchUpdateRequest<Pet>(
        where: #Predicate { $0.owner?.name == "Ada" },
        [.set(\.name, to: "Rex")]
      )
    )
    try context.execute(BatchDeleteRequest<Person>(where: #Predicate { $0.name == "Ada" }))
    let history = try context.fetchHistory()
    try context.deleteHistory(before: try #require(history.last?.token))
    #expect(try other.fetchHistory().count == 1)
    let new = Person("New")
    context.insert(new)
    try context.obtainPermanentIdentifiers(for: [new])
    #expect(try other.fetchCount(FetchDescriptor<Person>()) == 3)
    try context.save()
    #expect(try other.fetchCount(FetchDescriptor<Person>()) == 4)
  }

  // MARK: Changes saved elsewhere

  /// Renames Ada in another context.
  private func rename(_ name: String, in container: ModelContainer) throws {
    let other = ModelContext(container)
    try #require(other.fetch(Person.self, where: "id = 1").first).name = name
    try other.save()
  }

  @Test func `C107 refresh shows what another context of the container has saved`() async throws {
    let container = try await Family.open()
    let context = ModelContext(container)
    let ada = try person("Ada", in: context)
    try rename("Ana", in: container)
    #expect(ada.name == "Ada")
    context.refresh(ada, mergeChanges: false)
    #expect(ada.isFault && ada.name == "Ana")
    // An object that became a fault earlier sees it too.
    context.refresh(ada, mergeChanges: true)
    try rename("Ann", in: container)
    context.refresh(ada, mergeChanges: true)
    #expect(ada.name == "Ann")
    // Changes are kept, and do not conflict with the refreshed values.
    try rename("Amy", in: container)
    ada.boss = try person("Bob", in: context)
    context.refresh(ada, mergeChanges: true)
    #expect(ada.name == "Amy" && ada.boss?.name == "Bob")
    try context.save()
    let other = ModelContext(container)
    other.delete(try person("Amy", in: other))
    try other.save()
    context.refresh(ada, mergeChanges: false)
    #expect(code { try ada.value(forKey: "name") } == .objectNotFound)
  }

  @Test func `C108 refreshAllObjects shows what another context of the container has saved`()
    async throws
  {
    let container = try await Family.open(.file, in: directory)
    let context = ModelContext(container)
    let people = try context.fetch(FetchDescriptor<Person>())
    people[1].name = "Bill"
    try rename("Ana", in: container)
    #expect(people[0].name == "Ada")
    context.refreshAllObjects()
    #expect(people.map(\.name) == ["Ana", "Bill", "Cleo"])
    #expect(people[1].isUpdated)
  }

  @Test func `C109 a fetch updates objects with what another context of the container has saved`()
    async throws
  {
    let container = try await Family.open()
    let context = ModelContext(container)
    let people = try context.fetch(FetchDescriptor<Person>())
    let bob = people[1]
    bob.name = "Bill"
    try rename("Ana", in: container)
    let other = ModelContext(container)
    try person("Cleo", in: other).pets = [Pet("Ned")]
    try other.save()
    // Objects that a fetch does not find keep their values.
    #expect(try context.fetch(FetchDescriptor<Pet>()).count == 4)
    #expect(people[0].name == "Ada")
    _ = try context.fetch(FetchDescriptor<Person>())
    #expect(people[0].name == "Ana" && bob.name == "Bill" && bob.isUpdated)
    #expect(people[2].pets.map(\.name) == ["Ned"])
    // By identifiers, and by SQL.
    try rename("Ann", in: container)
    _ = try context.fetch([people[0].persistentModelID], as: Person.self)
    #expect(people[0].name == "Ann")
    try rename("Amy", in: container)
    _ = try context.fetch(Person.self, where: "id = 1")
    #expect(people[0].name == "Amy")
  }

  @Test func `C110 existingModel shows what another context has saved, and no row that it deleted`()
    async throws
  {
    let container = try await Family.open()
    let context = ModelContext(container)
    let ada = try person("Ada", in: context)
    try rename("Ana", in: container)
    #expect(try context.existingModel(for: ada.persistentModelID, as: Person.self).name == "Ana")
    let other = ModelContext(container)
    let theirs = try person("Ana", in: other)
    theirs.pets = []
    other.delete(theirs)
    try other.save()
    #expect(code { try context.existingModel(for: ada.persistentModelID) } == .objectNotFound)
  }

  @Test func `C111 a refresh does not show a batch request's changes until stalenessInterval is 0`()
    async throws
  {
    let container = try await Family.open()
    let context = ModelContext(container)
    let people = try context.fetch(FetchDescriptor<Person>())
    try ModelContext(container).execute(BatchUpdateRequest<Person>([.set(\.name, to: "X")]))
    // A save of another row does not affect this one.
    let other = ModelContext(container)
    try #require(other.fetch(Person.self, where: "id = 2").first).name = "Y"
    try other.save()
    context.refreshAllObjects()
    #expect(people.map(\.name) == ["Ada", "Y", "Cleo"])
    context.stalenessInterval = 0
    context.refreshAllObjects()
    #expect(people.map(\.name) == ["X", "Y", "X"])
  }

  // MARK: Released contexts

  @Test func `C112 an object that outlives its context throws when it would have to be read`()
    async throws
  {
    let container = try await Family.open()
    var context: ModelContext? = ModelContext(container)
    let people = try context?.fetch(FetchDescriptor<Person>()) ?? []
    let (ada, bob) = (people[0], people[1])
    context?.refresh(bob, mergeChanges: false)
    let new = Pet("Ned")
    new.owner = ada
    context = nil
    // It keeps what it has read.
    #expect(ada.name == "Ada" && new.name == "Ned")
    #expect(code { try bob.value(forKey: "name") } == .noContext)
    #expect(code { try ada.relatedObjects(forKey: "pets") } == .noContext)
    #expect(code { try new.relatedObject(forKey: "owner") } == .noContext)
    #expect(code { try ada.setRelatedObjects([], forKey: "pets") } == .noContext)
    let fresh = ModelContext(container)
    fresh.insert(new)
    #expect(code { try fresh.save() } == .noContext)
  }

  private static let uses: [@Sendable (Person) -> Void] = [
    { _ = $0.pets.count }, { _ = $0.boss }, { _ = $0.passport }, { $0.pets.append(Pet("Ned")) },
    { _ = $0.name },
  ]

  @Test(arguments: uses.indices)
  func `an object that outlives its context traps where it would answer wrongly`(
    use: Int
  ) async {
    await #expect(processExitsWith: .failure) { [use] in
      var context: ModelContext? = try await ModelContext(Family.open())
      let ada = try #require(context).fetch(FetchDescriptor<Person>())[0]
      context?.refresh(ada, mergeChanges: false)
      context = nil
      Self.uses[use](ada)
    }
  }

  // MARK: Waiting

  @Test func `C120 a deadlock between contexts is an error`()
    async throws
  {
    let container = try await Family.open()
    let contexts = (0..<3).map { _ in container.newBackgroundContext() }
    let code = try contexts[0].performAndWait { _ in
      try contexts[1].performAndWait { _ in
        try contexts[2].performAndWait { _ in
          let error = #expect(throws: BatchError.self) {
            try contexts[0].performAndWait { try $0.save() }
          }
          #expect(error?.remedy != nil)
          // Its own work continues, and so does that of others.
          try contexts[2].performAndWait { try $0.save() }
          return error?.code
        }
      }
    }
    #expect(code == .deadlock)
    // It ends when its work does.
    let count = try contexts[2].performAndWait { _ in
      try contexts[0].performAndWait { try $0.fetchCount(FetchDescriptor<Person>()) }
    }
    #expect(count == 3)
  }

  // MARK: Containers

  /// A container as a program declares it.
  private enum Shared {
    // swift-format-ignore: NeverUseForceTry
    static let container = try! ModelContainer(
      for: Person.self,
      Pet.self,
      Toy.self,
      Passport.self,
      Circle.self,
      Badge.self,
      configurations: ModelConfiguration(inMemoryWith: Family.schema + Family.rows)
    )
  }

  @Test func `C123 a container can be opened in synchronous code`() throws {
    let context = ModelContext(Shared.container)
    #expect(try context.fetchCount(FetchDescriptor<Person>()) == 3)
    #expect(Shared.container.configurations[0].isStoredInMemoryOnly)
    let missing = ModelConfiguration(path: directory.file("missing.db"))
    #expect(code { try ModelContainer(for: [], configurations: [missing]) } == .fileAccess)
  }

  @Test @MainActor func `C124 the only main context of a container shows others' saved changes`()
    async throws
  {
    let container = try await Family.open()
    let context = container.mainContext
    #expect(context === container.mainContext && context.container === container)
    let ada = try person("Ada", in: context)
    try await container.newBackgroundContext().perform { context in
      try #require(context.fetch(Person.self, where: "id = 1").first).name = "Ana"
      try context.save()
    }
    #expect(ada.name == "Ada")
    _ = try context.fetchCount(FetchDescriptor<Pet>())
    #expect(ada.name == "Ana")
    container.mainContext.insert(Person("Dan"))
    try container.mainContext.save()
    #expect(try ModelContext(container).fetchCount(FetchDescriptor<Person>()) == 4)
  }
}
