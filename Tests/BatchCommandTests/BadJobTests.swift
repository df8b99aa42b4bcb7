import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct BadJobTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE numbers (id INTEGER PRIMARY KEY, n INTEGER, label TEXT,
        twice AS (n * 2), stored AS (n * 3) STORED)
      """,
      "CREATE TABLE pairs (a TEXT, b INTEGER, n INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID",
      "CREATE VIEW shown AS SELECT id, n FROM numbers",
      "CREATE TABLE keyless (n INTEGER)",
      "INSERT INTO numbers (n, label) VALUES (1, 'one'), (2, 'two')"
    )
  }

  /// A job in which one line is replaced.
  private func job(_ line: String, _ replacement: String) -> String {
    let job = """
      { "version": 1,
        "name": "job",
        "database": { "path": "test.db" },
        "source": { "entity": "numbers", "where": "n > 0" },
        "action": { "type": "update", "set": { "n": "n + 1" } },
        "workers": 2,
        "chunk": { "size": 10 } }
      """
    precondition(job.contains(line))
    return job.replacing(line, with: replacement)
  }

  @Test(arguments: [
    ("\"version\": 1,", "\"version\": 2,", ["job.json:1:14: version:", "newer batch"]),
    ("\"version\": 1,", "\"version\": \"1\",", ["job.json:1:14: version:"]),
    ("\"version\": 1,", "", ["job.json:", "version"]),
    ("\"name\": \"job\"", "\"name\": \"\"", ["job.json:2:11: name: is empty"]),
    ("\"name\": \"job\"", "\"name\": \"a/b\"", ["job.json:2:11: name:", "a/b"]),
    ("\"workers\": 2", "\"workers\": 0", ["job.json:6:14: workers: is 0"]),
    ("\"workers\": 2", "\"workers\": -1", ["job.json:6:14: workers:"]),
    ("\"workers\": 2", "\"workers\": \"two\"", ["job.json:6:14: workers:", "string"]),
    ("\"workers\": 2", "\"wokers\": 2", ["job.json:6:3: wokers:", "did you mean \"workers\"?"]),
    ("\"size\": 10", "\"size\": 0", ["job.json:7:22: chunk.size: is 0"]),
    ("\"size\": 10", "\"size\": -5", ["job.json:7:22: chunk.size: is -5"]),
    (
      "\"where\": \"n > 0\"", "\"wehre\": \"n > 0\", \"everything\": true",
      [
        "job.json:4:36: source.wehre: unknown key", "did you mean \"where\"?",
      ]
    ),
    (", \"where\": \"n > 0\"", "", ["job.json:4:13: source:", "\"everything\": true"]),
    ("\"where\": \"n > 0\"", "\"where\": \"\"", ["source.where: is empty"]),
    ("\"test.db\" }", "\"test.db\", \"readOnly\": true }", ["database.readOnly:", "writes"]),
    ("\"test.db\"", "\"\"", ["database.path: is empty"]),
    (
      "\"chunk\": { \"size\": 10 }", "\"hooks\": { \"onStart\": [\"no-such-program\"] }",
      ["hooks.onStart: there is no command \"no-such-program\""]
    ),
    (
      "\"chunk\": { \"size\": 10 }", "\"report\": { \"path\": \"no/such/run.html\" }",
      ["report.path: ", "there is no folder for the report"]
    ),
    ("\"version\": 1,", "\"version\": \"1\",", ["write 1 without quotes"]),
    ("\"workers\": 2", "\"skip\": 100", ["skip: expected an object", "write { \"limit\": 100 }"]),
    ("\"workers\": 2", "\"undo\": \"7d\"", ["undo: expected", "write { \"keep\": \"7d\" }"]),
    ("\"workers\": 2", "\"undo\": \"true\"", ["undo: expected", "write true without quotes"]),
    (
      "\"workers\": 2", "\"canary\": { \"rows\": 5, \"then\": \"paused\" }",
      ["canary.then: \"paused\" is neither a time nor", "write \"pause\", \"verify\", or a time"]
    ),
    (
      "\"workers\": 2", "\"limits\": { \"runtime\": \"1 h\" }",
      ["\"1 h\" is not a duration; write \"1h\", without a space"]
    ),
    (
      "\"workers\": 2", "\"checkpoint\": { \"path\": \"cps/a.batch\" }",
      ["checkpoint.path: there is no folder \"cps\"; make it"]
    ),
    (
      "\"update\", \"set\": { \"n\": \"n + 1\" }",
      "\"export\", \"file\": \"out/n.csv\", \"format\": \"csv\"",
      ["action.file: there is no folder \"out\"; make it"]
    ),
    ("\"update\"", "\"updaet\"", ["action.type:", "did you mean \"update\"?"]),
    ("\"update\"", "\"insert\"", ["action.type:", "not supported yet"]),
  ])
  func `every command refuses a job that breaks a rule`(
    line: String,
    instead: String,
    says: [String]
  ) throws {
    try Refusal.ofEveryCommand(job(line, instead), in: directory, says: says)
  }

  @Test(arguments: [
    ("{ \"version\": 1,\n  \"name\": job }", "job.json:2:11: "),
    ("{ \"version\": 1,\n  \"name\": \"job\",\n}", "job.json:3:1: "),
    ("{ \"version\": 1", "job.json:1:15: "), ("", "job.json:1:1: "), ("[]", "job.json:1:1: "),
    ("{ \"version\": 1, \"version\": 1 }", "job.json:1:17: "), ("// no\n{}", "job.json:1:1: "),
  ])
  func `a syntax error in a job is reported with line and column`(text: String, says: String) throws
  {
    try Refusal.ofEveryCommand(text, in: directory, says: [says])
  }

  @Test(arguments: [
    ("numbers\"", "nubmers\"", "there is no entity \"nubmers\"; did you mean \"numbers\"?"),
    ("\"set\": { \"n\"", "\"set\": { \"lable\"", "\"lable\"; did you mean \"label\"?"),
    ("\"n > 0\"", "\"labl IS NULL\"", "no such column: labl"),
    ("\"n > 0\"", "\"labl IS NULL\"", "job.json:4:45: source.where:"),
    ("\"n > 0\"", "\"labl IS NULL\"", "did you mean \"label\"?"),
    ("\"n > 0\"", "\"n >\"", "`n >`"),
    ("\"n > 0\"", "\"nosuch(n)\"", "no such function: nosuch"),
    ("\"n > 0\"", "\"lowercase(label) = 'a'\"", "SQLite has lower"),
    ("\"n > 0\"", "\"lenght(label) = 1\"", "did you mean \"length\"?"),
    ("\"where\": \"n > 0\"", "\"where\": \"n\", \"orderBy\": [\"n DESC\"]", "write \"-n\""),
    ("\"n + 1\"", "\"n + mm\"", "job.json:5:47: action.set.n:"),
    ("\"n + 1\"", "\"n + mm\"", "`n + mm`"),
    ("\"n + 1\"", "\"n + :by\"", "there is no parameter \":by\""),
    ("\"n\": \"n + 1\"", "\"id\": \"id + 1\"", "column \"id\" identifies the rows"),
    ("\"n\": \"n + 1\"", "\"twice\": \"1\"", "column \"twice\" is generated"),
    ("\"n\": \"n + 1\"", "\"stored\": \"1\"", "column \"stored\" is generated"),
    ("\"entity\": \"numbers\"", "\"entity\": \"shown\"", "is a view, which cannot be written"),
    ("\"entity\": \"numbers\"", "\"entity\": \"keyless\"", "has no primary key"),
    ("\"entity\": \"numbers\"", "\"entity\": \"sqlite_schema\"", "there is no entity"),
    ("\"where\": \"n > 0\"", "\"where\": \"n\", \"orderBy\": [\"m\"]", "source.orderBy[0]: "),
    ("\"where\": \"n > 0\"", "\"where\": \"n\", \"key\": [\"m\"]", "source.key[0]: "),
    (
      "\"update\", \"set\": { \"n\": \"n + 1\" }",
      "\"delete\", \"archive\": { \"entity\": \"pairs\" }",
      "job.json:5:56: action.archive.entity: the archive \"pairs\" has no column for"
    ),
    (
      "\"update\", \"set\": { \"n\": \"n + 1\" }",
      "\"delete\", \"archive\": { \"entity\": \"nowhere\" }", "there is no table \"nowhere\""
    ),
    (
      "\"update\", \"set\": { \"n\": \"n + 1\" }",
      "\"export\", \"file\": \"o\", \"format\": \"csv\", \"columns\": [\"n\", \"m\"]",
      "action.columns[1]: "
    ),
  ])
  func `every command refuses a name or expression that does not fit the database`(
    line: String,
    instead: String,
    says: String
  ) throws {
    try Refusal.ofEveryCommand(job(line, instead), in: directory, says: [says])
  }

  @Test func `broken rules and names unknown to the database are reported together`() throws {
    try Refusal.ofEveryCommand(
      """
      { "version": 1, "name": "my job", "database": { "path": "test.db" }, "workers": 0, "extra": 1,
        "source": { "entity": "numbers", "where": "nn = 1", "orderBy": ["labl"] },
        "action": { "type": "update", "set": { "m": "1", "n": "lable" } } }
      """,
      in: directory,
      says: [
        "name: \"my job\"", "workers: is 0", "extra: unknown key",
        "source.where: no such column: nn",
        "source.orderBy[0]: ", "action.set.m: ", "action.set.n: no such column: lable",
      ],
      lines: 7
    )
    try Refusal.ofEveryCommand(
      JobText.update(["m": "1", "n": "lable"], where: "nn = 1"),
      in: directory,
      says: ["source.where: no such column: nn", "action.set.m: ", "action.set.n: no such column"],
      lines: 3
    )
  }

  @Test func `an unknown key or a value of a wrong type hides no other problem`() throws {
    try Refusal.ofEveryCommand(
      """
      { "version": 1, "name": "job", "database": { "path": "test.db", "tiemout": "1s" },
        "source": { "entity": "numbers", "where": "nn = 1", "limit": "ten", "filtre": "n > 0" },
        "action": { "type": "update", "set": { "m": "1" }, "unchanged": "leave", "wheer": "1" } }
      """,
      in: directory,
      says: [
        "database.tiemout: unknown key", "source.where: no such column: nn",
        "source.limit: expected a whole number", "source.filtre: unknown key",
        "action.set.m: ", "action.unchanged: unknown unchanged", "action.wheer: unknown key",
      ],
      lines: 7
    )
  }

  @Test func `a job value of a wrong type causes no error of the database`() throws {
    try Refusal.ofEveryCommand(
      """
      { "version": 1, "name": "job", "database": { "path": "test.db" },
        "source": { "entity": "numbers", "where": 1, "orderBy": "labl" },
        "action": { "type": "updaet", "set": { "m": "1" } } }
      """,
      in: directory,
      says: [
        "source.where: expected a string", "source.orderBy: expected an array",
        "action.type: unknown type",
      ],
      lines: 3
    )
  }

  @Test func `a missing script is refused, and other arguments are not checked`() throws {
    try directory.write("echo", to: "there.sh")
    func job(_ command: [String]) throws -> String {
      let action: [String: Any] = [
        "type": "transform", "columns": ["n"], "writes": ["n"], "command": command,
      ]
      return try JobText.update(adding: ["action": action])
    }
    for command in [["sh", "nosuch.sh"], ["/bin/sh", "-u", "no/such.sh", "there.sh"]] {
      try Refusal.ofEveryCommand(
        job(command),
        in: directory,
        says: ["action.command: there is no script", "for sh to run"]
      )
    }
    for command in [
      ["sh", "there.sh", "nosuch.sh"], ["sh", "-c", "nosuch.sh"], ["cat", "nosuch.sh"],
    ] {
      try directory.write(job(command), to: "job.json")
      let result = try BatchProgram.run("validate", "job.json", in: directory)
      #expect(result.status == 0, "\(command): \(result.errors)")
    }
  }

  @Test func `every problem of a job has its own line`() throws {
    let job = job("\"size\": 10", "\"size\": 0").replacing("\"workers\": 2", with: "\"workers\": 0")
      .replacing("\"name\": \"job\"", with: "\"name\": \"\"")
    try Refusal.ofEveryCommand(job, in: directory, says: ["name", "workers", "size"], lines: 3)
  }

  @Test(arguments: [
    ([], ["parameter \"by\"", "--param"], 1),
    (["--param", "by=1", "--param", "yb=2"], ["parameter \"yb\"", "did you mean \"by\"?"], 1),
    (["--param", "by=one"], ["parameter \"by\"", "integer"], 1),
    (["--param", "by=1.5"], ["parameter \"by\""], 1),
    (["--param", "by=99999999999999999999"], ["parameter \"by\""], 1),
    (["--param", "by"], ["--param name=value"], 2),
    (["--param", "=1"], ["--param name=value"], 2),
    (["--param", "by=1", "--param", "by=2"], ["parameter \"by\"", "twice"], 1),
    (["--param", "by=1", "--param", "day=2020-02-30"], ["parameter \"day\""], 1),
  ])
  func `every command refuses a missing, unknown or malformed parameter`(
    arguments: [String],
    says: [String],
    lines: Int
  ) throws {
    let parameters: [String: Any] = [
      "by": ["type": "integer"], "day": ["type": "date", "required": false],
    ]
    let job = try JobText.update(["n": "n + :by"], where: "n", adding: ["parameters": parameters])
    try Refusal.ofEveryCommand(
      job,
      in: directory,
      arguments: arguments,
      says: says,
      lines: lines
    )
  }

  @Test(arguments: ["file/state.batch", "missing/state.batch", "/proc/state.batch"])
  func `a checkpoint that cannot be written is refused`(path: String) throws {
    try directory.write("in the way", to: "file")
    let job = try JobText.update(adding: ["checkpoint": ["path": path]])
    try directory.write(job, to: "job.json")
    try Refusal.expect(["run", "job.json"], in: directory, says: ["checkpoint"])
  }

  @Test(arguments: ["file/out", "missing/out", "/proc/out"])
  func `an output that cannot be written is refused`(path: String) throws {
    try directory.write("in the way", to: "file")
    let job = try JobText.export(to: path)
    try directory.write(job, to: "job.json")
    let says = path == "missing/out" ? "action.file: there is no folder \"missing\"" : "out"
    try Refusal.expect(["run", "job.json"], in: directory, says: [says])
  }

  @Test func `a missing job file or a folder in its place is refused`() throws {
    for command in ["validate", "plan", "run", "status"] {
      try Refusal.expect([command, "none.json"], in: directory, says: ["none.json: cannot read"])
      // The status of a folder is that of its jobs.
      if command == "status" { continue }
      try Refusal.expect([command, "."], in: directory, says: ["cannot read"])
    }
    try Refusal.expect(["ids", "none.json"], in: directory, says: ["none.json: cannot read"])
    try Refusal.expect(["ids", "none.ids"], in: directory, says: ["none.ids"])
    try Refusal.expect(["inspect", "none.batch"], in: directory, says: ["none.batch"])
    try Refusal.expect(["schema", "none.db"], in: directory, says: ["none.db"])
  }

  @Test func `a key that does not distinguish the rows is refused`() throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE doubles (k INTEGER, n INTEGER)",
      "INSERT INTO doubles VALUES (1, 1), (1, 2)",
      "CREATE TABLE loose (k TEXT PRIMARY KEY, n INTEGER)",
      "INSERT INTO loose VALUES ('a', 1), (NULL, 2)"
    )
    let source: [String: Any] = ["entity": "doubles", "key": ["k"], "where": "1"]
    var job = try JobText.update(adding: ["source": source])
    try directory.write(job, to: "job.json")
    try Refusal.expect(["run", "job.json"], in: directory, says: ["have the same k"])
    job = try JobText.update(entity: "loose")
    try directory.write(job, to: "job.json")
    try Refusal.expect(["run", "job.json"], in: directory, says: ["NULL in its primary key"])
  }

  @Test func `the error of a condition that fails for a row names the condition`() throws {
    try directory.write(JobText.update(where: "json(label)"), to: "job.json")
    let reason = ": source.where: malformed JSON, for a row to which the condition was applied"
    try Refusal.expect(["run", "job.json"], in: directory, says: [reason, "json_valid"])
    try Refusal.expect(["plan", "job.json"], in: directory, says: [reason, "json_valid"])
  }

  @Test func `a job's files must not be the database's own, under any name`() throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.makeNumbers(3, in: directory)
    try FileManager.default.createDirectory(
      atPath: directory.file("folder"),
      withIntermediateDirectories: false
    )
    #expect(symlink("..", directory.file("folder/up")) == 0)
    #expect(symlink("test.db", directory.file("link.db")) == 0)
    #expect(link(path, directory.file("hard.db")) == 0)
    #expect(symlink("test.db-wal", directory.file("wal.json")) == 0)
    for name in ["test.db", "link.db", "hard.db", "folder/../test.db", "folder/up/test.db"] {
      try directory.write(
        JobText.export(to: name, adding: ["source": ["entity": "numbers"]]),
        to: "job.json"
      )
      let says = ["the exported file and the database are the same file"]
      try Refusal.expect(["run", "job.json"], in: directory, says: says)
    }
    // Under another name, the database has its files beside the one that the name stands for.
    for database in ["test.db", "link.db"] {
      for name in ["test.db-wal", "folder/up/test.db-shm", "folder/../test.db-journal"] {
        try directory.write(JobText.export(to: name, database: database), to: "job.json")
        let says = ["the exported file and the file -", "of the database are the same file"]
        for command in ["validate", "plan", "run"] {
          try Refusal.expect([command, "job.json"], in: directory, says: says)
        }
        let checkpoint = ["checkpoint": ["path": name]]
        try directory.write(JobText.update(database: database, adding: checkpoint), to: "job.json")
        try Refusal.expect(
          ["run", "job.json"],
          in: directory,
          says: ["the checkpoint and the file -", "of the database are the same file"]
        )
      }
    }
    // While the database is open, the link leads to its log.
    let connection = try Connection(path: path)
    #expect(try connection.useWriteAheadLog())
    try connection.execute("UPDATE numbers SET n = 1")
    try directory.write(JobText.update(adding: ["report": ["path": "wal.json"]]), to: "job.json")
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 2)
    #expect(result.errors.contains("the report and the file -wal"), "\(result.errors)")
  }

  @Test func `a list of identifiers is not saved over a file of the database`() throws {
    let directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(3, in: directory)
    try directory.write(JobText.update(), to: "job.json")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    for suffix in ["-wal", "-shm", "-journal"] {
      for source in ["job.json", "job.batch"] {
        try Refusal.expect(
          ["ids", source, "--output", "test.db\(suffix)"],
          in: directory,
          says: ["test.db\(suffix): SQLite keeps a part of the database test.db in a file"]
        )
      }
    }
  }

  @Test func `a database in place of a job file is recognized`() throws {
    for command in ["validate", "run"] {
      try Refusal.expect(
        [command, "test.db"],
        in: directory,
        says: ["this is an SQLite database; name a job file"]
      )
    }
  }

  @Test func `a keyword as a column name must be quoted`() throws {
    try TestDatabase.make(in: directory, "ALTER TABLE numbers ADD COLUMN \"from\" TEXT")
    let job = job("\"n > 0\"", "\"from IS NULL\"")
    try Refusal.ofEveryCommand(
      job,
      in: directory,
      says: ["from is a keyword: write \"from\" in double quotes"]
    )
  }

  @Test func `a file that the job did not create makes its export invalid`() throws {
    try directory.write("mine", to: "out.csv")
    try Refusal.ofEveryCommand(
      JobText.export(to: "out.csv", format: "csv"),
      in: directory,
      says: ["out.csv", "the file exists and this job did not make it"]
    )
  }

  @Test func `a plan warns of likely mistakes that SQLite accepts`() throws {
    let set = ["label": "label = lower(label)"]
    let condition = "n = NULL OR label < 2014-01-01 OR label <> 'a = NULL 2014-01-01'"
    try directory.write(JobText.update(set, where: condition), to: "job.json")
    for command in ["validate", "plan", "run"] {
      let errors = try BatchProgram.run(command, "job.json", in: directory).errors
      let says = [
        "compares with NULL, which is never true: write IS NULL",
        "write '2014-01-01' in single quotes",
        "action.set.label: `label = lower(label)` compares, and would write 0 or 1",
      ]
      for piece in says { #expect(errors.contains(piece), "\(command): \(errors)") }
      #expect(errors.split(separator: "\n").filter { $0.hasPrefix("warning: ") }.count >= 3)
    }
    try directory.write(
      JobText.update(
        ["label": "CASE WHEN n = 1 THEN NULL ELSE '2014-01-01' END"],
        where: "n IS NOT NULL AND n = 2014 - 01 - 01"
      ),
      to: "job.json"
    )
    #expect(try BatchProgram.run("validate", "job.json", in: directory).errors == "")
  }
}
