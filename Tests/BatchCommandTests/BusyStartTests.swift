import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// A run that begins while another connection locks the database.
@Suite struct BusyStartTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(2000, in: directory)
  }

  /// A job that does not wait for locks.
  private func write(retry: [String: Any], adding more: [String: Any] = [:]) throws {
    var more = more
    more["database"] = ["path": "test.db", "busyTimeout": "0ms"]
    more["retry"] = retry
    more["chunk"] = ["size": 100]
    try directory.write(JobText.update(adding: more), to: "job.json")
  }

  /// Locks the database for writing, in the journal mode of most applications or in that of SQLite's default.
  private func lock(_ mode: String, _ statement: String = "BEGIN IMMEDIATE") throws -> Connection {
    let connection = try Connection(path: path)
    try connection.execute("PRAGMA journal_mode = \(mode)")
    try connection.execute(statement)
    try connection.execute("UPDATE numbers SET label = 'theirs' WHERE id = 1")
    return connection
  }

  @Test(
    arguments: [
      ("wal", "BEGIN IMMEDIATE"), ("delete", "BEGIN IMMEDIATE"), ("delete", "BEGIN EXCLUSIVE"),
    ]
  )
  func `a run that finds the database locked begins once the lock is released`(
    mode: String,
    statement: String
  ) throws {
    try write(retry: ["limit": 1000, "backoff": "1ms", "maximumBackoff": "20ms"])
    let connection = try lock(mode, statement)
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    let event = try program.wait(forEvent: "message")
    let message = try #require(event["message"] as? String)
    #expect(
      message.contains("locked") && message.contains("the run tries again to begin (1 of 1,000)")
    )
    try connection.execute("COMMIT")
    let result = program.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
    #expect(try TestDatabase.texts(path, "SELECT label FROM numbers WHERE id = 1") == ["theirs"])
  }

  @Test func `a run that stays locked out reports that it has not begun`() throws {
    try write(retry: ["limit": 2, "backoff": "1ms"])
    let connection = try lock("delete")
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 1)
    #expect(result.errors.contains("(2 of 2)") && !result.errors.contains("(3 of"))
    #expect(result.errors.contains("locked by another connection"))
    #expect(!result.errors.contains("resumes"), "\(result.errors)")
    try connection.execute("COMMIT")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }

  @Test func `switching the journal mode waits for a lock as long as a statement does`() throws {
    let connection = try lock("delete")
    let start = ContinuousClock.now
    let other = try Connection(path: path, options: .init(busyTimeout: .milliseconds(300)))
    #expect(throws: (any Error).self) { try other.useWriteAheadLog() }
    #expect(start.duration(to: .now) >= .milliseconds(300))
    try connection.execute("COMMIT")
    #expect(try other.useWriteAheadLog())
  }

  @Test func `a stop ends the wait for a lock before a run has begun`() throws {
    try write(retry: ["limit": 1000, "backoff": "24h", "maximumBackoff": "24h"])
    let connection = try lock("wal")
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    try program.wait(forEvent: "message")
    program.send(SIGTERM)
    let result = program.wait()
    #expect(result.status == 3, "\(result.errors)")
    try connection.execute("COMMIT")
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["0"])
  }

  /// Runs a command that first meets a lock, which goes when it has said so.
  private func runLocked(_ arguments: String...) throws -> BatchProgram.Result {
    let connection = try lock("wal")
    try connection.execute("DROP TRIGGER IF EXISTS refused")
    let program = try BatchProgram(arguments + ["--json"], in: directory)
    try program.wait(forEvent: "message")
    try connection.execute("COMMIT")
    return program.wait()
  }

  @Test func `a resumed run and a retry of failures wait for a lock too`() throws {
    let retry: [String: Any] = ["limit": 1000, "backoff": "1ms", "maximumBackoff": "20ms"]
    try write(retry: retry, adding: ["throttle": ["identifiersPerSecond": 0.001]])
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    try program.wait(forEvent: "throttled")
    program.send(SIGINT)
    #expect(program.wait().status == 3)
    try write(retry: retry)
    let resumed = try runLocked("run", "job.json")
    #expect(resumed.status == 0 && resumed.output.contains("\"resumed\""), "\(resumed.errors)")

    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER refused BEFORE UPDATE OF n ON numbers WHEN NEW.id = 5
        BEGIN SELECT raise(ABORT, 'not this one'); END
      """
    )
    try write(retry: retry, adding: ["skip": ["limit": 10]])
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 4)
    let retried = try runLocked("retry-failed", "job.json")
    #expect(retried.status == 0, "\(retried.errors)")
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["2"])
  }
}
