import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

/// What a store's history records about relationships.
@Suite struct RelationshipHistoryConformanceTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// The last transaction's changes as text.
  private func last(_ context: ModelContext) throws -> [String] {
    let changes = try context.fetchHistory().last?.changes ?? []
    return changes.map { change in
      ([change.kind.rawValue, change.identifier.entityName, change.identifier.primaryKey]
        + change.updatedAttributes).joined(separator: " ")
    }.sorted()
  }

  private func context(_ place: Family.Place = .memory) async throws -> ModelContext {
    ModelContext(try await Family.open(place, in: directory, tracksHistory: true))
  }

  @Test(arguments: Family.Place.allCases)
  func `C113 the history records a to-one change for the object and both partners`(
    place: Family.Place
  ) async throws {
    let context = try await context(place)
    let people = try context.fetch(FetchDescriptor<Person>())
    let pet = try context.fetch(FetchDescriptor<Pet>())[0]
    pet.owner = people[1]
    pet.name = "Max"
    try context.save()
    #expect(
      try last(context) == [
        "update Person p1 pets", "update Person p2 pets", "update Pet p1 name owner",
      ]
    )
    pet.owner = nil
    people[1].name = "Bill"
    try context.save()
    #expect(try last(context) == ["update Person p2 name pets", "update Pet p1 owner"])
    // The two sides of a one-to-one relationship, and of an entity with itself.
    people[2].passport = people[0].passport
    people[2].boss = people[1]
    try context.save()
    #expect(
      try last(context) == [
        "update Passport p1 owner", "update Person p1 passport staff", "update Person p2 staff",
        "update Person p3 boss passport",
      ]
    )
  }

  @Test func `C114 the history records joining or parting a pair as an update of both`()
    async throws
  {
    let context = try await context()
    let people = try context.fetch(FetchDescriptor<Person>())
    let clubs = try context.fetch(FetchDescriptor<Circle>())
    people[2].clubs = [clubs[0]]
    clubs[1].people.removeAll { $0 === people[1] }
    people[2].name = "Cleopatra"
    try context.save()
    #expect(
      try last(context) == [
        "update Circle p1 people", "update Circle p2 people", "update Person p2 clubs",
        "update Person p3 clubs name",
      ]
    )
    context.delete(clubs[0])
    try context.save()
    #expect(try last(context) == ["delete Circle p1"])
  }

  @Test func `C115 the history records an insertion as an update of the related objects too`()
    async throws
  {
    let context = try await context()
    let people = try context.fetch(FetchDescriptor<Person>())
    let (pet, dan) = (Pet("Ned"), Person("Dan"))
    pet.owner = people[2]
    dan.clubs = try context.fetch(FetchDescriptor<Circle>())
    dan.pets.append(Pet("New"))
    try context.save()
    #expect(
      try last(context) == [
        "insert Person p4", "insert Pet p4", "insert Pet p5", "update Circle p1 people",
        "update Circle p2 people", "update Person p3 pets",
      ]
    )
    context.delete(pet)
    try context.save()
    // A deletion implies the end of its relationships; the effect of delete rules on others is an update of those.
    #expect(try last(context) == ["delete Pet p4"])
    context.delete(people[0])
    try context.save()
    #expect(
      try last(context) == [
        "delete Person p1", "delete Pet p1", "delete Pet p2", "delete Toy p1",
        "update Passport p1 owner", "update Person p2 boss", "update Person p3 boss",
      ]
    )
    let deletion = try context.fetchHistory().last?.changes.first { $0.kind == .delete }
    #expect(deletion?.tombstone.isEmpty == false || deletion?.identifier.entityName != "Person")
    // A save that changes no relationship records none.
    people[1].boss = nil
    people[1].name = "Bill"
    try context.save()
    #expect(try last(context) == ["update Person p2 name"])
  }

  @Test func `the history of an earlier version is refused`() async throws {
    let path = directory.file("family.db")
    _ = try await Family.open(.file, in: directory)
    try TestDatabase.make(
      "family.db",
      in: directory,
      """
      CREATE TABLE _batch_history (
        id INTEGER PRIMARY KEY AUTOINCREMENT, saved_at INTEGER NOT NULL, author TEXT)
      """
    )
    var configuration = ModelConfiguration(path: path)
    configuration.tracksHistory = true
    let container = try await ModelContainer(for: Family.types, configurations: [configuration])
    let context = ModelContext(container)
    #expect(throws: BatchError.self) { try context.fetchHistory() }
    try context.fetch(FetchDescriptor<Person>())[0].name = "new"
    let error = #expect(throws: BatchError.self) { try context.save() }
    #expect(error?.code == .unsupportedVersion, "\(String(describing: error))")
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM people WHERE name = 'new'") == ["0"])
  }
}
