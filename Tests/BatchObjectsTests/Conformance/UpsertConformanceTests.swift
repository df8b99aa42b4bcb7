import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// A class that declares more constraints than its table has.
private final class Optimist: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Optimist.self,
    entity: "Optimist",
    table: "members",
    properties: [.attribute("name", \.name), .attribute("age", \.age), .unique(["name", "age"])]
  )
  var name: String { self[\.name] }
  var age: Int? { self[\.age] }
}

private final class Guesser: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Guesser.self,
    entity: "Guesser",
    table: "members",
    properties: [.attribute("name", \.name), .unique("nmae")]
  )
  var name: String { self[\.name] }
}

private class Vehicle: ManagedObject, PersistentModel {
  class var mapping: ModelMapping { vehicleMapping }
  var id: Int {
    get { self[\.id] }
    set { self[\.id] = newValue }
  }
  var plate: String {
    get { self[\.plate] }
    set { self[\.plate] = newValue }
  }
  var color: String? {
    get { self[\.color] }
    set { self[\.color] = newValue }
  }

  convenience init(_ plate: String, _ color: String) {
    self.init()
    self.plate = plate
    self.color = color
  }
}

private final class Truck: Vehicle {
  override class var mapping: ModelMapping { truckMapping }
}

private final class Bus: Vehicle {
  override class var mapping: ModelMapping { busMapping }
}

private let vehicleMapping = ModelMapping(
  Vehicle.self,
  entity: "Vehicle",
  table: "vehicles",
  discriminator: ("kind", .text("vehicle")),
  properties: [
    .attribute("id", \.id), .attribute("plate", \.plate), .attribute("color", \.color),
    .unique("plate"),
  ]
)
private let truckMapping = ModelMapping(
  Truck.self,
  entity: "Truck",
  extending: vehicleMapping,
  discriminator: .text("truck"),
  properties: [.inherited("plate", \.plate), .inherited("color", \.color)]
)
private let busMapping = ModelMapping(
  Bus.self,
  entity: "Bus",
  extending: vehicleMapping,
  discriminator: .text("bus"),
  properties: [.inherited("plate", \.plate), .inherited("color", \.color)]
)

@Suite struct UpsertConformanceTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Club.make(in: directory)
  }

  private func member(_ name: String, in context: ModelContext) throws -> Member {
    let found = try context.fetch(
      Member.self,
      where: "name = :name",
      parameters: ["name": .text(name)]
    )
    return try #require(found.first)
  }

  private func rows(
    _ sql: String = """
    SELECT id || ' ' || mail || ' ' || name || ' ' || ifnull(age, '-') || ' ' || level
    FROM members ORDER BY id
    """
  ) throws -> [String] { try TestDatabase.texts(path, sql) }

  @Test func `C147 a new object with the unique value of a row becomes that row's object`()
    async throws
  {
    let context = ModelContext(try await Club.open(path))
    let new = Member("ada@x", "Ada Lovelace")
    context.insert(new)
    new.level = "gold"
    let temporary = new.persistentModelID
    let other = Member("zoe@x", "Zoe")
    context.insert(other)
    try context.save()
    #expect(new.persistentModelID.primaryKey == "p1" && other.persistentModelID.primaryKey == "p4")
    #expect(!new.hasChanges && !context.hasChanges)
    // Properties that were not set are unchanged.
    #expect(new.age == 36 && new.team?.name == "Red" && new.name == "Ada Lovelace")
    #expect(
      try rows() == [
        "1 ada@x Ada Lovelace 36 gold", "2 bob@x Bob 20 guest", "3 eve@x Eve 30 guest",
        "4 zoe@x Zoe - guest",
      ]
    )
    #expect(context.registeredModel(for: new.persistentModelID) === new)
    let old: Member? = context.registeredModel(for: temporary)
    #expect(old == nil)
    // From now on it is an ordinary object.
    new.age = 37
    try context.save()
    #expect(try rows()[0] == "1 ada@x Ada Lovelace 37 gold")
    // One without new values changes nothing.
    let same = Member("ada@x", "Ada Lovelace")
    let third = ModelContext(context.container)
    third.insert(same)
    try third.save()
    #expect(same.age == 37 && same.persistentModelID == new.persistentModelID)
    #expect(!third.hasChanges)
  }

  @Test func `C148 an upsert gives the new values to the context's object of the row`() async throws
  {
    let context = ModelContext(try await Club.open(path))
    let (ada, bob) = (try member("Ada", in: context), try member("Bob", in: context))
    bob.age = 21
    // Values that somebody else wrote appear too, where nothing was set here.
    try TestDatabase.make("club.db", in: directory, "UPDATE members SET level = 'old' WHERE id = 1")
    let new = Member("ada@x", "Ada Lovelace")
    let newBob = Member("bob@x", "Robert")
    context.insert(new)
    context.insert(newBob)
    try context.save()
    #expect(ada.name == "Ada Lovelace" && ada.level == "old" && ada.age == 36)
    #expect(new.persistentModelID == ada.persistentModelID && new.name == "Ada Lovelace")
    #expect(bob.name == "Robert" && bob.age == 21 && newBob.age == 21)
    #expect(context.registeredModel(for: ada.persistentModelID) === ada)
    #expect(try rows()[0...1] == ["1 ada@x Ada Lovelace 36 old", "2 bob@x Robert 21 guest"])
    // Setting a value that somebody else has changed is still a conflict.
    ada.age = 40
    try TestDatabase.make("club.db", in: directory, "UPDATE members SET age = 41 WHERE id = 1")
    let newer = Member("ada@x", "A.")
    context.insert(newer)
    let error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .mergeConflict)
    #expect(newer.isInserted && newer.persistentModelID.isTemporary && ada.isUpdated)
    #expect(ada.name == "Ada Lovelace")
    context.mergePolicy = .mergeByPropertyObjectTrump
    try context.save()
    #expect(ada.name == "A." && ada.age == 40 && newer.age == 40)
  }

  @Test func `C149 new objects with equal unique values overwrite each other in order`()
    async throws
  {
    let context = ModelContext(try await Club.open(path))
    let objects = (1...3).map { Member("new@x", "N\($0)") }
    for object in objects { context.insert(object) }
    objects[0].age = 1
    objects[1].age = 2
    try context.save()
    #expect(try rows().last == "4 new@x N3 2 guest")
    #expect(Set(objects.map(\.persistentModelID)).count == 1)
    #expect(objects.allSatisfy { $0.name == "N3" && $0.age == 2 && !$0.hasChanges })
    #expect(context.registeredModel(for: objects[0].persistentModelID) === objects[0])
    // The table compares team names without regard to case.
    let teams = ["green", "GREEN", "RED"].map { Team($0) }
    for team in teams { context.insert(team) }
    try context.save()
    #expect(try rows("SELECT id || name FROM teams ORDER BY id") == ["1RED", "2Blue", "3GREEN"])
    #expect(teams.map(\.persistentModelID.primaryKey) == ["p3", "p3", "p1"])
  }

  @Test func `C150 an upsert keeps the row's relationships and redirects references to its object`()
    async throws
  {
    let context = ModelContext(try await Club.open(path))
    let new = Member("ada@x", "Ada L.")
    context.insert(new)
    let go = try #require(context.fetch(Skill.self).last)
    let skill = Skill()
    context.insert(skill)
    skill.name = "dance"
    new.skills = [go, skill]
    // Existing teams and a new one; their members, by number.
    let (red, green) = (Team("red"), Team("green"))
    let (second, first) = (Member("b@x", "B"), Member("g@x", "G"))
    for object in [second, first] { context.insert(object) }
    (second.team, second.number) = (red, 2)
    (first.team, first.number) = (green, 1)
    try context.save()
    #expect(red.persistentModelID.primaryKey == "p1" && green.persistentModelID.primaryKey == "p3")
    #expect(second.persistentModelID.primaryKey == "p2")
    #expect(
      try rows("SELECT id || mail || team_id || number FROM members ORDER BY id") == [
        "1ada@x11", "2b@x12", "3eve@x21", "4g@x31",
      ]
    )
    #expect(try rows("SELECT skill FROM member_skills WHERE member = 1") == ["1", "2", "3"])
    #expect(new.skills.map(\.name) == ["chess", "go", "dance"])
    #expect(red.members.map(\.name) == ["Ada L.", "B"])
    // A reference to a new object that was merged into another new one refers to that one.
    let twins = [Team("violet"), Team("Violet")]
    let pair = [Member("v1@x", "V1"), Member("v2@x", "V2")]
    for object in pair { context.insert(object) }
    for (number, member) in pair.enumerated() {
      (member.team, member.number) = (twins[number], number)
    }
    try context.save()
    #expect(try rows("SELECT DISTINCT team_id FROM members WHERE mail LIKE 'v%'") == ["4"])
    #expect(pair[0].team?.persistentModelID == pair[1].team?.persistentModelID)
    #expect(try TestDatabase.integrity(path) == ["ok"])
  }

  @Test func `C151 other contexts and the history see an upsert as an update`() async throws {
    let container = try await Club.open(path, tracksHistory: true)
    let context = ModelContext(container)
    let other = ModelContext(container)
    other.automaticallyMergesChangesFromParent = true
    let ada = try member("Ada", in: other)
    let stream = container.savedChanges()
    let new = Member("ada@x", "Ada L.")
    context.insert(new)
    context.insert(Member("zoe@x", "Zoe"))
    try context.save()
    var changes = stream.makeAsyncIterator()
    let told = try #require(await changes.next())
    #expect(told.updated == [new.persistentModelID] && told.inserted.count == 1)
    _ = try other.fetchCount(FetchDescriptor<Member>())
    #expect(ada.name == "Ada L.")
    let history = try context.fetchHistory()
    let kinds = history.flatMap(\.changes).map { "\($0.kind) \($0.identifier.primaryKey)" }
    #expect(kinds.sorted() == ["insert p4", "update p1"])
    let update = try #require(history.flatMap(\.changes).first { $0.kind == .update })
    #expect(update.updatedAttributes == ["name"])
  }

  @Test func `C152 several properties can be unique together, where nil equals nothing`()
    async throws
  {
    let context = ModelContext(try await Club.open(path))
    let teams = try context.fetch(Team.self)
    func insert(_ email: String, _ team: Team?, _ number: Int?) -> Member {
      let member = Member(email, email)
      context.insert(member)
      member.team = team
      member.number = number
      return member
    }
    let members = [
      insert("r1@x", teams[0], 1), insert("b2@x", teams[1], 2), insert("n1@x", nil, 1),
      insert("n2@x", nil, 1), insert("rn@x", teams[0], nil), insert("rn2@x", teams[0], nil),
    ]
    try context.save()
    #expect(
      members.map(\.persistentModelID.primaryKey) == ["p1", "p4", "p5", "p6", "p7", "p8"]
    )
    #expect(try rows("SELECT mail FROM members WHERE id = 1") == ["r1@x"])
    // A value that a row gains or loses in this save counts as it will be.
    let eve = try member("Eve", in: context)
    eve.email = "moved@x"
    let (taken, moved) = (Member("eve@x", "New Eve"), Member("moved@x", "Same Eve"))
    context.insert(taken)
    context.insert(moved)
    try context.save()
    #expect(taken.persistentModelID.primaryKey == "p9")
    #expect(moved.persistentModelID == eve.persistentModelID && eve.name == "Same Eve")
    // A deleted row makes room for a new one.
    context.delete(eve)
    let again = Member("moved@x", "Again")
    context.insert(again)
    try context.save()
    #expect(again.persistentModelID.primaryKey == "p10")
  }

  @Test func `C153 a uniqueness that the table does not enforce is an invalid mapping`()
    async throws
  {
    let configuration = ModelConfiguration(path: path)
    var error = await #expect(throws: BatchError.self) {
      _ = try await ModelContainer(for: Optimist.self, configurations: configuration)
    }
    #expect(error?.code == .invalidMapping)
    let remedy = try #require(error?.remedy)
    #expect(
      remedy == "CREATE UNIQUE INDEX \"members_name_age\" ON \"members\" (\"name\", \"age\")"
    )
    error = await #expect(throws: BatchError.self) {
      _ = try await ModelContainer(for: Guesser.self, configurations: configuration)
    }
    #expect(error?.code == .invalidMapping && error?.message.contains("\"nmae\"") == true)
    try TestDatabase.make(
      "club.db",
      in: directory,
      "CREATE UNIQUE INDEX some ON members (name, age) WHERE age > 3"
    )
    await #expect(throws: BatchError.self) {
      _ = try await ModelContainer(for: Optimist.self, configurations: configuration)
    }
    try TestDatabase.make("club.db", in: directory, remedy)
    _ = try await ModelContainer(for: Optimist.self, configurations: configuration)
  }

  @Test func `C154 an object that matches two rows is refused`() async throws {
    let context = ModelContext(try await Club.open(path))
    let new = Member("eve@x", "Both")
    context.insert(new)
    new.team = try context.fetch(Team.self)[0]
    new.number = 1
    let error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .constraint && error.place == "new Member")
    #expect(error.message.contains("\"email\"") && error.message.contains("\"team, number\""))
    #expect(new.isInserted)
    #expect(try rows().count == 3)
    new.number = 9
    try context.save()
    #expect(new.persistentModelID.primaryKey == "p3")
  }

  @Test func `C155 a failing save leaves new objects new`() async throws {
    let context = ModelContext(try await Club.open(path))
    let bob = try member("Bob", in: context)
    let new = [
      Member("ada@x", "A"), Member("bob@x", "B"), Member("new@x", "C"), Member("new@x", "D"),
    ]
    for object in new { context.insert(object) }
    let identifiers = new.map(\.persistentModelID)
    new[3].age = -1
    let error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .constraint && error.place == "new Member")
    #expect(error.message == "property \"age\" is -1, which CHECK (age >= 0) refuses")
    #expect(new.map(\.persistentModelID) == identifiers)
    #expect(new.allSatisfy(\.isInserted) && context.insertedModelsArray == new)
    #expect(new.map(\.name) == ["A", "B", "C", "D"] && new[2].age == nil)
    #expect(bob.name == "Bob" && !bob.hasChanges)
    #expect(try rows() == ["1 ada@x Ada 36 guest", "2 bob@x Bob 20 guest", "3 eve@x Eve 30 guest"])
    new[3].age = 1
    try context.save()
    #expect(bob.name == "B" && new[2].name == "D" && new[2].age == 1)
    #expect(try rows().count == 4)
  }

  @Test func `a failing save leaves new objects in their order`() async throws {
    let context = ModelContext(try await Club.open(path))
    // An object that sets only the values its row already has is not written, but an undo makes it unsaved again.
    let same = Member("ada@x", "Ada")
    let (new, wrong) = (Member("new@x", "New"), Member("wrong@x", "Wrong"))
    for member in [same, new, wrong] { context.insert(member) }
    wrong.age = -1
    let error = #expect(throws: BatchError.self) { try context.save() }
    #expect(error?.code == .constraint)
    #expect(context.insertedModelsArray == [same, new, wrong])
    wrong.age = 1
    try context.save()
    #expect([same, new, wrong].map(\.persistentModelID.primaryKey) == ["p1", "p4", "p5"])
  }

  @Test func `an upsert keeps the entity of a sub-entity's row and refuses one of another entity`()
    async throws
  {
    let path = try TestDatabase.make(
      "vehicles.db",
      in: directory,
      "CREATE TABLE vehicles (id INTEGER PRIMARY KEY, kind TEXT, plate TEXT UNIQUE, color TEXT)",
      "INSERT INTO vehicles VALUES (1, 'truck', 'T', 'red'), (2, 'bus', 'B', 'red')"
    )
    let container = try await ModelContainer(
      for: Vehicle.self,
      Truck.self,
      Bus.self,
      configurations: ModelConfiguration(path: path)
    )
    func rows() throws -> [String] {
      try TestDatabase.texts(path, "SELECT id || kind || plate || color FROM vehicles ORDER BY id")
    }
    let context = ModelContext(container)
    let new = Vehicle("T", "blue")
    context.insert(new)
    let other = Vehicle("V", "blue")
    context.insert(other)
    try context.save()
    #expect(try rows() == ["1truckTblue", "2busBred", "3vehicleVblue"])
    // The row's object is a truck; the new one is not.
    let trucks = try context.fetch(FetchDescriptor<Truck>())
    #expect(trucks.map(\.color) == ["blue"] && new.modelContext == nil)
    context.insert(Truck("B", "green"))
    var error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .modelTypeMismatch)
    context.rollback()
    let moved = Bus("B", "white")
    context.insert(moved)
    moved.id = 9
    error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .constraint && error.message.contains("its key is 9"))
    moved.id = 2
    try context.save()
    #expect(moved.persistentModelID.primaryKey == "p2")
    #expect(try rows() == ["1truckTblue", "2busBwhite", "3vehicleVblue"])
  }
}
