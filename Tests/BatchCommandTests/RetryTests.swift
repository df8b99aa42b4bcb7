import BatchStore
import BatchTestSupport
import Foundation
import Testing

/// A job whose database is locked by another connection while it runs.
@Suite struct RetryTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(2000, in: directory)
  }

  /// A job that takes some seconds, in chunks of some milliseconds, and does not wait for locks.
  ///
  /// It rests between chunks, or whoever wants the lock might not get it before the end.
  private func write(_ retry: [String: Any]) throws {
    let job = try JobText.update(
      ["n": "n + 1 + \(JobText.slowZero)"],
      adding: [
        "database": ["path": "test.db", "busyTimeout": "0ms"], "chunk": ["size": 10],
        "checkpoint": ["interval": "1ms"], "throttle": ["sleepRatio": 0.5], "retry": retry,
      ]
    )
    try directory.write(job, to: "job.json")
  }

  /// Starts the job and locks the database as soon as it has begun.
  ///
  /// - Returns: The program, the first of its events that tells of a further try, and the connection
  ///   that holds the lock.
  private func startLocked() throws -> (BatchProgram, [String: Any], Connection) {
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    #expect(try JSONOutput.object(program.nextLine() ?? "{}")["event"] as? String == "started")
    let connection = try Connection(path: path, options: .init(busyTimeout: .seconds(60)))
    try connection.execute("BEGIN IMMEDIATE")
    while let line = program.nextLine() {
      let event = try JSONOutput.object(line)
      if event["event"] as? String == "retrying" { return (program, event, connection) }
    }
    throw CocoaError(.fileReadUnknown)
  }

  @Test func `a chunk that meets a lock is done when the lock is gone`() throws {
    try write(["limit": 1000, "backoff": "1ms", "maximumBackoff": "20ms"])
    let (program, event, connection) = try startLocked()
    #expect(event["attempt"] as? Int == 1 && event["limit"] as? Int == 1000)
    #expect((event["error"] as? String)?.contains("locked") == true)
    try connection.execute("COMMIT")
    let result = program.wait()
    #expect(result.status == 0, "\(result.errors)")
    let last = try #require(JSONOutput.lines(result.output).last)
    #expect(last["done"] as? Int == 2000 && last["error"] is NSNull)
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }

  @Test func `a lock that stays fails the run after the last try`() throws {
    try write(["limit": 2, "backoff": "1ms"])
    let (program, _, connection) = try startLocked()
    let result = program.wait()
    #expect(result.status == 1)
    #expect(result.errors.contains("locked by another connection (tried 3 times)"))
    try connection.execute("COMMIT")
    let resumed = try BatchProgram.run("run", "job.json", in: directory)
    #expect(resumed.status == 0, "\(resumed.errors)")
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }

  @Test func `a stop does not wait for the next try`() throws {
    try write(["limit": 1000, "backoff": "24h", "maximumBackoff": "24h"])
    let (program, _, connection) = try startLocked()
    program.send(SIGINT)
    let result = program.wait()
    #expect(result.status == 3, "\(result.errors)")
    #expect(try JSONOutput.lines(result.output).last?["event"] as? String == "stopped")
    try connection.execute("COMMIT")
    let resumed = try BatchProgram.run("run", "job.json", in: directory)
    #expect(resumed.status == 0, "\(resumed.errors)")
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }

  @Test func `retry with a limit of 0 is no retry`() throws {
    try write(["limit": 0])
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    #expect(try JSONOutput.object(program.nextLine() ?? "{}")["event"] as? String == "started")
    let connection = try Connection(path: path, options: .init(busyTimeout: .seconds(60)))
    try connection.execute("BEGIN IMMEDIATE")
    let result = program.wait()
    #expect(result.status == 1)
    #expect(result.errors.contains("locked by another connection"))
    #expect(!result.output.contains("retrying"))
    try connection.execute("COMMIT")
  }
}
