import BatchSQLite
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

  /// A job that does not wait for locks, and that its pace holds for hours after its first chunk.
  private func write(_ retry: [String: Any], perSecond pace: Double = 0.001) throws {
    let more: [String: Any] = [
      "database": ["path": "test.db", "busyTimeout": "0ms"], "chunk": ["size": 10],
      "checkpoint": ["interval": "1ms"], "throttle": ["identifiersPerSecond": pace],
      "retry": retry,
    ]
    try directory.write(JobText.update(adding: more), to: "job.json")
  }

  /// Starts the job, locks the database while the pace holds the run, and lets it continue.
  ///
  /// - Returns: The program, and the connection that holds the lock.
  private func startLocked() throws -> (BatchProgram, Connection) {
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    try program.wait(forEvent: "throttled")
    let connection = try Connection(path: path, options: .init(busyTimeout: .seconds(60)))
    try connection.execute("BEGIN IMMEDIATE")
    let pace = "throttle.identifiersPerSecond=none"
    #expect(try BatchProgram.run("set", "job.json", pace, in: directory).status == 0)
    return (program, connection)
  }

  /// Runs the job without its pace, and sees that each row was changed once.
  private func resume() throws {
    try write(["limit": 0], perSecond: 1_000_000)
    let resumed = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(resumed.status == 0, "\(resumed.errors)")
    let first = try #require(JSONOutput.lines(resumed.output).first)
    #expect(first["event"] as? String == "resumed" && first["done"] as? Int ?? 0 > 0)
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }

  @Test func `a chunk that meets a lock is done once the lock is released`() throws {
    try write(["limit": 1000, "backoff": "1ms", "maximumBackoff": "20ms"])
    let (program, connection) = try startLocked()
    let event = try program.wait(forEvent: "retrying")
    #expect(event["attempt"] as? Int == 1 && event["limit"] as? Int == 1000)
    #expect((event["error"] as? String)?.contains("locked") == true)
    try connection.execute("COMMIT")
    let result = program.wait()
    #expect(result.status == 0, "\(result.errors)")
    let last = try #require(JSONOutput.lines(result.output).last)
    #expect(last["done"] as? Int == 2000 && last["error"] is NSNull)
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }

  @Test func `a lasting lock fails the run after the last attempt`() throws {
    try write(["limit": 2, "backoff": "1ms"])
    let (program, connection) = try startLocked()
    try program.wait(forEvent: "retrying")
    let result = program.wait()
    #expect(result.status == 1)
    #expect(result.errors.contains("locked by another connection (tried 3 times)"))
    try connection.execute("COMMIT")
    try resume()
  }

  @Test func `a stop does not wait for the next attempt`() throws {
    try write(["limit": 1000, "backoff": "24h", "maximumBackoff": "24h"])
    let (program, connection) = try startLocked()
    try program.wait(forEvent: "retrying")
    program.send(SIGINT)
    let result = program.wait()
    #expect(result.status == 3, "\(result.errors)")
    #expect(try JSONOutput.lines(result.output).last?["event"] as? String == "stopped")
    try connection.execute("COMMIT")
    try resume()
  }

  @Test func `a retry limit of 0 means no retry`() throws {
    try write(["limit": 0])
    let (program, connection) = try startLocked()
    let result = program.wait()
    #expect(result.status == 1)
    #expect(result.errors.contains("locked by another connection"))
    #expect(!result.output.contains("retrying"))
    try connection.execute("COMMIT")
    try resume()
  }

  @Test func `only the first of many retries is reported, with their number at the end`() throws {
    let command = """
      n=0; while read line; do n=$((n+1))
      if [ $n -lt 20 ]; then echo '{"$retry":"later"}'; else echo '{"n":1}'; fi; done
      """
    let action: [String: Any] = [
      "type": "transform", "columns": ["n"], "writes": ["n"], "command": ["sh", "-c", command],
    ]
    let more: [String: Any] = [
      "action": action, "workers": 1,
      "retry": ["limit": 100, "backoff": "1ms", "maximumBackoff": "1ms"],
    ]
    try directory.write(JobText.update(where: "id = 1", adding: more), to: "job.json")
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.errors.matches(of: /retry \d+ of 100/).count == 1, "\(result.errors)")
    #expect(result.errors.contains("chunks were retried 19 times in all"), "\(result.errors)")
  }
}
