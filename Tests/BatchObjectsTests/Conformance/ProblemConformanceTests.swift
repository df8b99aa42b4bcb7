import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// A class whose mapping lacks two of its properties.
private final class Forgetful: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Forgetful.self,
    entity: "Forgetful",
    table: "members",
    properties: [.attribute("name", \.name)]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var nickname: String { self[\.nickname] }
  var friend: Forgetful? { self[\.friend] }
}

/// The problems that keep objects from being saved, and the state of new objects before a save.
@Suite struct ProblemConformanceTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Club.make(in: directory)
  }

  private func failure(_ context: ModelContext) throws -> BatchError {
    try #require(#expect(throws: BatchError.self) { try context.save() })
  }

  private func applicant(_ name: String, in context: ModelContext) throws -> Applicant {
    let found = try context.fetch(
      Applicant.self,
      where: "name = :name",
      parameters: ["name": .text(name)]
    )
    return try #require(found.first)
  }

  @Test func `C131 the error of a violated constraint names object, property, value and remedy`()
    async throws
  {
    let context = ModelContext(try await Club.openStrict(path))
    context.insert(Applicant("ada@x"))
    var error = try failure(context)
    #expect(error.code == .constraint)
    #expect(error.place == "new Applicant")
    let ada = try applicant("Ada", in: context).persistentModelID
    #expect(error.message == "property \"email\" is 'ada@x', which \(ada) has already")
    #expect(error.remedy?.contains(".unique(…)") == true)
    var problem = try #require(error.saveProblems.first)
    #expect(problem.property == "email" && problem.value == .text("ada@x"))
    #expect(problem.identifier.isTemporary && problem.object == "new Applicant")
    #expect(problem.description == error.description)
    context.rollback()

    let bob = try applicant("Bob", in: context)
    bob.age = -5
    error = try failure(context)
    #expect(error.place == bob.persistentModelID.description)
    #expect(error.message == "property \"age\" is -5, which CHECK (age >= 0) refuses")
    problem = try #require(error.saveProblems.first)
    #expect(problem.property == "age" && problem.value == .integer(-5))
    context.rollback()

    bob.name = nil
    error = try failure(context)
    #expect(error.message == "property \"name\" has no value")
    #expect(error.remedy == "set it before saving")
  }

  @Test func `C132 all problems that the database has with a save are reported together`()
    async throws
  {
    let context = ModelContext(try await Club.openStrict(path))
    let ada = try applicant("Ada", in: context)
    ada.age = -1
    try applicant("Bob", in: context).name = "Robert"
    context.insert(Applicant(nil, nil))
    context.insert(Applicant("new@x"))
    context.insert(Applicant("new@x"))
    let locker = Locker()
    context.insert(locker)
    locker.code = "L9"
    locker.owner = 99
    // Ada's locker refers to Ada.
    context.delete(try applicant("Eve", in: context))
    let error = try failure(context)
    #expect(error.code == .constraint)
    #expect(
      error.saveProblems.map {
        "\($0.object == "new Locker" || $0.object == "new Applicant" ? $0.object : $0.identifier.primaryKey): \($0.message)"
      }
        == [
          "p1: property \"age\" is -1, which CHECK (age >= 0) refuses",
          "new Applicant: property \"email\" has no value",
          "new Applicant: property \"name\" has no value",
          "new Applicant: property \"email\" is 'new@x', which another new Applicant has already",
          "new Locker: property \"owner\" refers to 99, and there is no such row in \"members\"",
        ]
    )
    #expect(error.message.hasPrefix("5 problems keep objects from being saved: "))
    #expect(try TestDatabase.texts(path, "SELECT name FROM members WHERE id = 2") == ["Bob"])
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM members") == ["3"])
    // Nothing else is wrong.
    ada.age = 1
    for object in context.insertedModelsArray { context.delete(object) }
    try context.save()
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM members") == ["2"])
  }

  @Test func `C133 the error of a denied deletion names the object and what refers to it`()
    async throws
  {
    let context = ModelContext(
      try await ModelContainer(for: Applicant.self, configurations: ModelConfiguration(path: path))
    )
    try TestDatabase.make(
      "club.db",
      in: directory,
      "CREATE TABLE visits (a INTEGER, b INTEGER, FOREIGN KEY (a) REFERENCES members)",
      "INSERT INTO visits VALUES (3, 1), (3, 2)"
    )
    let eve = try applicant("Eve", in: context)
    context.delete(eve)
    let error = try failure(context)
    #expect(error.place == eve.persistentModelID.description)
    #expect(error.message == "it cannot be deleted: 2 rows of \"visits\" refer to it")
    #expect(eve.isDeleted && context.deletedModelsArray == [eve])
  }

  @Test func `C134 the error of an unmapped property names the property and its class`() async {
    func message(_ bytes: [UInt8]?) -> String { String(decoding: bytes ?? [], as: UTF8.self) }
    var result = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      _ = Forgetful().nickname
    }
    let attribute = message(result?.standardErrorContent)
    #expect(
      attribute.contains(
        "Forgetful.mapping does not register property \"nickname\": add .attribute(\"nickname\", …)"
      ),
      "\(attribute)"
    )
    result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Forgetful().friend
    }
    let relationship = message(result?.standardErrorContent)
    #expect(
      relationship.contains("register property \"friend\": add .toOne(\"friend\", …)"),
      "\(relationship)"
    )
  }

  @Test func `C135 a type with several stored forms does not compile without as:`() throws {
    func source(_ type: String, _ codec: String = "") -> String {
      """
      import Foundation
      enum State: String, Codable { case open, closed }
      struct Address: Codable { var city: String }
      final class Visit: ManagedObject, PersistentModel {
        static let mapping = ModelMapping(
          Visit.self, entity: "Visit", table: "visits",
          properties: [
            .attribute("count", \\.count), .attribute("note", \\.note), .attribute("what", \\.what\(codec)),
            .unique("note"), .unique(["count", "note"]),
          ])
        var count: Int { self[\\.count] }
        var note: String? { self[\\.note] }
        var what: \(type) { self[\\.what] }
      }
      """
    }
    for (type, codec) in [
      ("Date", ", as: .iso8601"), ("Date?", ", as: .unixSeconds"),
      ("State", ", as: .raw(placeholder: .open)"),
      ("Address?", ", as: .json(placeholder: Address(city: \"\"))"), ("UUID", ""), ("Int?", ""),
    ] {
      let (status, messages) = try SwiftCompiler.compile(
        objectImports + source(type, codec),
        in: directory
      )
      #expect(status == 0, "\(type): \(messages)")
    }
    for (type, hint) in [
      ("Date", "add as: .iso8601, .unixSeconds or .referenceSeconds"),
      ("Date?", "add as: .iso8601, .unixSeconds or .referenceSeconds"),
      ("State", "add as: .raw(placeholder:)"), ("Address?", ".json(placeholder:)"),
    ] {
      let (status, messages) = try SwiftCompiler.compile(
        objectImports + source(type),
        in: directory
      )
      #expect(status != 0 && messages.contains(hint), "\(type): \(messages)")
    }
  }

  @Test func `C136 a new object has its columns' constant defaults before it is saved`()
    async throws
  {
    let context = ModelContext(try await Club.openStrict(path))
    let carol = Applicant("carol@x", "Carol")
    context.insert(carol)
    #expect(carol.level == "guest" && carol.points == 1 && carol.number == -7)
    #expect(carol["points"] == .real(1))
    carol.points = nil
    carol.level = "gold"
    #expect(carol.points == nil && carol.level == "gold")
    #expect(carol.changedValues.keys.sorted() == ["email", "level", "name", "points"])
    let number = -7
    let guests = FetchDescriptor<Applicant>(predicate: #Predicate { $0.number == number })
    #expect(try context.fetch(guests) == [carol])
    try context.save()
    #expect(carol.level == "gold" && carol.points == nil && carol.number == -7)
    #expect(carol.joined != nil)
  }

  @Test func `C137 defaults have the store's conversions, and expressions are left to the store`()
    async throws
  {
    let defaults: [(text: String, type: String, isConstant: Bool)] = [
      ("7", "INTEGER", true), ("-7", "INTEGER", true), ("+7", "REAL", true), ("7", "TEXT", true),
      ("7.0", "INTEGER", true), ("7.5", "INTEGER", true), ("1e3", "NUMERIC", true),
      (".5", "REAL", true), ("5.", "REAL", true), ("-.5e-3", "REAL", true),
      ("'it''s'", "TEXT", true), ("\"two\"", "TEXT", true), ("x'00ff'", "BLOB", true),
      ("''", "", true), ("NULL", "TEXT", true), ("TRUE", "BOOLEAN", true), ("(7)", "INT", true),
      ("(-7)", "INT", true), ("9223372036854775808", "REAL", true),
      ("'7'", "INTEGER", false), ("CURRENT_TIMESTAMP", "TEXT", false),
      ("(1 + 1)", "INTEGER", false), ("('a' || 'b')", "TEXT", false), ("(abs(-1))", "INT", false),
    ]
    let columns = defaults.enumerated().map { "c\($0) \($1.type) DEFAULT \($1.text)" }
    let path = try TestDatabase.make(
      "defaults.db",
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, \(columns.joined(separator: ", ")))"
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let context = ModelContext(container)
    let new = try context.insertNewObject(ofEntity: "t")
    let before = defaults.indices.map { new["c\($0)"] }
    try context.save()
    for (index, value) in before.enumerated() {
      let stored = new["c\(index)"]
      let (text, type, isConstant) = defaults[index]
      if isConstant {
        #expect(value.debugDescription == stored.debugDescription, "\(type) DEFAULT \(text)")
      } else {
        #expect(value == .null && stored != .null, "\(type) DEFAULT \(text)")
      }
    }
  }

  @Test func `C138 two objects swap their unique values in one save`() async throws {
    let container = try await Club.openStrict(path)
    let context = ModelContext(container)
    let (ada, bob) = (try applicant("Ada", in: context), try applicant("Bob", in: context))
    (ada.email, bob.email) = (bob.email, ada.email)
    try context.save()
    #expect(ada.email == "bob@x" && bob.email == "ada@x" && !context.hasChanges)
    let rows = "SELECT name || ' ' || mail FROM members ORDER BY id"
    #expect(try TestDatabase.texts(path, rows) == ["Ada bob@x", "Bob ada@x", "Eve eve@x"])
    // A change by somebody else meanwhile is still a conflict.
    (ada.email, bob.email) = (bob.email, ada.email)
    try TestDatabase.make("club.db", in: directory, "UPDATE members SET age = 99 WHERE id = 2")
    #expect(try failure(context).code == .mergeConflict)
    #expect(try TestDatabase.texts(path, rows) == ["Ada bob@x", "Bob ada@x", "Eve eve@x"])
    context.mergePolicy = .mergeByPropertyObjectTrump
    try context.save()
    #expect(try TestDatabase.texts(path, rows) == ["Ada ada@x", "Bob bob@x", "Eve eve@x"])
    #expect(try TestDatabase.texts(path, "SELECT age FROM members WHERE id = 2") == ["99"])
  }

  @Test func `C139 unique values rotate, and move from a deleted object to a changed one`()
    async throws
  {
    let context = ModelContext(try await Club.openStrict(path))
    let all = try ["Ada", "Bob", "Eve"].map { try applicant($0, in: context) }
    let emails = all.map(\.email)
    for (index, object) in all.enumerated() { object.email = emails[(index + 1) % 3] }
    try context.save()
    #expect(all.map(\.email) == ["bob@x", "eve@x", "ada@x"])
    context.delete(all[2])
    all[0].email = "ada@x"
    context.insert(Applicant("bob@x", "New"))
    try context.save()
    #expect(
      try TestDatabase.texts(path, "SELECT name || ' ' || mail FROM members ORDER BY id")
        == ["Ada ada@x", "Bob eve@x", "New bob@x"]
    )
    #expect(try TestDatabase.integrity(path) == ["ok"])
  }

  @Test func `an object whose row was not read releases its unique value in the same save`()
    async throws
  {
    let context = ModelContext(try await Club.openStrict(path))
    let (ada, eve) = (try applicant("Ada", in: context), try applicant("Eve", in: context))
    context.refresh(eve, mergeChanges: false)
    context.delete(eve)
    ada.email = "eve@x"
    try context.save()
    let rows = "SELECT name || ' ' || mail FROM members ORDER BY id"
    #expect(try TestDatabase.texts(path, rows) == ["Ada eve@x", "Bob bob@x"])
  }

  @Test func `C140 one-to-one partners swap in one save, mandatory or not`() async throws {
    let context = ModelContext(try await Club.openStrict(path))
    let lockers = try context.fetch(Locker.self)
    (lockers[0].owner, lockers[1].owner) = (2, 1)
    (lockers[0].code, lockers[1].code) = ("L2", "L1")
    try context.save()
    #expect(
      try TestDatabase.texts(path, "SELECT code || member_id FROM lockers ORDER BY id")
        == ["L22", "L11"]
    )
    let market = try Market.make(in: directory)
    try TestDatabase.make(
      "market.db",
      in: directory,
      "INSERT INTO cards VALUES (1, 1), (2, 2)"
    )
    let other = ModelContext(try await Market.open(market))
    let cards = try other.fetch(Card.self)
    let customers = try other.fetch(Customer.self)
    cards[0].customer = customers[1]
    cards[1].customer = customers[0]
    try other.save()
    #expect(customers.map(\.card) == [cards[1], cards[0]])
    #expect(
      try TestDatabase.texts(market, "SELECT customer_id FROM cards ORDER BY id") == ["2", "1"]
    )
  }
}
