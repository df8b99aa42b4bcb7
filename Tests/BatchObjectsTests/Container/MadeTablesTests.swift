import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Tables that a container makes, and those that it finds.
@Suite struct MadeTablesTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private static let all: [any PersistentModel.Type] = [
    Harbor.self, Ship.self, Tanker.self, Pilot.self,
  ]

  private func open(_ path: String) async throws -> ModelContainer {
    try await ModelContainer(for: Self.all, configurations: [ModelConfiguration(path: path)])
  }

  private func error(
    _ types: [any PersistentModel.Type],
    _ configuration: ModelConfiguration
  ) async -> BatchError? {
    await #expect(throws: BatchError.self) {
      try await ModelContainer(for: types, configurations: [configuration])
    }
  }

  @Test func `a new file gets the tables of the classes`() async throws {
    let path = directory.file("new.db")
    _ = try await open(path)
    let made = try TestDatabase.texts(
      path,
      """
      SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE '\\_batch%' ESCAPE '\\'
      ORDER BY rowid
      """
    )
    let later = "DEFERRABLE INITIALLY DEFERRED"
    #expect(
      made == [
        """
        CREATE TABLE "harbors" (
          "id" INTEGER PRIMARY KEY,
          "name" TEXT NOT NULL,
          "opened" REAL NOT NULL,
          "closed" REAL,
          "kind" TEXT NOT NULL,
          "depth" INTEGER NOT NULL,
          "oldDepth" INTEGER,
          "position" TEXT NOT NULL,
          "exit" TEXT,
          "uid" TEXT NOT NULL,
          "site" TEXT,
          "fee_euros" TEXT NOT NULL,
          "checked" TEXT NOT NULL
        )
        """,
        #"CREATE UNIQUE INDEX "harbors_name" ON "harbors" ("name")"#,
        #"CREATE INDEX "harbors_kind_name" ON "harbors" ("kind", "name")"#,
        """
        CREATE TABLE "ships" (
          "id" INTEGER PRIMARY KEY,
          "kind" INTEGER NOT NULL,
          "name" TEXT NOT NULL,
          "tons" INTEGER,
          "harbor_id" INTEGER REFERENCES "harbors" ("id") ON DELETE CASCADE \(later),
          "captain_id" INTEGER REFERENCES "pilots" ("pk") ON DELETE SET NULL \(later)
        )
        """,
        #"CREATE INDEX "ships_harbor_id" ON "ships" ("harbor_id")"#,
        #"CREATE INDEX "ships_captain_id" ON "ships" ("captain_id")"#,
        """
        CREATE TABLE "pilots" (
          "pk" INTEGER PRIMARY KEY,
          "id" TEXT NOT NULL,
          "teacher_id" INTEGER REFERENCES "pilots" ("pk") ON DELETE SET NULL \(later)
        )
        """,
        #"CREATE INDEX "pilots_teacher_id" ON "pilots" ("teacher_id")"#,
        """
        CREATE TABLE "ships_pilots" (
          "ship_id" INTEGER NOT NULL REFERENCES "ships" ("id") ON DELETE CASCADE \(later),
          "pilot_id" INTEGER NOT NULL REFERENCES "pilots" ("pk") ON DELETE CASCADE \(later),
          PRIMARY KEY ("ship_id", "pilot_id")
        ) WITHOUT ROWID
        """,
        #"CREATE INDEX "ships_pilots_pilot_id" ON "ships_pilots" ("pilot_id", "ship_id")"#,
        """
        CREATE TABLE "pilots_friends" (
          "admirers_id" INTEGER NOT NULL REFERENCES "pilots" ("pk") ON DELETE CASCADE \(later),
          "friends_id" INTEGER NOT NULL REFERENCES "pilots" ("pk") ON DELETE CASCADE \(later),
          PRIMARY KEY ("admirers_id", "friends_id")
        ) WITHOUT ROWID
        """,
        #"CREATE INDEX "pilots_friends_friends_id" ON "pilots_friends" ("friends_id", "admirers_id")"#,
      ]
    )
    let tables = try TestDatabase.texts(path, "SELECT name FROM sqlite_schema")
    _ = try await open(path)
    #expect(try TestDatabase.texts(path, "SELECT name FROM sqlite_schema") == tables)
  }

  @Test func `values of every type are read from made tables as they were set`() async throws {
    let path = directory.file("new.db")
    let context = ModelContext(try await open(path))
    let harbor = Harbor()
    let uid = harbor.uid
    #expect(harbor.uid == uid && harbor.depth == .deep && harbor.kind == .fishing)
    let opened = Date(timeIntervalSinceReferenceDate: 812_345_678.123_456_7)
    let fee = try #require(Decimal(string: "12345678901234567890.1234567890"))
    harbor.name = "Kiel"
    harbor.opened = opened
    harbor.kind = .freight
    harbor.position = Harbor.Position(latitude: 54.3, longitude: 10.1)
    harbor.site = URL(string: "https://example.com/kiel?a=1#b")
    harbor.fee = fee
    context.insert(harbor)
    #expect(harbor.uid == uid)
    try context.save()
    let other = ModelContext(try await open(path))
    let read = try #require(try other.fetch(FetchDescriptor<Harbor>()).first)
    #expect(read.opened == opened && read.fee == fee && read.uid == uid)
    #expect(read.kind == .freight && read.depth == .deep && read.oldDepth == nil)
    #expect(read.position == Harbor.Position(latitude: 54.3, longitude: 10.1) && read.exit == nil)
    #expect(read.site?.absoluteString == "https://example.com/kiel?a=1#b" && read.closed == nil)
    #expect(read.checked == Date(timeIntervalSince1970: 0))
    let later = opened.addingTimeInterval(1)
    let found = FetchDescriptor<Harbor>(predicate: #Predicate { $0.opened < later })
    #expect(try other.fetchCount(found) == 1)
    let values = try TestDatabase.texts(
      path,
      "SELECT kind || depth || fee_euros || checked || position FROM harbors"
    )
    #expect(
      values == [
        "freight2012345678901234567890.123456789" + "1970-01-01T00:00:00Z"
          + #"{"latitude":54.3,"longitude":10.1}"#
      ]
    )
  }

  @Test func `relationships are consistent from either side, wherever they are stored`()
    async throws
  {
    let context = ModelContext(
      try await ModelContainer(for: Self.all, configurations: [.inMemory])
    )
    let harbor = Harbor()
    harbor.name = "Kiel"
    harbor.opened = Date()
    harbor.kind = .freight
    harbor.position = Harbor.Position(latitude: 54.3, longitude: 10.1)
    harbor.fee = 5
    let (first, second, third) = (Pilot(), Pilot(), Pilot())
    let (tanker, ship) = (Tanker(), Ship())
    for object in [harbor, first, second, third, tanker, ship] { context.insert(object) }
    tanker.name = "T"
    ship.name = "S"
    tanker.tons = 7
    tanker.harbor = harbor
    harbor.ships.append(ship)
    ship.pilots = [first, second]
    third.ships = [tanker, ship]
    ship.captain = first
    second.ship = tanker
    first.teacher = second
    third.friends = [first]
    try context.save()
    context.reset()
    let ships = try context.fetch(FetchDescriptor<Ship>())
    let pilots = try context.fetch(FetchDescriptor<Pilot>())
    #expect(ships.map { $0.harbor?.name } == ["Kiel", "Kiel"] && ships[0] is Tanker)
    #expect((ships[0] as? Tanker)?.tons == 7)
    #expect(ships[1].pilots == pilots && ships[0].pilots == [pilots[2]])
    #expect(ships.map(\.captain) == [pilots[1], pilots[0]])
    #expect(pilots.map(\.ship) == [ships[1], ships[0], nil])
    #expect(pilots[1].pupils == [pilots[0]] && pilots[0].admirers == [pilots[2]])
    let kept = try #require(ships[0].harbor)
    context.delete(kept)
    try context.save()
    #expect(try context.fetchCount(FetchDescriptor<Ship>()) == 0)
    #expect(try context.fetch(FetchDescriptor<Pilot>()).allSatisfy { $0.ships.isEmpty })
  }

  @Test func `tables that differ from the classes are reported by column and left unchanged`()
    async throws
  {
    let path = try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE harbors (id INTEGER PRIMARY KEY, nmae TEXT, opened TEXT, closed REAL, kind TEXT,
        depth TEXT, oldDepth REAL, position TEXT, exit TEXT, uid TEXT, site TEXT, fee_euros REAL,
        checked DATETIME)
      """,
      "CREATE TABLE ships (id INTEGER PRIMARY KEY, kind, name, tons, captain_id)"
    )
    let before = try TestDatabase.texts(path, "SELECT sql FROM sqlite_schema")
    let error = await error(Self.all, ModelConfiguration(path: path))
    #expect(error?.code == .invalidMapping)
    let differences = error?.message.split(separator: "; ").map(String.init) ?? []
    #expect(
      differences == [
        "the database differs from the classes in 7 places: "
          + #"harbors.name (String) is missing, though there is "nmae""#,
        "harbors.opened is TEXT, and date in seconds since 2001 in the class",
        "harbors.depth is TEXT, and Depth in the class",
        "harbors.oldDepth is REAL, and Depth? in the class",
        "ships.harbor_id is missing, for relationship harbor",
        "table ships_pilots is missing, for relationship pilots",
        #"table "pilots" is missing"#,
      ]
    )
    #expect(error?.remedy?.contains("only a database without tables gets new ones") == true)
    #expect(
      try TestDatabase.texts(
        path,
        "SELECT sql FROM sqlite_schema WHERE name NOT LIKE '\\_batch%' ESCAPE '\\'"
      ) == before
    )
  }

  @Test func `a relationship that could be the inverse of two is refused`() async throws {
    let error = await error([Match.self, Side.self], .inMemory)
    #expect(error?.code == .invalidMapping)
    #expect(error?.message.contains("its inverse could be Match.guest or Match.home") == true)
    let missing = await self.error([Side.self], .inMemory)
    #expect(missing?.remedy == "name Match.self among the classes of the container")
  }

  @Test func `a missing file is created neither for reading nor without classes`() async throws {
    let path = directory.file("none.db")
    let reading = await error(Self.all, ModelConfiguration(path: path, isReadOnly: true))
    #expect(reading?.code == .fileAccess)
    #expect(await error([], ModelConfiguration(path: path))?.code == .fileAccess)
    #expect(!FileManager.default.fileExists(atPath: path))
  }
}
