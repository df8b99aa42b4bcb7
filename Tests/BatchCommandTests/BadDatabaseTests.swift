import BatchStore
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

  @Test func `there is no database`() throws {
    try expectRefused(["test.db", "no such file"])
    try Refusal.expect(["schema", "test.db"], in: directory, says: ["test.db", "no such file"])
  }

  @Test func `the database is a folder`() throws {
    try FileManager.default.createDirectory(
      atPath: directory.file("test.db"),
      withIntermediateDirectories: false
    )
    try expectRefused(["test.db: this is not a file"])
    try Refusal.expect(["schema", "test.db"], in: directory, says: ["this is not a file"])
  }

  @Test func `the database is under a file`() throws {
    try directory.write("", to: "file")
    try directory.write(JobText.update(database: "file/test.db"), to: "job.json")
    try expectRefused(["test.db", "not a directory"])
  }

  @Test func `the file is not a database`() throws {
    try directory.write(String(repeating: "this is some text\n", count: 500), to: "test.db")
    try expectRefused(["test.db", "not an SQLite database, or is encrypted"])
    try Refusal.expect(["schema", "test.db"], in: directory, says: ["not an SQLite database"])
  }

  @Test(arguments: 1...8) func `bytes after the magic are random`(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var bytes = Array("SQLite format 3\0".utf8)
    for _ in 0..<8192 { bytes.append(.random(in: 0...255, using: &generator)) }
    try Data(bytes).write(to: URL(fileURLWithPath: directory.file("test.db")))
    try expectRefused(["test.db"])
    try Refusal.expect(["schema", "test.db"], in: directory, says: ["test.db"])
  }

  @Test func `pages of the schema are damaged`() throws {
    try TestDatabase.makeNumbers(2000, in: directory)
    var bytes = try directory.read("test.db")
    for index in 100..<4096 { bytes[index] = 0xa5 }
    try Data(bytes).write(to: URL(fileURLWithPath: directory.file("test.db")))
    try expectRefused(["test.db", "damaged", "restore a backup"])
  }

  @Test func `the database is cut short`() throws {
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

  @Test func `the database is locked for longer than the timeout`() throws {
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

  @Test func `reading commands leave a database in WAL mode as it is`() throws {
    let path = try TestDatabase.makeNumbers(10, in: directory)
    #expect(try TestDatabase.texts(path, "PRAGMA journal_mode = wal") == ["wal"])
    let before = try directory.contents()
    for arguments in [["validate", "job.json"], ["plan", "job.json"], ["schema", "test.db"]] {
      let result = try BatchProgram(arguments, in: directory).wait()
      #expect(result.status == 0, "\(result.errors)")
      #expect(try directory.changes(since: before) == [], "\(arguments)")
    }
  }
}
