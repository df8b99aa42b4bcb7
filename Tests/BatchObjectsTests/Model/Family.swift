import BatchIdentifiers
import BatchObjects
import BatchTestSupport

final class Person: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Person.self,
    entity: "Person",
    table: "people",
    properties: [
      .attribute("name", \.name).preservedOnDeletion(),
      .toOne("boss", \.boss, column: "boss_id", inverse: "staff"),
      .toMany("staff", \.staff, inverse: "boss"),
      .toMany("pets", \.pets, inverse: "owner", onDelete: .cascade),
      .toOne("passport", \.passport, inverse: "owner"),
      .toMany("clubs", \.clubs, through: "members"),
      .toMany("badges", \.badges, inverse: "keeper", onDelete: .deny),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var boss: Person? {
    get { self[\.boss] }
    set { self[\.boss] = newValue }
  }
  var staff: [Person] {
    get { self[\.staff] }
    set { self[\.staff] = newValue }
  }
  var pets: [Pet] {
    get { self[\.pets] }
    set { self[\.pets] = newValue }
  }
  var passport: Passport? {
    get { self[\.passport] }
    set { self[\.passport] = newValue }
  }
  var clubs: [Circle] {
    get { self[\.clubs] }
    set { self[\.clubs] = newValue }
  }
  var badges: [Badge] {
    get { self[\.badges] }
    set { self[\.badges] = newValue }
  }

  convenience init(_ name: String) {
    self.init()
    self.name = name
  }
}

final class Pet: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Pet.self,
    entity: "Pet",
    table: "pets",
    properties: [
      .attribute("name", \.name),
      .toOne("owner", \.owner, column: "owner_id", inverse: "pets"),
      .toMany("toys", \.toys, inverse: "pet", onDelete: .cascade),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var owner: Person? {
    get { self[\.owner] }
    set { self[\.owner] = newValue }
  }
  var toys: [Toy] {
    get { self[\.toys] }
    set { self[\.toys] = newValue }
  }

  convenience init(_ name: String) {
    self.init()
    self.name = name
  }
}

final class Toy: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Toy.self,
    entity: "Toy",
    table: "toys",
    properties: [
      .attribute("name", \.name), .toOne("pet", \.pet, column: "pet_id", inverse: "toys"),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var pet: Pet? {
    get { self[\.pet] }
    set { self[\.pet] = newValue }
  }

  convenience init(_ name: String) {
    self.init()
    self.name = name
  }
}

final class Passport: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Passport.self,
    entity: "Passport",
    table: "passports",
    properties: [
      .attribute("number", \.number),
      .toOne("owner", \.owner, column: "owner_id", inverse: "passport"),
    ]
  )

  var number: Int {
    get { self[\.number] }
    set { self[\.number] = newValue }
  }
  var owner: Person? {
    get { self[\.owner] }
    set { self[\.owner] = newValue }
  }

  convenience init(_ number: Int) {
    self.init()
    self.number = number
  }
}

final class Circle: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Circle.self,
    entity: "Circle",
    table: "clubs",
    properties: [
      .attribute("name", \.name), .toMany("people", \.people, through: "members"),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var people: [Person] {
    get { self[\.people] }
    set { self[\.people] = newValue }
  }

  convenience init(_ name: String) {
    self.init()
    self.name = name
  }
}

/// A badge, identified by its code; owners of one cannot be deleted.
final class Badge: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Badge.self,
    entity: "Badge",
    table: "badges",
    properties: [
      .attribute("code", \.code), .attribute("label", \.label),
      .toOne("keeper", \.keeper, column: "keeper_id", inverse: "badges"),
      .unique("code"),
    ]
  )

  var code: Int {
    get { self[\.code] }
    set { self[\.code] = newValue }
  }
  var label: Int {
    get { self[\.label] }
    set { self[\.label] = newValue }
  }
  var keeper: Person? {
    get { self[\.keeper] }
    set { self[\.keeper] = newValue }
  }

  convenience init(_ code: Int) {
    self.init()
    self.code = code
  }

  override func validate() throws {
    if label < 0 { throw ModelValidationError(\Badge.label, "must not be negative") }
  }
}

/// People with pets, which have toys; with a passport each, clubs, and badges.
enum Family {
  static let schema = """
    CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL,
      boss_id INTEGER REFERENCES people);
    CREATE TABLE pets (id INTEGER PRIMARY KEY, name TEXT NOT NULL,
      owner_id INTEGER REFERENCES people);
    CREATE TABLE toys (id INTEGER PRIMARY KEY, name TEXT NOT NULL, pet_id INTEGER REFERENCES pets);
    CREATE TABLE passports (id INTEGER PRIMARY KEY, number INTEGER NOT NULL,
      owner_id INTEGER UNIQUE REFERENCES people);
    CREATE TABLE clubs (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE members (person INTEGER NOT NULL REFERENCES people,
      club INTEGER NOT NULL REFERENCES clubs, PRIMARY KEY (person, club)) WITHOUT ROWID;
    CREATE TABLE badges (id INTEGER PRIMARY KEY, code INTEGER NOT NULL UNIQUE,
      label INTEGER NOT NULL DEFAULT 0, keeper_id INTEGER REFERENCES people);
    CREATE INDEX pets_owner ON pets (owner_id);
    CREATE INDEX toys_pet ON toys (pet_id);
    """

  static let rows = """
    INSERT INTO people VALUES (1, 'Ada', NULL), (2, 'Bob', 1), (3, 'Cleo', 1);
    INSERT INTO pets VALUES (1, 'Rex', 1), (2, 'Tom', 1), (3, 'Kit', 2);
    INSERT INTO toys VALUES (1, 'ball', 1), (2, 'mouse', 3);
    INSERT INTO passports VALUES (1, 11, 1), (2, 22, 2);
    INSERT INTO clubs VALUES (1, 'chess'), (2, 'golf');
    INSERT INTO members VALUES (1, 1), (1, 2), (2, 2);
    """

  static let types: [any PersistentModel.Type] = [
    Person.self, Pet.self, Toy.self, Passport.self, Circle.self, Badge.self,
  ]

  /// The stores that a test is run with.
  enum Place: CaseIterable, Sendable {
    case memory, file
  }

  static func open(
    _ place: Place = .memory,
    in directory: TemporaryDirectory? = nil,
    rows: String = Family.rows,
    tracksHistory: Bool = false
  ) async throws -> ModelContainer {
    var configuration = ModelConfiguration(
      inMemoryWith: schema + rows,
      busyTimeout: .milliseconds(200)
    )
    if place == .file, let directory {
      configuration = ModelConfiguration(
        path: directory.file("family.db"),
        busyTimeout: .milliseconds(200),
        initialSchema: schema + rows
      )
    }
    configuration.tracksHistory = tracksHistory
    return try await ModelContainer(for: types, configurations: [configuration])
  }
}
