import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// What `batch doctor` says of a database, and that it leaves everything as it is.
@Suite struct DoctorTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(2000, in: directory)
  }

  /// Runs the command, and sees that no file appears, disappears or changes.
  private func examine(_ options: String..., status: Int32 = 0) throws -> [String: Any] {
    // Reading them here would release the locks that this process has on them.
    func files() throws -> [String: [String]] {
      let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
      return try Dictionary(
        uniqueKeysWithValues: names.map { name in
          let found = try FileManager.default.attributesOfItem(atPath: directory.file(name))
          return (name, ["\(found[.size] ?? 0)", "\(found[.modificationDate] ?? 0)"])
        }
      )
    }
    let before = try files()
    let program = try BatchProgram(["doctor", "test.db", "--json"] + options, in: directory)
    let result = program.wait()
    #expect(result.status == status, "\(result.errors)")
    let after = try files()
    #expect(before == after, "\(before.keys.sorted()) \(after.keys.sorted())")
    return try JSONOutput.object(result.output)
  }

  @Test(arguments: ["delete", "wal"])
  func `doctor reports an idle database as intact and not open elsewhere`(mode: String) throws {
    _ = try TestDatabase.value(path, "PRAGMA journal_mode = \(mode)")
    let found = try examine("--full")
    #expect(found["journalMode"] as? String == mode)
    #expect((found["damage"] as? [String])?.isEmpty == true && found["check"] as? String == "full")
    #expect((found["processes"] as? [Any])?.isEmpty == true)
    #expect((found["runs"] as? [Any])?.isEmpty == true)
    let library = try #require(found["sqlite"] as? [String: Any])
    #expect(library["version"] as? String == "\(SQLiteVersion.linked)")
    #expect(library["hasResetFault"] as? Bool == SQLiteVersion.linked.hasResetFault)
  }

  @Test(arguments: ["delete", "wal"])
  func `doctor names a writer and the readers beside it`(mode: String) throws {
    let writer = try Connection(path: path)
    _ = try writer.value("PRAGMA journal_mode = \(mode)")
    try writer.execute("UPDATE numbers SET n = 1 WHERE id = 1")
    try writer.execute("BEGIN IMMEDIATE")
    let found = try examine()
    let users = try #require(found["processes"] as? [[String: Any]])
    let own = users.filter { $0["process"] as? Int == Int(getpid()) }
    #expect(own.count == 1, "\(users)")
    #expect((own.first?["activities"] as? [String])?.contains("writes") == true)
    let advice = try #require(found["advice"] as? [String])
    let warns = advice.contains { $0.contains("WAL-reset") && $0.contains("process \(getpid())") }
    #expect(warns == (mode == "wal" && SQLiteVersion.linked.hasResetFault), "\(advice)")
    try writer.execute("COMMIT")
  }

  @Test func `doctor finds a waiting run and the command that resumes it`() throws {
    let more: [String: Any] = ["throttle": ["identifiersPerSecond": 0.001], "chunk": ["size": 100]]
    try directory.write(JobText.update(adding: more), to: "job.json")
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    try program.wait(forEvent: "throttled")
    let live = try #require(try examineLive()["runs"] as? [[String: Any]])
    #expect(live.count == 1 && live.first?["process"] as? Int == Int(program.identifier))
    program.send(SIGINT)
    #expect(program.wait().status == 3)
    let found = try examine()
    let run = try #require((found["runs"] as? [[String: Any]])?.first)
    #expect(run["standing"] as? String == "unfinished" && run["process"] == nil)
    #expect(
      (found["advice"] as? [String])?.contains { $0.contains("batch run resumes it") } == true
    )
    try FileManager.default.removeItem(atPath: directory.file("job.batch"))
    let lost = try #require(try examine()["advice"] as? [String])
    #expect(lost.contains { $0.contains("checkpoint is missing") })
  }

  /// Beside a live run, whose files change.
  private func examineLive() throws -> [String: Any] {
    let result = try BatchProgram.run("doctor", "test.db", "--json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    return try JSONOutput.object(result.output)
  }

  @Test(arguments: [[], ["--full"]])
  func `doctor ignores NULL values that SQLite's own check reports wrongly`(options: [String])
    throws
  {
    _ = try TestDatabase.value(path, "DROP TABLE numbers")
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE \"a.b\" (u, \"m m\" INTEGER NOT NULL, k TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID",
      """
      WITH RECURSIVE i(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM i WHERE k < 500)
      INSERT INTO "a.b" SELECT k, 1, k FROM i
      """
    )
    #expect(try (options == [] ? examine() : examine("--full"))["damage"] as? [String] == [])
    // What is really NULL in such a column is still told.
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE n (a, b)",
      "INSERT INTO n VALUES (1, NULL)",
      "PRAGMA writable_schema = ON",
      "UPDATE sqlite_schema SET sql = 'CREATE TABLE n (a, b NOT NULL)' WHERE name = 'n'"
    )
    let found = try options == [] ? examine(status: 1) : examine("--full", status: 1)
    #expect(found["damage"] as? [String] == ["NULL value in n.b"])
  }

  @Test func `doctor reports a damaged file by its exit status`() throws {
    _ = try TestDatabase.value(path, "CREATE INDEX labels ON numbers (label)")
    let file = try #require(FileHandle(forWritingAtPath: path))
    try file.seek(toOffset: 4096 * 3 + 100)
    try file.write(contentsOf: Data(repeating: 0xff, count: 2000))
    try file.close()
    let found = try examine(status: 1)
    #expect((found["damage"] as? [String])?.isEmpty == false)
    let text = try BatchProgram.run("doctor", "test.db", in: directory)
    #expect(text.status == 1 && text.output.contains("damaged"))
  }

  @Test func `doctor refuses a file that is not a database`() throws {
    try directory.write("no database at all, but long enough to be one: \(path)", to: "test.db")
    let result = try BatchProgram.run("doctor", "test.db", in: directory)
    #expect(result.status == 2 && result.errors.contains("not an SQLite database"))
  }

  @Test func `plan and status warn while another process has the database open with a log`() throws
  {
    try directory.write(JobText.update(adding: ["chunk": ["size": 100]]), to: "job.json")
    var other: Connection? = try Connection(path: path)
    #expect(try other?.useWriteAheadLog() == true)
    _ = try other?.value("SELECT count(*) FROM numbers")
    let plan = try JSONOutput.object(
      BatchProgram.run("plan", "job.json", "--json", in: directory).output
    )
    let warnings = try #require(plan["warnings"] as? [String])
    #expect(warnings.contains { $0.contains("WAL-reset") } == SQLiteVersion.linked.hasResetFault)
    other = nil
    let alone = try JSONOutput.object(
      BatchProgram.run("plan", "job.json", "--json", in: directory).output
    )
    #expect((alone["warnings"] as? [String])?.contains { $0.contains("WAL-reset") } == false)
  }
}
