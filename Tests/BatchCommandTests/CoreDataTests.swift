import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Commands over stores that Core Data made: they are read, by the names of their model, and not written
/// unless the job says that no app will open them again.
@Suite struct CoreDataTests {
  private let store: TemporaryDirectory
  private let jobs: TemporaryDirectory

  init() throws {
    (store, jobs) = (try TemporaryDirectory(), try TemporaryDirectory())
  }

  private func database(_ overwrites: Bool = false) -> [String: Any] {
    var options: [String: Any] = ["path": store.file("store.sqlite")]
    if overwrites { options["coreData"] = "overwrite" }
    return ["database": options]
  }

  private func value(_ sql: String) throws -> SQLValue? {
    try TestDatabase.value(store.file("store.sqlite"), sql)
  }

  /// The bytes of the store and of its log, which is not empty.
  private func logged() throws -> (file: Data, log: Data) {
    let writer = try Connection(path: store.file("store.sqlite"))
    try writer.execute("PRAGMA journal_mode = WAL")
    try writer.execute("PRAGMA wal_autocheckpoint = 0")
    try writer.execute("UPDATE ZPERSON SET ZLASTNAME = upper(ZLASTNAME)")
    defer { withExtendedLifetime(writer) {} }
    return (Data(try store.read("store.sqlite")), Data(try store.read("store.sqlite-wal")))
  }

  /// Leaves the store as an app does that is killed: the log is not emptied when it is closed.
  private func addLog() throws {
    let (file, log) = try logged()
    try file.write(to: URL(fileURLWithPath: store.file("store.sqlite")))
    try log.write(to: URL(fileURLWithPath: store.file("store.sqlite-wal")))
    #expect(try store.names() == ["store.sqlite", "store.sqlite-wal"])
  }

  @Test(arguments: [false, true])
  func `a Core Data store is changed only by a run with overwrite`(hasLog: Bool) throws {
    try CoreDataFixture.cars.copy(to: store)
    if hasLog { try addLog() }
    let before = try store.contents()
    let update = try JobText.update(
      ["lastName": "'x' || Z_PK"],
      where: "firstName < 'M'",
      entity: "Person",
      adding: database()
    )
    try jobs.write(update, to: "update.json")
    try jobs.write(
      try JobText.delete(where: "maker = 'FIAT'", entity: "ZCAR", adding: database()),
      to: "delete.json"
    )
    try jobs.write(
      try JobText.export(to: "persons.ndjson", entity: "Person", adding: database()),
      to: "export.json"
    )
    let refused = "this is a Core Data store"
    for job in ["update.json", "delete.json"] {
      for command in ["validate", "plan", "run"] {
        try Refusal.expect([command, job], in: jobs, says: [refused, "\"coreData\""])
        #expect(try store.changes(since: before) == [], "\(command) \(job)")
      }
      for command in ["retry-failed", "undo", "cleanup"] {
        _ = try BatchProgram.run(command, job, in: jobs)
        #expect(try store.changes(since: before) == [], "\(command) \(job)")
      }
    }
    for arguments in [
      ["schema", store.file("store.sqlite")], ["validate", "export.json"], ["plan", "export.json"],
      ["run", "export.json"], ["status", "export.json"], ["ids", "export.json"],
      ["ids", "export.json", "--format", "uri"], ["inspect", "export.batch"],
      ["verify", "export.json", "--against", CoreDataFixture.cars.path],
      ["rehearse", "update.json", "--folder", jobs.path], ["cleanup", "export.json"],
    ] {
      let result = try BatchProgram(arguments, in: jobs).wait()
      let isDifferent = hasLog && arguments[0] == "verify"
      #expect(result.status == (isDifferent ? 1 : 0), "\(arguments): \(result.errors)")
      #expect(try store.changes(since: before) == [], "\(arguments)")
    }
    let lines = try String(decoding: jobs.read("persons.ndjson"), as: UTF8.self)
    #expect(lines.hasPrefix(hasLog ? Self.firstPerson.uppercasingName : Self.firstPerson))
  }

  private static let firstPerson = """
    {"Z_PK":1,"updatedAt":"2021-04-07T15:52:49.639Z","firstName":"Victoria","lastName":"Coster",\
    "id":"FEFE4176-912D-429F-9C83-662FFF641115"}

    """

  @Test func `an export of a Core Data store has the model's names, dates, UUIDs and booleans`()
    throws
  {
    try CoreDataFixture.families.copy(to: store)
    try jobs.write(
      try JobText.export(to: "persons.ndjson", entity: "Person", adding: database()),
      to: "export.json"
    )
    try jobs.write(
      try JobText.export(to: "persons.csv", format: "csv", entity: "Person", adding: database()),
      to: "table.json"
    )
    #expect(try BatchProgram.run("run", "export.json", in: jobs).status == 0)
    #expect(try BatchProgram.run("run", "table.json", in: jobs).status == 0)
    let lines = try String(decoding: jobs.read("persons.ndjson"), as: UTF8.self)
    #expect(
      lines
        == """
        {"Z_PK":1,"isAlive":true,"bornAt":"2001-01-01T00:00:00.000Z","name":"Ada","note":"a person's",\
        "key":"00112233-4455-6677-8899-AABBCCDDEEFF"}
        {"Z_PK":2,"isAlive":false,"bornAt":"2021-04-07T15:52:49.500Z","name":"Ben","note":null,"key":null}
        {"Z_PK":3,"isAlive":true,"bornAt":"2000-12-31T23:59:58.750Z","name":"Cleo","note":null,\
        "key":{"$base64":true,"encoded":"AA=="}}
        {"Z_PK":5,"isAlive":null,"bornAt":1000000000000000,"name":"Dan","note":null,"key":null}

        """
    )
    let table = try String(decoding: jobs.read("persons.csv"), as: UTF8.self)
    #expect(
      table.hasPrefix("Z_PK,isAlive,bornAt,name,note,key\r\n1,true,2001-01-01T00:00:00.000Z,Ada,")
    )
  }

  @Test func `a query joins Core Data entities by name, and raw tables are exported unchanged`()
    throws
  {
    try CoreDataFixture.cars.copy(to: store)
    var job: [String: Any] = ["version": 1, "name": "owners"]
    job.merge(database()) { $1 }
    job["source"] = [
      "query": "SELECT c.Z_PK AS id, p.lastName FROM SportCar c JOIN Person p ON p.Z_PK = c.owner",
      "key": ["id"],
    ]
    job["action"] = ["type": "export", "file": "owners.csv", "format": "csv"]
    try jobs.write(
      String(decoding: try JSONSerialization.data(withJSONObject: job), as: UTF8.self),
      to: "owners.json"
    )
    #expect(try BatchProgram.run("run", "owners.json", in: jobs).status == 0)
    #expect(
      String(decoding: try jobs.read("owners.csv"), as: UTF8.self).hasPrefix("id,lastName\r\n")
    )
    try jobs.write(
      try JobText.export(
        to: "cars.csv",
        format: "csv",
        where: "Z_ENT = 2",
        entity: "ZCAR",
        adding: database()
      ),
      to: "cars.json"
    )
    #expect(try BatchProgram.run("run", "cars.json", in: jobs).status == 0)
    let cars = String(decoding: try jobs.read("cars.csv"), as: UTF8.self)
    #expect(cars.hasPrefix("Z_PK,Z_ENT,Z_OPT,ZOWNER,"))
    #expect(cars.split(separator: "\r\n").count == 6)
  }

  @Test func `the schema of a Core Data store shows its model`() throws {
    try CoreDataFixture.families.copy(to: store)
    let text = try BatchProgram.run("schema", store.file("store.sqlite"), in: jobs).output
    for line in [
      "store \(CoreDataFixture.families.uuid)", "made by Core Data, read only",
      "Person (extends Party, table ZPARTY): 4 rows", "  key  Z_PK", "  bornAt   DATE TEXT",
      "  relates friends to many Person, on delete nullify",
    ] {
      #expect(text.contains("\(line)\n"), "\(line) in \(text)")
    }
    let json = try BatchProgram.run("schema", store.file("store.sqlite"), "--json", in: jobs).output
    let page = try Repository.text("Documentation/CommandLine.md")
    let schema = try #require(
      try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
    )
    let entities = try #require(schema["entities"] as? [[String: Any]])
    #expect(
      entities.compactMap { $0["name"] as? String } == [
        "Company", "Letter", "Party", "Person", "Tag",
      ]
    )
    for key in Set(entities.flatMap(\.keys)) { #expect(page.contains("`\(key)`"), "\(key)") }
  }

  @Test func `identifiers of a Core Data store are the model's and select a later job's rows`()
    throws
  {
    try CoreDataFixture.cars.copy(to: store)
    try jobs.write(
      try JobText.export(
        to: "sport.ndjson",
        where: "Z_PK < 1000",
        entity: "SportCar",
        adding: database()
      ),
      to: "sport.json"
    )
    #expect(try BatchProgram.run("run", "sport.json", in: jobs).status == 0)
    let result = try BatchProgram.run("ids", "sport.json", "--format", "uri", in: jobs)
    let uris = result.output.split(separator: "\n")
    #expect(uris.count == 10)
    // A row belongs to its own entity.
    #expect(uris.count { $0.contains("/SportCar/p") } == 5)
    #expect(uris.count { $0.contains("/ExpensiveSportCar/p") } == 5)
    try jobs.write(
      result.output.replacing("/ExpensiveSportCar/", with: "/SportCar/"),
      to: "uris.txt"
    )
    let saved = try BatchProgram.run(
      "ids",
      "from",
      "uris.txt",
      "--database",
      store.file("store.sqlite"),
      "--entity",
      "SportCar",
      "--output",
      "sport.ids",
      in: jobs
    )
    #expect(saved.status == 0, "\(saved.errors)")
    #expect(try BatchProgram.run("ids", "sport.ids", "--count", in: jobs).output == "10\n")
  }

  // MARK: Overwriting

  @Test func `a run with overwrite increments Z_OPT of the rows it changes`() throws {
    try CoreDataFixture.families.copy(to: store)
    let job = try JobText.update(
      [
        "note": "coalesce(note, name || ' of ' || substr(bornAt, 1, 4))",
        "bornAt": "'2020-02-29T12:00:00.25Z'", "key": "'00000000-0000-4000-8000-0000000000ff'",
      ],
      where: "name < 'C' AND isAlive = FALSE",
      entity: "Person",
      adding: database(true).merging(["undo": true]) { $1 }
    )
    try jobs.write(job, to: "job.json")
    let plan = try BatchProgram.run("plan", "job.json", in: jobs)
    #expect(plan.status == 0, "\(plan.errors)")
    #expect(plan.errors.contains("is overwritten: no app may open it again"), "\(plan.errors)")
    let run = try BatchProgram.run("run", "job.json", in: jobs)
    #expect(run.status == 0, "\(run.errors)")
    let rows = try TestDatabase.rows(
      store.file("store.sqlite"),
      "SELECT Z_PK, Z_OPT, ZNOTE, ZNOTE1, ZBORNAT, hex(ZKEY) FROM ZPARTY WHERE Z_OPT > 1"
    )
    #expect(
      rows == [
        [
          .integer(2), .integer(2), .null, .text("Ben of 2021"), .real(604_670_400.25),
          .text("000000000000400080000000000000FF"),
        ]
      ]
    )
    let undone = try BatchProgram.run("undo", "job.json", in: jobs)
    #expect(undone.status == 0, "\(undone.errors)")
    #expect(
      try value(
        "SELECT ZNOTE1 IS NULL AND ZBORNAT = 639503569.5 AND Z_OPT = 3 FROM ZPARTY WHERE Z_PK = 2"
      ) == .integer(1)
    )
  }

  @Test func `an update of a relationship to a hierarchy sets both of its columns`() throws {
    try CoreDataFixture.families.copy(to: store)
    let job = try JobText.update(
      ["sender": "(SELECT Z_PK FROM Company)"],
      where: "sender = 1",
      entity: "Letter",
      adding: database(true)
    )
    try jobs.write(job, to: "job.json")
    let run = try BatchProgram.run("run", "job.json", in: jobs)
    #expect(run.status == 0, "\(run.errors)")
    #expect(
      try value("SELECT ZSENDER || ',' || Z2_SENDER || ',' || Z_OPT FROM ZLETTER WHERE Z_PK = 1")
        == .text("4,3,2")
    )
  }

  @Test func `restored Core Data rows keep their keys, which are never assigned again`() throws {
    try CoreDataFixture.books.copy(to: store)
    let job = try JobText.delete(
      where: "number > 90",
      entity: "Page",
      adding: database(true).merging(["undo": true]) { $1 }
    )
    try jobs.write(job, to: "job.json")
    let run = try BatchProgram.run("run", "job.json", in: jobs)
    #expect(run.status == 0, "\(run.errors)")
    let left = try value("SELECT count(*) FROM ZPAGE")
    #expect(left != .integer(4970))
    // The triggers of derived attributes have run.
    let wrong =
      "SELECT count(*) FROM ZBOOK b WHERE ZPAGESCOUNT <> (SELECT count(*) FROM ZPAGE WHERE ZBOOK = b.Z_PK)"
    #expect(try value(wrong) == .integer(0))
    try TestDatabase.make(
      "store.sqlite",
      in: store,
      "UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_NAME = 'Page'"
    )
    let undone = try BatchProgram.run("undo", "job.json", in: jobs)
    #expect(undone.status == 0, "\(undone.errors)")
    #expect(try value("SELECT count(*) FROM ZPAGE") == .integer(4970))
    #expect(try value("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Page'") == .integer(4970))
    #expect(try value(wrong) == .integer(0))
  }

  @Test func `an update of a sub-entity writes only the rows with its own entity number`() throws {
    try CoreDataFixture.cars.copy(to: store)
    try jobs.write(
      try JobText.update(
        ["maker": "'x'"],
        where: "1",
        entity: "ExpensiveSportCar",
        adding: database(true)
      ),
      to: "job.json"
    )
    let run = try BatchProgram.run("run", "job.json", in: jobs)
    #expect(run.status == 0, "\(run.errors)")
    #expect(
      try TestDatabase.texts(
        store.file("store.sqlite"),
        "SELECT DISTINCT Z_ENT FROM ZCAR WHERE ZMAKER = 'x'"
      ) == ["3"]
    )
    #expect(try value("SELECT count(*) FROM ZCAR WHERE Z_OPT > 1 AND ZMAKER <> 'x'") == .integer(0))
  }

  /// A job whose handler is sed.
  private func transform(
    _ entity: String,
    columns: [String],
    writes: [String],
    where condition: String,
    _ script: String...
  ) throws -> String {
    let action: [String: Any] = [
      "type": "transform", "columns": columns, "writes": writes,
      "command": ["/bin/sed", "-u"] + script.flatMap { ["-e", $0] },
    ]
    return try JobText.update(
      where: condition,
      entity: entity,
      adding: database(true).merging(["undo": true, "action": action]) { $1 }
    )
  }

  @Test func `a transform reads and sets model attributes and can be undone`() throws {
    try CoreDataFixture.families.copy(to: store)
    let before = try store.read("store.sqlite")
    try jobs.write(
      try transform(
        "Person",
        columns: ["name", "bornAt", "key", "isAlive"],
        writes: ["note", "bornAt", "key"],
        where: "Z_PK < 4 AND bornAt < '2022-01-01'",
        #"s/.*"name":"Ada".*/{"note":null}/;t"#,
        #"s/.*"name":"\([^"]*\)","bornAt":"\([0-9]*\).*"isAlive":\([01]\).*/"#
          + #"{"note":"\1 \2 \3","bornAt":"2020-02-29T12:00:00.25Z","#
          + #""key":"00000000-0000-4000-8000-0000000000ff"}/"#
      ),
      to: "job.json"
    )
    let rows = {
      try TestDatabase.rows(
        store.file("store.sqlite"),
        "SELECT Z_PK, ZNOTE, ZNOTE1, ZBORNAT, hex(ZKEY) FROM ZPARTY ORDER BY 1"
      )
    }
    let original = try rows()
    let plan = try BatchProgram.run("plan", "job.json", in: jobs)
    #expect(plan.status == 0, "\(plan.errors)")
    let run = try BatchProgram.run("run", "job.json", in: jobs)
    #expect(run.status == 0, "\(run.errors)")
    let born = SQLValue.real(604_670_400.25)
    let key = SQLValue.text("000000000000400080000000000000FF")
    let changed: [[SQLValue]] = [
      [.integer(1), .null, .null, original[0][3], original[0][4]],
      [.integer(2), .null, .text("Ben 2021 0"), born, key],
      [.integer(3), .null, .text("Cleo 2000 1"), born, key], original[3], original[4],
    ]
    #expect(try rows() == changed)
    #expect(
      try TestDatabase.texts(store.file("store.sqlite"), "SELECT Z_OPT FROM ZPARTY ORDER BY Z_PK")
        == ["2", "2", "2", "1", "1"]
    )
    try Data(before).write(to: URL(fileURLWithPath: jobs.file("before.sqlite")))
    let verification = try BatchProgram.run(
      "verify",
      "job.json",
      "--against",
      "before.sqlite",
      in: jobs
    )
    #expect(verification.status == 0, "\(verification.output) \(verification.errors)")

    // Identifiers of the model's entity choose rows of its table.
    let ids = try BatchProgram.run("ids", "job.json", "--output", "all.ids", in: jobs)
    #expect(ids.status == 0, "\(ids.errors)")
    try jobs.write("x-coredata://\(CoreDataFixture.families.uuid)/Person/p2\n", to: "one.txt")
    for (entity, name, text) in [("Person", "one", "one.txt"), ("Letter", "other", "other.txt")] {
      try jobs.write("2\n", to: "other.txt")
      let made = try BatchProgram(
        [
          "ids", "from", text, "--database", store.file("store.sqlite"), "--entity", entity,
          "--output", "\(name).ids",
        ],
        in: jobs
      ).wait()
      #expect(made.status == 0, "\(made.errors)")
    }
    try Refusal.expect(
      ["undo", "job.json", "--ids", "other.ids"],
      in: jobs,
      says: ["the identifiers belong to entity \"Letter\""]
    )
    let undone = try BatchProgram.run("undo", "job.json", "--ids", "one.ids", in: jobs)
    #expect(undone.status == 0, "\(undone.errors)")
    #expect(try rows() == [changed[0], original[1]] + changed[2...])
    let rest = try BatchProgram.run("undo", "job.json", "--ids", "all.ids", in: jobs)
    #expect(rest.status == 0, "\(rest.errors)")
    #expect(try rows() == original)
  }

  @Test func `a transform sets both columns of a relationship`() throws {
    try CoreDataFixture.families.copy(to: store)
    try jobs.write(
      try transform(
        "Letter",
        columns: ["sender", "sentAt"],
        writes: ["sender", "sentAt"],
        where: "Z_PK > 0",
        #"s/.*"sender":1,.*/{"sender":4,"sentAt":"2001-01-01T00:00:10.500Z"}/;t"#,
        #"s/.*/{"sentAt":null}/"#
      ),
      to: "job.json"
    )
    let run = try BatchProgram.run("run", "job.json", in: jobs)
    #expect(run.status == 0, "\(run.errors)")
    #expect(
      try TestDatabase.rows(
        store.file("store.sqlite"),
        "SELECT ZSENDER, Z2_SENDER, Z_OPT, ZSENTAT FROM ZLETTER ORDER BY Z_PK"
      ) == [
        [.integer(4), .integer(3), .integer(2), .real(10.5)],
        [.integer(4), .integer(3), .integer(2), .null],
      ]
    )
  }

  @Test func `an update is verified by the columns behind the model`() throws {
    let path = try CoreDataFixture.families.copy(to: store)
    try FileManager.default.copyItem(atPath: path, toPath: jobs.file("before.sqlite"))
    try jobs.write(
      try JobText.update(
        ["sender": "(SELECT Z_PK FROM Company)", "sentAt": "NULL"],
        where: "sender = 1",
        entity: "Letter",
        adding: database(true)
      ),
      to: "job.json"
    )
    #expect(try BatchProgram.run("run", "job.json", in: jobs).status == 0)
    let command = ["verify", "job.json", "--against", "before.sqlite"]
    let verification = try BatchProgram(command, in: jobs).wait()
    #expect(verification.status == 0, "\(verification.output) \(verification.errors)")
    try TestDatabase.make("store.sqlite", in: store, "UPDATE ZPARTY SET ZNAME = 'x'")
    let other = try BatchProgram(command, in: jobs).wait()
    #expect(other.status == 1 && other.output.contains("ZPARTY: 5 rows differ: ZNAME 5"))
  }

  @Test func `a rehearsal on a Core Data store says that a run would be refused`() throws {
    try CoreDataFixture.cars.copy(to: store)
    try jobs.write(
      try JobText.update(
        ["lastName": "upper(lastName)"],
        where: "1",
        entity: "Person",
        adding: database()
      ),
      to: "job.json"
    )
    let before = try store.contents()
    let result = try BatchProgram.run("rehearse", "job.json", "--folder", jobs.path, in: jobs)
    #expect(result.status == 0, "\(result.errors)")
    #expect((result.output + result.errors).contains("batch run refuses to write to it"))
    #expect(try store.changes(since: before) == [])
  }
}

extension String {
  /// The first person's line with the last name in capitals.
  fileprivate var uppercasingName: String { replacing("Coster", with: "COSTER") }
}
