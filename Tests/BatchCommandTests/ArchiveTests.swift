import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Archives that a job creates, and errors for missing or unsuitable ones.
@Suite struct ArchiveTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(300, in: directory)
  }

  private func write(
    entity: String = "numbers",
    where condition: String = "id <= 200",
    create: Bool = true,
    adding more: [String: Any] = [:]
  ) throws {
    let action: [String: Any] = [
      "type": "delete", "archive": ["entity": "old", "create": create] as [String: Any],
    ]
    let job = try JobText.delete(
      where: condition,
      entity: entity,
      adding: ["action": action, "chunk": ["size": 10]].merging(more) { $1 }
    )
    try directory.write(job, to: "job.json")
  }

  /// Runs statements on a connection of their own.
  private func execute(_ script: String) throws {
    try Connection(path: path).runScript(script)
  }

  private func sql(of table: String) throws -> String {
    try TestDatabase.texts(path, "SELECT sql FROM sqlite_schema WHERE name = '\(table)'").joined()
  }

  @Test(arguments: [
    "CREATE TABLE tree (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES tree ON DELETE CASCADE)",
    "CREATE TABLE tree (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES Tree ON DELETE SET NULL)",
    """
    CREATE TABLE tree (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES link ON DELETE CASCADE);
    CREATE TABLE link (id INTEGER PRIMARY KEY, node INTEGER REFERENCES tree ON DELETE CASCADE)
    """,
  ])
  func `a delete whose cascades would remove rows before they are archived is refused`(
    schema: String
  ) throws {
    try execute("\(schema); INSERT INTO tree (id) VALUES (1), (2), (3)")
    for isEnforced in [true, false] {
      for existing in [false, true] {
        if existing { try execute("CREATE TABLE IF NOT EXISTS old (id, parent)") }
        try write(
          entity: "tree",
          where: "id > 1",
          adding: [
            "database": ["path": (path as NSString).lastPathComponent, "foreignKeys": isEnforced]
          ]
        )
        let result = try BatchProgram.run(
          isEnforced ? "run" : "plan",
          "job.json",
          in: directory
        )
        #expect(result.status == (isEnforced ? 2 : 0), "\(result.errors)")
        if isEnforced {
          #expect(result.errors.contains("others of it or of the archive"), "\(result.errors)")
        }
        #expect(try TestDatabase.texts(path, "SELECT count(*) FROM tree") == ["3"])
      }
      try execute("DROP TABLE IF EXISTS old")
    }
  }

  @Test(arguments: ["archive", "undo", "delete", "update"])
  func `a column that is added during a run loses no value`(action: String) throws {
    let isUpdate = action == "update"
    var more: [String: Any] = [
      "action": ["type": isUpdate ? "update" : "delete"] as [String: Any],
      "chunk": ["size": 10], "throttle": ["identifiersPerSecond": 100],
    ]
    if action == "archive" {
      more["action"] = [
        "type": "delete", "archive": ["entity": "old", "create": true] as [String: Any],
      ]
    }
    if action == "undo" { more["undo"] = true }
    if isUpdate { more["action"] = ["type": "update", "set": ["n": "n + 1"]] as [String: Any] }
    try write(where: "id <= 200", adding: more)
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    while let line = program.nextLine(), !line.contains("\"event\":\"throttled\"") {}
    try execute(
      "ALTER TABLE numbers ADD COLUMN note TEXT; UPDATE numbers SET note = 'n' WHERE id > 150"
    )
    let result = program.wait()
    let keepsCopies = ["archive", "undo"].contains(action)
    #expect(result.status == (keepsCopies ? 1 : 0), "\(result.output)")
    let notes = try TestDatabase.texts(
      path,
      "SELECT count(*) FROM numbers WHERE note = 'n' AND id <= 200"
    )
    #expect(notes == [action == "delete" ? "0" : "50"])
    if keepsCopies { #expect(result.output.contains("numbers\\\" has got note")) }
  }

  @Test func `a run ends if another column takes the name of one that it uses`() throws {
    try execute("ALTER TABLE numbers ADD COLUMN k INTEGER")
    try write(
      where: "id <= 200",
      adding: [
        "action": ["type": "update", "set": ["n": "n + 1"]] as [String: Any],
        "throttle": ["identifiersPerSecond": 100],
      ]
    )
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    while let line = program.nextLine(), !line.contains("\"event\":\"throttled\"") {}
    try execute(
      "ALTER TABLE numbers RENAME COLUMN n TO was; ALTER TABLE numbers RENAME COLUMN k TO n"
    )
    let result = program.wait()
    #expect(result.status == 1, "\(result.output)")
    #expect(result.output.contains("the schema has changed"), "\(result.output)")
    #expect(try TestDatabase.texts(path, "SELECT count(n) FROM numbers") == ["0"])
  }

  @Test func `an archive whose types would change values is refused`() throws {
    let types = ["TEXT", "INTEGER", "REAL", "NUMERIC", ""]
    let lossless: Set<[String]> = [
      ["INTEGER", "TEXT"], ["NUMERIC", "TEXT"], ["REAL", "INTEGER"], ["REAL", "NUMERIC"],
      ["INTEGER", "NUMERIC"], ["NUMERIC", "INTEGER"],
    ]
    for source in types {
      for target in types {
        try execute(
          """
          DROP TABLE IF EXISTS source; DROP TABLE IF EXISTS old;
          CREATE TABLE source (id INTEGER PRIMARY KEY, v \(source)); CREATE TABLE old (id INTEGER, v \(target));
          INSERT INTO source (v) VALUES ('007'), (9007199254740993), (1.5), (x'00'), (2.0), ('a')
          """
        )
        let isKept = source == target || target.isEmpty || lossless.contains([source, target])
        try write(entity: "source", where: "v IS NOT NULL", create: false)
        let result = try BatchProgram.run("run", "job.json", in: directory)
        #expect(result.status == (isKept ? 0 : 2), "\(source) in \(target): \(result.errors)")
        let kept = try TestDatabase.texts(path, "SELECT count(*) FROM source")
        #expect(kept == [isKept ? "0" : "6"])
        if !isKept { #expect(result.errors.contains("could change values"), "\(result.errors)") }
      }
    }
  }

  @Test func `a missing archive is created, planned, reused and verified`() throws {
    try write()
    let before = try directory.contents()
    for command in ["validate", "plan"] {
      let result = try BatchProgram.run(command, "job.json", in: directory)
      #expect(result.status == 0, "\(result.errors)")
    }
    let creation =
      "CREATE TABLE \"old\" (\"id\" INTEGER, \"n\" INTEGER NOT NULL, \"label\" TEXT,"
      + " PRIMARY KEY (\"id\"))"
    let plan = try BatchProgram.run("plan", "job.json", in: directory)
    #expect(plan.output.contains("create    \(creation)\n"), "\(plan.output)")
    let json = try BatchProgram.run("plan", "job.json", "--json", in: directory)
    let statements = try JSONOutput.object(json.output)["sql"] as? [String: Any]
    #expect(statements?["create"] as? String == creation)
    #expect(try directory.changes(since: before) == [])

    try FileManager.default.copyItem(atPath: path, toPath: directory.file("before.db"))
    let first = try BatchProgram.run("run", "job.json", in: directory)
    #expect(first.status == 0, "\(first.errors)")
    #expect(try sql(of: "old") == creation)
    let verified = try BatchProgram.run(
      "verify",
      "job.json",
      "--against",
      "before.db",
      in: directory
    )
    #expect(verified.status == 0, "\(verified.output)\(verified.errors)")
    #expect(verified.output.contains("200"))
    try Connection(path: path).execute("UPDATE old SET label = 'other' WHERE id = 7")
    let changed = try BatchProgram.run(
      "verify",
      "job.json",
      "--against",
      "before.db",
      in: directory
    )
    #expect(changed.status == 1, "\(changed.output)")

    try write(where: "id > 250")
    let second = try BatchProgram.run("run", "job.json", in: directory)
    #expect(second.status == 0, "\(second.errors)")
    #expect(try TestDatabase.value(path, "SELECT count(*) FROM old") == .integer(250))
    #expect(try TestDatabase.value(path, "SELECT count(*) FROM numbers") == .integer(50))
  }

  @Test(arguments: [
    "CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT UNIQUE CHECK (b > ''), c REFERENCES u)",
    "CREATE TABLE t (a INTEGER PRIMARY KEY DESC, b NVARCHAR(160) COLLATE NOCASE NOT NULL, c)",
    "CREATE TABLE t (a, b TEXT, c BLOB DEFAULT 5, PRIMARY KEY (b, a)) WITHOUT ROWID",
    "CREATE TABLE t (a INT NOT NULL, b ANY, c ANY, PRIMARY KEY (a)) STRICT",
    "CREATE TABLE t (a, b TEXT NOT NULL UNIQUE, c NUMERIC(10, 2))",
    "CREATE TABLE t (a INTEGER PRIMARY KEY, \"the \"\"b\" TEXT, c, g AS (a + 1) STORED)",
  ])
  func `rows are archived byte for byte, whatever the table`(table: String) throws {
    let b = table.contains("the ") ? "\"the \"\"b\"" : "b"
    let insert = "INSERT INTO t (a, \(b), c) VALUES"
    try TestDatabase.make(
      in: directory,
      table,
      "CREATE TABLE u (x)",
      "CREATE INDEX i ON t (c)",
      "CREATE TRIGGER gone AFTER INSERT ON t BEGIN SELECT 1; END",
      "\(insert) (1, 'x', x'00'), (2, 'Y', 1.5), (9007199254740993, '1', '1'), (4, 'é', NULL)"
    )
    let connection = try Connection(path: path)
    func rows(of table: String) throws -> [String] {
      try connection.texts(
        "SELECT quote(a) || ',' || quote(\(b)) || ',' || quote(c) AS line FROM \(table) ORDER BY 1"
      )
    }
    let before = try rows(of: "t")
    try write(entity: "t", where: "a > 0")
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try rows(of: "old") == before)
    #expect(try sql(of: "old").contains("UNIQUE") == false)
    // The next one fits it.
    try connection.execute("\(insert) (5, 'z', 2)")
    let next = try BatchProgram.run("run", "job.json", in: directory)
    #expect(next.status == 0, "\(next.errors)")
    #expect(try TestDatabase.value(path, "SELECT count(*) FROM old") == .integer(5))
  }

  @Test func `the error of an unsuitable archive contains the statement to run`() throws {
    try write(create: false)
    try Refusal.ofEveryCommand(
      String(decoding: try directory.read("job.json"), as: UTF8.self),
      in: directory,
      says: [
        "action.archive.entity: there is no table \"old\"", "\"create\": true", "CREATE TABLE",
      ]
    )
    try Connection(path: path).execute("CREATE TABLE old (id INTEGER PRIMARY KEY, n)")
    for create in [false, true] {
      try write(create: create)
      try Refusal.ofEveryCommand(
        String(decoding: try directory.read("job.json"), as: UTF8.self),
        in: directory,
        says: ["no column for label", "run ALTER TABLE \"old\" ADD COLUMN \"label\" TEXT\n"]
      )
    }
    try Connection(path: path).execute("ALTER TABLE \"old\" ADD COLUMN \"label\" TEXT")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
  }

  @Test(arguments: ["numbers_by_n", "sqlite_old", "_batch_old", "seen"])
  func `an archive name that no table can have is refused`(name: String) throws {
    try TestDatabase.make(
      in: directory,
      "CREATE INDEX numbers_by_n ON numbers (n)",
      "CREATE VIEW seen AS SELECT * FROM numbers"
    )
    let action: [String: Any] = [
      "type": "delete", "archive": ["entity": name, "create": true] as [String: Any],
    ]
    let job = try JobText.delete(where: "1", adding: ["action": action])
    try Refusal.ofEveryCommand(job, in: directory, says: ["action.archive.entity", name])
  }

  @Test func `a run that is stopped and resumed creates its archive once`() throws {
    try write(adding: ["limits": ["runtime": "1ms"]])
    var statuses: [Int32] = []
    while statuses.last != 0, statuses.count < 100 {
      statuses.append(
        try BatchProgram.run("run", "job.json", "--chunk-size", "40", in: directory).status
      )
    }
    #expect(statuses.count > 1)
    #expect(statuses.dropLast().allSatisfy { $0 == 3 })
    #expect(try TestDatabase.value(path, "SELECT count(*) FROM old") == .integer(200))
  }

  @Test func `a created archive keeps the key's collation and its columns' types`() throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE odd (a TEXT COLLATE NOCASE, b "int, x int", c "text check(0)",
        d DECIMAL(10, 2), PRIMARY KEY (a COLLATE BINARY))
      """,
      "INSERT INTO odd VALUES ('A', 1, 'c', 1.5), ('a', 2, 'c', 2)"
    )
    try write(entity: "odd", where: "a IS NOT NULL")
    let before = try TestDatabase.rows(path, "SELECT * FROM odd ORDER BY b")
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(try TestDatabase.rows(path, "SELECT * FROM old ORDER BY b") == before)
    #expect(try sql(of: "old").contains("DECIMAL(10, 2)"))
  }
}
