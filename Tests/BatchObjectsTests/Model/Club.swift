import BatchIdentifiers
import BatchObjects
import BatchTestSupport

/// A member whom the table holds to much, and the class to nothing.
final class Applicant: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Applicant.self,
    entity: "Applicant",
    table: "members",
    properties: [
      .attribute("email", \.email, column: "mail"), .attribute("name", \.name),
      .attribute("age", \.age), .attribute("level", \.level), .attribute("points", \.points),
      .attribute("joined", \.joined), .attribute("number", \.number),
    ]
  )

  var email: String? {
    get { self[\.email] }
    set { self[\.email] = newValue }
  }
  var name: String? {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var age: Int? {
    get { self[\.age] }
    set { self[\.age] = newValue }
  }
  var level: String {
    get { self[\.level] }
    set { self[\.level] = newValue }
  }
  var points: Double? {
    get { self[\.points] }
    set { self[\.points] = newValue }
  }
  var joined: String? { self[\.joined] }
  var number: Int? {
    get { self[\.number] }
    set { self[\.number] = newValue }
  }

  convenience init(_ email: String?, _ name: String? = "A", age: Int? = nil) {
    self.init()
    if let email { self.email = email }
    if let name { self.name = name }
    if let age { self.age = age }
  }
}

/// A team of members, identified by its name.
final class Team: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Team.self,
    entity: "Team",
    table: "teams",
    properties: [
      .attribute("name", \.name),
      .toMany("members", \.members, inverse: "team"),
      .unique("name"),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var members: [Member] {
    get { self[\.members] }
    set { self[\.members] = newValue }
  }

  convenience init(_ name: String) {
    self.init()
    self.name = name
  }
}

/// A member, of whom there is one by each address and by each number in a team.
final class Member: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Member.self,
    entity: "Member",
    table: "members",
    properties: [
      .attribute("email", \.email, column: "mail"), .attribute("name", \.name),
      .attribute("age", \.age), .attribute("level", \.level), .attribute("number", \.number),
      .toOne("team", \.team, column: "team_id", inverse: "members"),
      .toMany("skills", \.skills, through: "member_skills"),
      .unique("email"), .unique(["team", "number"]),
    ]
  )

  var email: String {
    get { self[\.email] }
    set { self[\.email] = newValue }
  }
  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var age: Int? {
    get { self[\.age] }
    set { self[\.age] = newValue }
  }
  var level: String {
    get { self[\.level] }
    set { self[\.level] = newValue }
  }
  var number: Int? {
    get { self[\.number] }
    set { self[\.number] = newValue }
  }
  var team: Team? {
    get { self[\.team] }
    set { self[\.team] = newValue }
  }
  var skills: [Skill] {
    get { self[\.skills] }
    set { self[\.skills] = newValue }
  }

  convenience init(_ email: String, _ name: String) {
    self.init()
    self.email = email
    self.name = name
  }
}

final class Skill: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Skill.self,
    entity: "Skill",
    table: "skills",
    properties: [.attribute("name", \.name)]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
}

/// A member's locker, which is exactly one's.
final class Locker: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Locker.self,
    entity: "Locker",
    table: "lockers",
    properties: [.attribute("code", \.code), .attribute("owner", \.owner, column: "member_id")]
  )

  var code: String {
    get { self[\.code] }
    set { self[\.code] = newValue }
  }
  var owner: Int {
    get { self[\.owner] }
    set { self[\.owner] = newValue }
  }
}

/// A club with teams, and members whom much is asked of.
enum Club {
  static func make(in directory: TemporaryDirectory) throws -> String {
    try TestDatabase.make(
      "club.db",
      in: directory,
      "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE COLLATE NOCASE)",
      """
      CREATE TABLE members (id INTEGER PRIMARY KEY, mail TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL, age INTEGER CHECK (age >= 0), level TEXT NOT NULL DEFAULT 'guest',
        points REAL DEFAULT 1, joined TEXT DEFAULT CURRENT_TIMESTAMP,
        team_id INTEGER REFERENCES teams, number INTEGER DEFAULT (-7), UNIQUE (team_id, number))
      """,
      "CREATE TABLE skills (id INTEGER PRIMARY KEY, name TEXT)",
      """
      CREATE TABLE member_skills (member INTEGER REFERENCES members,
        skill INTEGER REFERENCES skills, PRIMARY KEY (member, skill)) WITHOUT ROWID
      """,
      """
      CREATE TABLE lockers (id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE,
        member_id INTEGER NOT NULL UNIQUE REFERENCES members)
      """,
      "INSERT INTO teams VALUES (1, 'Red'), (2, 'Blue')",
      """
      INSERT INTO members (id, mail, name, age, team_id, number) VALUES
        (1, 'ada@x', 'Ada', 36, 1, 1), (2, 'bob@x', 'Bob', 20, 1, 2), (3, 'eve@x', 'Eve', 30, 2, 1)
      """,
      "INSERT INTO skills VALUES (1, 'chess'), (2, 'go')",
      "INSERT INTO member_skills VALUES (1, 1), (1, 2)",
      "INSERT INTO lockers VALUES (1, 'L1', 1), (2, 'L2', 2)"
    )
  }

  static func open(
    _ path: String,
    tracksHistory: Bool = false
  ) async throws -> ModelContainer {
    var configuration = ModelConfiguration(path: path)
    configuration.tracksHistory = tracksHistory
    return try await ModelContainer(
      for: [Team.self, Member.self, Skill.self, Locker.self],
      configurations: [configuration]
    )
  }

  /// The same where the class of members leaves everything to the table.
  static func openStrict(_ path: String) async throws -> ModelContainer {
    try await ModelContainer(
      for: Applicant.self,
      Locker.self,
      configurations: ModelConfiguration(path: path)
    )
  }
}
