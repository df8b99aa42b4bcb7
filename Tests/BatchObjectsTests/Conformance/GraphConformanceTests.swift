import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Related objects: how they are inserted into contexts, and what happens to them.
@Suite struct GraphConformanceTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func context(_ place: Family.Place = .memory) async throws -> ModelContext {
    ModelContext(try await Family.open(place, in: directory))
  }

  private func person(_ name: String, in context: ModelContext) throws -> Person {
    try #require(
      context.fetch(FetchDescriptor<Person>(predicate: #Predicate { $0.name == name })).first
    )
  }

  private func names<Model: PersistentModel>(
    _ name: (Model) -> String,
    in container: ModelContainer
  ) throws -> [String] {
    try ModelContext(container).fetch(FetchDescriptor<Model>()).map(name).sorted()
  }

  private func code<Result>(_ body: () throws -> Result) -> BatchError.Code? {
    #expect(throws: BatchError.self) { _ = try body() }?.code
  }

  // MARK: Insertion into a context

  @Test(arguments: Family.Place.allCases)
  func `C103 a new object whose to-one relationship leads to a context's object is saved with it`(
    place: Family.Place
  ) async throws {
    let context = try await context(place)
    let ada = try person("Ada", in: context)
    let pet = Pet("Ned")
    pet.owner = ada
    #expect(pet.modelContext === context && pet.isInserted)
    #expect(ada.pets.map(\.name) == ["Rex", "Tom", "Ned"])
    try context.save()
    #expect(!pet.persistentModelID.isTemporary)
    let other = ModelContext(context.container)
    #expect(try person("Ada", in: other).pets.map(\.name) == ["Rex", "Tom", "Ned"])

    // A relationship stored in the other side's row, and an object that already has values.
    let (passport, dan) = (Passport(33), Person("Dan"))
    dan.passport = passport
    dan.boss = ada
    try context.save()
    #expect(try person("Dan", in: other).passport?.number == 33)
    #expect(try person("Dan", in: other).boss?.name == "Ada")
  }

  @Test func `C104 saving a new object that relates to a context's objects saves them together`()
    async throws
  {
    let context = try await context()
    let (ada, bob) = (try person("Ada", in: context), try person("Bob", in: context))
    let club = Circle("bridge")
    club.people = [ada, bob]
    #expect(club.modelContext === context && ada.clubs.contains(club))
    let boss = Person("Eve")
    boss.staff.append(ada)
    #expect(ada.boss === boss)
    let cleo = Person("Zoe")
    cleo.pets = ada.pets
    #expect(ada.pets.isEmpty && cleo.pets.count == 2)
    try Person("Fay").addRelatedObject(bob, forKey: "staff")
    try context.save()
    let other = ModelContext(context.container)
    #expect(try person("Eve", in: other).staff.map(\.name) == ["Ada"])
    #expect(try person("Fay", in: other).staff.map(\.name) == ["Bob"])
    #expect(try person("Zoe", in: other).pets.map(\.name) == ["Rex", "Tom"])
    #expect(
      try other.fetch(FetchDescriptor<Circle>()).first { $0.name == "bridge" }?.people.count == 2
    )
  }

  @Test func `C105 new objects enter a context through a chain of new objects, from any end`()
    async throws
  {
    let context = try await context()
    let ada = try person("Ada", in: context)
    // From the far end: only the pet knows the toy's pet, and it gets its owner last.
    let (toy, pet, other) = (Toy("bone"), Pet("Ned"), Toy("rope"))
    toy.pet = pet
    pet.toys.append(other)
    #expect(toy.modelContext == nil)
    pet.owner = ada
    for object in [toy, pet, other] { #expect(object.modelContext === context) }
    #expect(Set(pet.toys.map(\.name)) == ["bone", "rope"])
    // An object that is no longer related stays where it is.
    let (left, free) = (Person("Left"), Pet("Free"))
    free.owner = left
    free.owner = nil
    left.boss = ada
    #expect(free.modelContext == nil)
    // However long the chain is.
    var last = Person("0")
    let first = last
    for number in 1..<3_000 {
      let next = Person("\(number)")
      last.boss = next
      last = next
    }
    last.boss = ada
    #expect(first.modelContext === context)
    try context.save()
    #expect(try names({ (pet: Pet) in pet.name }, in: context.container).contains("Ned"))
    #expect(try names({ (toy: Toy) in toy.name }, in: context.container).contains("bone"))
    #expect(try ModelContext(context.container).fetchCount(FetchDescriptor<Person>()) == 3_004)
    withExtendedLifetime(free) {}
  }

  @Test func `C106 relating objects of two contexts is an error that names the object`()
    async throws
  {
    let container = try await Family.open()
    let (first, second) = (ModelContext(container), ModelContext(container))
    let (ada, bob) = (try person("Ada", in: first), try person("Bob", in: second))
    let pet = Pet("Ned")
    pet.owner = ada
    pet.owner = bob
    let error = try #require(throws: BatchError.self) { try first.save() }
    #expect(error.code == .noContext && error.remedy != nil)
    #expect(error.place == bob.persistentModelID.description)
    #expect(pet.owner === ada)
    // An object related to objects of both contexts enters neither.
    let club = Circle("both")
    #expect(code { try club.setRelatedObjects([ada, bob], forKey: "people") } == .noContext)
    #expect(code { try club.setRelatedObject(ada, forKey: "persons") } == .unknownRelationship)
    #expect(club.modelContext == nil)
    ada.boss = bob
    #expect(code { try first.save() } == .noContext)
    try first.save()
    #expect(try names({ (pet: Pet) in pet.name }, in: container) == ["Kit", "Ned", "Rex", "Tom"])
  }

  // MARK: Deleting

  @Test(arguments: Family.Place.allCases)
  func `C116 fetches and relationships omit cascaded deletions before the save`(
    place: Family.Place
  ) async throws {
    let context = try await context(place)
    let ada = try person("Ada", in: context)
    let ned = Pet("Ned")
    ned.owner = ada
    let pets = ada.pets
    context.delete(ada)
    #expect(try context.fetch(FetchDescriptor<Pet>()).map(\.name) == ["Kit"])
    #expect(try context.fetchCount(FetchDescriptor<Toy>()) == 1)
    #expect(pets.prefix(2).allSatisfy { $0.isDeleted })
    #expect(ned.modelContext == nil)
    #expect(context.deletedModelsArray.count == 4)
    // The undo is complete.
    context.rollback()
    #expect(try context.fetchCount(FetchDescriptor<Pet>()) == 3)
    #expect(pets[0].toys.count == 1 && ada.pets.count == 2)

    context.delete(ada)
    #expect(pets[0].owner == nil || pets[0].isDeleted)
    try context.save()
    #expect(try names({ (pet: Pet) in pet.name }, in: context.container) == ["Kit"])
    #expect(try names({ (toy: Toy) in toy.name }, in: context.container) == ["mouse"])
  }

  @Test func `C117 an object nullified by a deletion refers to nothing before the save`()
    async throws
  {
    let context = try await context()
    let (ada, bob) = (try person("Ada", in: context), try person("Bob", in: context))
    let passport = try #require(ada.passport)
    context.delete(ada)
    #expect(bob.boss == nil && passport.owner == nil)
    let free = FetchDescriptor<Person>(predicate: #Predicate { $0.boss == nil })
    #expect(try context.fetch(free).map(\.name).sorted() == ["Bob", "Cleo"])
    // An object that got another owner meanwhile keeps it.
    bob.passport = passport
    try context.save()
    let other = ModelContext(context.container)
    #expect(try person("Bob", in: other).passport?.number == 11)
    withExtendedLifetime(other) {}
  }

  @Test func `C118 a deleted object inserted again before the save regains its related objects`()
    async throws
  {
    let context = try await context()
    let ada = try person("Ada", in: context)
    let ned = Pet("Ned")
    ned.owner = ada
    let bob = try person("Bob", in: context)
    context.delete(ada)
    #expect(try context.fetchCount(FetchDescriptor<Pet>()) == 1)
    context.insert(ada)
    #expect(Set(ada.pets.map(\.name)) == ["Rex", "Tom", "Ned"])
    #expect(bob.boss === ada && ada.passport?.number == 11)
    #expect(ada.pets[0].toys.map(\.name) == ["ball"])
    #expect(context.deletedModelsArray.isEmpty)
    try context.save()
    let names = ["Kit", "Ned", "Rex", "Tom"]
    #expect(try self.names({ (pet: Pet) in pet.name }, in: context.container) == names)
  }

  // MARK: Fetching

  @Test(arguments: Family.Place.allCases)
  func `C119 a predicate about related objects sees their unsaved changes`(
    place: Family.Place
  ) async throws {
    let context = try await context(place)
    func pets(_ predicate: Predicate<Pet>) throws -> [String] {
      let descriptor = FetchDescriptor<Pet>(predicate: predicate)
      #expect(try context.fetchCount(descriptor) == context.fetch(descriptor).count)
      #expect(try context.fetchIdentifiers(descriptor).count == context.fetch(descriptor).count)
      return try context.fetch(descriptor).map(\.name).sorted()
    }
    func people(_ predicate: Predicate<Person>) throws -> [String] {
      try context.fetch(FetchDescriptor<Person>(predicate: predicate)).map(\.name).sorted()
    }
    let (ada, bob) = (try person("Ada", in: context), try person("Bob", in: context))
    // A related object that is changed, and one that is new.
    ada.name = "Ana"
    #expect(try pets(#Predicate { $0.owner?.name == "Ana" }) == ["Rex", "Tom"])
    #expect(try pets(#Predicate { $0.owner?.name == "Ada" }).isEmpty)
    let dan = Person("Dan")
    bob.pets[0].owner = dan
    dan.boss = ada
    #expect(try pets(#Predicate { $0.owner?.name == "Dan" }) == ["Kit"])
    #expect(try pets(#Predicate { $0.owner?.boss?.name == "Ana" }) == ["Kit"])
    #expect(try people(#Predicate { $0.pets.isEmpty }) == ["Bob", "Cleo"])
    #expect(try people(#Predicate { $0.pets.contains { $0.name == "Kit" } }) == ["Dan"])
    #expect(try people(#Predicate { $0.pets.count > 1 }) == ["Ana"])
    #expect(try people(#Predicate { $0.staff.contains { $0.name == "Dan" } }) == ["Ana"])
    #expect(try people(#Predicate { $0.boss == nil }) == ["Ana"])
    // Pairs.
    dan.clubs = ada.clubs
    ada.clubs = []
    #expect(try people(#Predicate { $0.clubs.contains { $0.name == "chess" } }) == ["Dan"])
    let bridge = Circle("bridge")
    bridge.people = [bob, dan]
    #expect(try people(#Predicate { $0.clubs.contains { $0.name == "bridge" } }) == ["Bob", "Dan"])
    // A deleted one.
    context.delete(ada)
    #expect(try people(#Predicate { $0.boss != nil }).isEmpty)
    #expect(try pets(#Predicate { $0.toys.isEmpty }).isEmpty)
    #expect(try pets(#Predicate { $0.owner != nil }) == ["Kit"])
    // Unsaved changes that should not count do not.
    var stored = FetchDescriptor<Pet>(predicate: #Predicate { $0.owner?.name == "Ada" })
    stored.includePendingChanges = false
    #expect(try context.fetchCount(stored) == 2)
    try context.save()
    #expect(try pets(#Predicate { $0.owner?.name == "Dan" }) == ["Kit"])
    #expect(try people(#Predicate { $0.clubs.contains { $0.name == "bridge" } }) == ["Bob", "Dan"])
  }

  // MARK: Partners

  @Test(arguments: Family.Place.allCases)
  func `C121 partners of a one-to-one relationship are exchanged in one save`(
    place: Family.Place
  ) async throws {
    let context = try await context(place)
    let (ada, bob) = (try person("Ada", in: context), try person("Bob", in: context))
    let (first, second) = (try #require(ada.passport), try #require(bob.passport))
    ada.passport = second
    bob.passport = first
    try context.save()
    #expect(ada.passport === second && first.owner === bob)
    let other = ModelContext(context.container)
    #expect(try person("Ada", in: other).passport?.number == 22)
    #expect(try person("Bob", in: other).passport?.number == 11)
    // From the other side, in a cycle of three.
    let cleo = try person("Cleo", in: context)
    let third = Passport(33)
    third.owner = cleo
    try context.save()
    first.owner = ada
    second.owner = cleo
    third.owner = bob
    try context.save()
    let last = ModelContext(context.container)
    let rows = try last.fetch(FetchDescriptor<Passport>())
    #expect(rows.map { $0.owner?.name } == ["Ada", "Cleo", "Bob"])
    withExtendedLifetime((other, last)) {}
  }

  @Test func `C122 an object replaces a deleted one in the same save`() async throws {
    let context = try await context()
    let (ada, bob) = (try person("Ada", in: context), try person("Bob", in: context))
    let passport = try #require(bob.passport)
    context.delete(try #require(ada.passport))
    ada.passport = passport
    bob.passport = Passport(44)
    try context.save()
    let other = ModelContext(context.container)
    let rows = try other.fetch(FetchDescriptor<Passport>())
    #expect(rows.map(\.number) == [22, 44] && rows.map { $0.owner?.name } == ["Ada", "Bob"])
    // A row that somebody else changed is a conflict as always.
    try person("Ada", in: other).passport?.number = 23
    try other.save()
    ada.passport = bob.passport
    bob.passport = passport
    #expect(code { try context.save() } == .mergeConflict)
    #expect(passport.owner === bob && context.hasChanges)
  }

  @Test func `related objects appended one by one to an unread relationship are saved once each`()
    async throws
  {
    let context = try await context()
    let ada = try person("Ada", in: context)
    for number in 0..<50 { ada.pets.append(Pet("\(number)")) }
    let gone = ada.pets[10]
    context.delete(gone)
    #expect(ada.pets.count == 51 && !ada.pets.contains(gone))
    ada.pets.append(ada.pets[0])
    #expect(ada.pets.count == 51)
    ada.pets.append(Pet("50"))
    ada.pets.last?.owner = nil
    #expect(ada.pets.count == 51)
    ada.pets.append(Pet("51"))
    ada.pets.removeFirst()
    #expect(ada.pets.count == 51 && ada.pets.last?.name == "51")
    for number in 0..<20 { ada.clubs.append(Circle("\(number)")) }
    #expect(ada.clubs.count == 22)
    try context.save()
    let other = ModelContext(context.container)
    let theirs = try person("Ada", in: other)
    #expect(theirs.pets.count == 51 && theirs.clubs.count == 22)
    #expect(Set(theirs.pets.map(\.name)) == Set(ada.pets.map(\.name)))
    withExtendedLifetime(other) {}
  }
}
