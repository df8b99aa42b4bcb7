import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct BadDatabaseTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try directory.write(JobText.update(), to: "job.json")
  }

  private func expectRefused(
    _ says: [String],
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    for command in ["validate", "plan", "run"] {
      try Refusal.expect([command, "job.json"], in: directory, says: says, location)
    }
  }

  @Test func `a missing database is refused`() throws {
    try expectRefused(["test.db", "no such file"])
    try Refusal.expect(["schema", "test.db"], in: directory, says: ["test.db", "no such file"])
  }

  @Test func `a folder is refused as a database`() throws {
    try FileManager.default.createDirectory(
      atPath: directory.file("test.db"),
      withIntermediateDirectories: false
    )
    try expectRefused(["test.db: this is not a file"])
    try Refusal.expect(["schema", "test.db"], in: directory, says: ["this is not a file"])
  }

  @Test func `a database path below a file is refused`() throws {
    try directory.write("", to: "file")
    try directory.write(JobText.update(database: "file/test.db"), to: "job.json")
    try expectRefused(["test.db", "not a directory"])
  }

  @Test func `a file that is not a database is refused`() throws {
    try directory.write(String(repeating: "this is some text\n", count: 500), to: "test.db")
    try expectRefused(["test.db", "not an SQLite database, or is encrypted"])
    try Refusal.expect(["schema", "test.db"], in: directory, says: ["not an SQLite database"])
  }

  @Test(arguments: 1...8) func `a database with random bytes after its magic is refused`(
    seed: UInt64
  ) throws {
    var generator = SeededGenerator(seed: seed)
    var bytes = Array("SQLite format 3\0".utf8)
    for _ in 0..<8192 { bytes.append(.random(in: 0...255, using: &generator)) }
    try Data(bytes).write(to: URL(fileURLWithPath: directory.file("test.db")))
    try expectRefused(["test.db"])
    try Refusal.expect(["schema", "test.db"], in: directory, says: ["test.db"])
  }

  @Test func `a database with damaged schema pages is refused`() throws {
    try TestDatabase.makeNumbers(2000, in: directory)
    var bytes = try directory.read("test.db")
    for index in 100..<4096 { bytes[index] = 0xa5 }
    try Data(bytes).write(to: URL(fileURLWithPath: directory.file("test.db")))
    try expectRefused(["test.db", "damaged", "restore a backup"])
  }

  @Test func `a truncated database is refused`() throws {
    try TestDatabase.makeNumbers(5000, in: directory)
    let bytes = try directory.read("test.db")
    for length in [99, 100, 512, 2000, 4095] {
      try Data(bytes[..<length]).write(to: URL(fileURLWithPath: directory.file("test.db")))
      try expectRefused(["test.db"])
    }
    // The schema is whole, the rows are not: only the one who reads them can know.
    try Data(bytes[..<8192]).write(to: URL(fileURLWithPath: directory.file("test.db")))
    for command in ["plan", "run"] {
      try Refusal.expect([command, "job.json"], in: directory, says: ["test.db", "damaged"])
    }
  }

  @Test func `an empty database has no entities`() throws {
    try directory.write("", to: "test.db")
    try expectRefused(["there is no entity \"numbers\"; there are no entities"])
  }

  @Test func `a database that is locked for longer than the timeout is refused`() throws {
    try TestDatabase.makeNumbers(10, in: directory)
    let database: [String: Any] = ["path": "test.db", "busyTimeout": "10ms"]
    try directory.write(JobText.update(adding: ["database": database]), to: "job.json")
    let before = try directory.contents()
    // Reading the file here would drop the lock: POSIX locks go with any descriptor of a process.
    let other = try Connection(path: directory.file("test.db"))
    try other.execute("BEGIN EXCLUSIVE")
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 1, "\(result.errors)")
    #expect(result.errors.contains("locked"))
    try other.execute("COMMIT")
    #expect(try directory.changes(since: before) == [])
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
  }

  @Test func `reading commands leave a database in WAL mode unchanged`() throws {
    let path = try TestDatabase.makeNumbers(10, in: directory)
    #expect(try TestDatabase.texts(path, "PRAGMA journal_mode = wal") == ["wal"])
    let before = try directory.contents()
    for arguments in [["validate", "job.json"], ["plan", "job.json"], ["schema", "test.db"]] {
      let result = try BatchProgram(arguments, in: directory).wait()
      #expect(result.status == 0, "\(result.errors)")
      #expect(try directory.changes(since: before) == [], "\(arguments)")
    }
  }

  @Test func `a key too long for a list is refused and can be excluded as the error says`() throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE numbers (k TEXT, part, n INTEGER DEFAULT 0, PRIMARY KEY (k, part)) WITHOUT ROWID",
      "INSERT INTO numbers (k, part) VALUES ('short', 1)",
      "INSERT INTO numbers (k, part) SELECT printf('%.*c', 1100000, 'x'), 2"
    )
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 2, "\(result.errors)")
    let says =
      #"a row of "numbers" has a key of 1,100,004 bytes in "k", "part"; the maximum is 1,048,576"#
    #expect(result.errors.contains(says), "\(result.errors)")
    let remedy = try #require(result.errors.components(separatedBy: "with ").last)
    try directory.write(
      JobText.update(where: remedy.trimmingCharacters(in: .newlines)),
      to: "job.json"
    )
    let other = try BatchProgram.run("run", "job.json", in: directory)
    #expect(other.status == 0, "\(other.errors)")
    let done = try TestDatabase.texts(directory.file("test.db"), "SELECT sum(n) FROM numbers")
    #expect(done == ["1"])
  }

  @Test func `rowids that are out of order are reported as damage`() throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE numbers (id INTEGER PRIMARY KEY, n INTEGER)",
      "INSERT INTO numbers VALUES (1000, 1), (2000, 1)"
    )
    var bytes = try directory.read("test.db")
    // The rowids as SQLite has them, as varints; the first becomes the greater one.
    let first = try #require(
      bytes.indices.dropLast().last { bytes[$0...].starts(with: [0x87, 0x68]) }
    )
    bytes.replaceSubrange(first..<(first + 2), with: [0xbe, 0x68])
    try Data(bytes).write(to: URL(fileURLWithPath: directory.file("test.db")))
    for command in ["plan", "run"] {
      let result = try BatchProgram.run(command, "job.json", in: directory)
      #expect(result.status >= 0, "\(command): \(result.errors)")
      if command == "run" {
        #expect(result.status == 2)
        #expect(result.errors.contains("the database is damaged: the rowids"), "\(result.errors)")
      }
    }
  }

  @Test(.timeLimit(.minutes(20)), arguments: 1...4)
  func `a database with flipped bits ends no command by a signal`(seed: UInt64) throws {
    try TestDatabase.make(
      in: directory,
      "PRAGMA page_size = 512",
      "CREATE TABLE numbers (id INTEGER PRIMARY KEY, n INTEGER, label TEXT)",
      "CREATE TABLE words (w TEXT, v, PRIMARY KEY (w, v)) WITHOUT ROWID",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 200)
      INSERT INTO numbers SELECT i * 3, i, printf('%.*c', i % 50, 'x') FROM c
      """,
      "INSERT INTO words SELECT label || id, n FROM numbers"
    )
    let whole = try directory.read("test.db")
    try directory.write(JobText.export(to: "out.ndjson", entity: "words"), to: "words.json")
    try directory.write(JobText.export(to: "numbers.csv", format: "csv"), to: "numbers.json")
    var random = SeededGenerator(seed: seed)
    for round in 0..<KillLoop.kills {
      var damaged = whole
      for _ in 0..<Int.random(in: 1...12, using: &random) {
        damaged[Int.random(in: 100..<damaged.count, using: &random)] ^=
          1
          << UInt8.random(
            in: 0..<8,
            using: &random
          )
      }
      let bytes = Data(damaged)
      for job in ["job", "words", "numbers"] {
        for command in ["plan", "run"] {
          for name in try directory.names() where !name.hasSuffix(".json") {
            try FileManager.default.removeItem(atPath: directory.file(name))
          }
          try bytes.write(to: URL(fileURLWithPath: directory.file("test.db")))
          let program = try BatchProgram([command, "\(job).json"], in: directory)
          #expect(!program.send(SIGKILL, afterSeconds: 30), "seed \(seed), \(round): it hangs")
          let result = program.wait()
          let trial: Comment = "seed \(seed), round \(round), \(command) \(job): \(result.errors)"
          #expect([0, 1, 2].contains(result.status), trial)
          #expect(result.status == 0 || result.errors.contains("error: "), trial)
          // Neither a plan nor what is refused writes anything.
          if command == "plan" || result.status == 2 {
            let after = try Data(contentsOf: URL(fileURLWithPath: directory.file("test.db")))
            #expect(after == bytes, trial)
          }
        }
      }
    }
  }
}
