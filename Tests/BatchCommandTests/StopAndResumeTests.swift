import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct StopAndResumeTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(4000, in: directory)
  }

  /// A job of several seconds, in chunks of some milliseconds, with a short rest after each; its
  /// report of the rests shows that something was done.
  private func writeSlowJob(
    where condition: String? = nil,
    _ more: [String: Any] = [:]
  ) throws {
    let tuning: [String: Any] = [
      "chunk": ["size": 10], "checkpoint": ["interval": "10ms"], "throttle": ["sleepRatio": 0.2],
    ]
    let slow = try JobText.update(
      ["n": "n + 1 + \(JobText.slowZero)"],
      where: condition,
      adding: tuning.merging(more) { $1 }
    )
    try directory.write(slow, to: "job.json")
  }

  /// Starts the job and waits until it has begun or resumed.
  private func start(_ arguments: String..., event: String = "started") throws -> BatchProgram {
    let program = try BatchProgram(["run", "job.json", "--json"] + arguments, in: directory)
    let line = try #require(program.nextLine(), "\(program.wait().errors)")
    #expect(try JSONOutput.object(line)["event"] as? String == event)
    return program
  }

  /// Waits until some of the job is done.
  private func waitForProgress(_ program: BatchProgram) throws {
    let event = try program.wait(forEvent: "throttled")
    #expect(try #require(event["done"] as? Int) > 0)
  }

  private func finishQuickly() throws -> BatchProgram.Result {
    try BatchProgram.run("run", "job.json", "--json", "--workers", "2", in: directory)
  }

  @Test func `a signal lets the chunks in flight finish`() throws {
    try writeSlowJob()
    let program = try start()
    try waitForProgress(program)
    program.send(SIGTERM)
    let result = program.wait()
    #expect(result.status == 3, "\(result.errors)")
    let last = try #require(JSONOutput.lines(result.output).last)
    #expect(last["event"] as? String == "stopped")
    #expect(last["state"] as? String == "stopped")
    let done = try #require(last["done"] as? Int)
    #expect((1..<4000).contains(done))
    #expect(try TestDatabase.value(path, "SELECT sum(n) FROM numbers") == .integer(Int64(done)))
    #expect(try directory.names() == ["job.batch", "job.json", "test.db"])

    let status = try BatchProgram.run("status", "job.json", "--json", in: directory)
    #expect(try JSONOutput.object(status.output)["state"] as? String == "stopped")
    #expect(try JSONOutput.object(status.output)["done"] as? Int == done)

    let resumed = try start(event: "resumed")
    resumed.send(SIGKILL)
    #expect(resumed.wait().status == -SIGKILL)
  }

  /// An expression that never ends once `id` exceeds 20.
  private static let endless = """
    n + 1 + CASE WHEN id <= 20 THEN 0 ELSE
    (WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i FROM c) SELECT count(*) FROM c) END
    """

  @Test func `a signal ends an endless expression after a grace period`() throws {
    // With a pace no two chunks share a transaction, which would not end.
    let more: [String: Any] = [
      "chunk": ["size": 10], "throttle": ["sleepRatio": 10], "workers": 1,
    ]
    try directory.write(JobText.update(["n": Self.endless], adding: more), to: "job.json")
    let program = try start()
    try waitForProgress(program)
    // It rests for some milliseconds until it reaches what does not end; a request takes longer.
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory)
    #expect(try JSONOutput.object(status.output)["state"] as? String == "running")
    program.send(SIGINT)
    let result = program.wait()
    #expect(result.status == 3, "\(result.errors)")
    let last = try #require(JSONOutput.lines(result.output).last)
    #expect(last["state"] as? String == "stopped")
    let done = try #require(last["done"] as? Int)
    #expect(done == 10 || done == 20)
    #expect(try TestDatabase.value(path, "SELECT sum(n) FROM numbers") == .integer(Int64(done)))
  }

  @Test func `a second signal ends the run immediately`() throws {
    // One chunk, which takes seconds: the first signal cannot end it.
    try writeSlowJob(["chunk": ["size": 4000]])
    let program = try BatchProgram(["run", "job.json"], in: directory)
    var said: [String] = []
    while let line = program.nextErrorLine() {
      said.append(line)
      if line.contains("selected") { program.send(SIGINT) }
      if line.contains("press Ctrl-C again to stop at once") {
        // Not so soon that it is the same Ctrl-C.
        _ = program.send(SIGINT, afterSeconds: 0.15)
        break
      }
    }
    let result = program.wait()
    #expect(result.status == 3, "\(said)")
    #expect(result.output == "")
    #expect(try TestDatabase.value(path, "SELECT sum(n) FROM numbers") == .integer(0))
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory)
    #expect(try JSONOutput.object(status.output)["state"] as? String == "stopped")
  }

  @Test func `a Ctrl-C that arrives twice counts once`() throws {
    try writeSlowJob(["chunk": ["size": 200]])
    let program = try BatchProgram(["run", "job.json"], in: directory)
    while let line = program.nextErrorLine(), !line.contains("selected") {}
    // As a terminal sends it, and a wrapper passes it on.
    program.send(SIGINT)
    program.send(SIGTERM)
    let result = program.wait()
    #expect(result.status == 3)
    #expect(result.output.hasPrefix("job: stopped, resumable, "), "\(result.output)")
    let said = result.errors.split(separator: "\n").count { $0.hasPrefix("stopping: finishing") }
    #expect(said == 1, "\(result.errors)")
  }

  @Test func `a lock file that no process holds is ignored`() throws {
    try directory.write("left over", to: "job.batch.lock")
    try directory.write(JobText.update(), to: "job.json")
    #expect(try finishQuickly().status == 0)
    #expect(try directory.names() == ["job.batch", "job.json", "test.db"])
  }

  @Test func `--fresh sets an unfinished checkpoint aside`() throws {
    try writeSlowJob()
    for round in 1...3 {
      let before = try directory.contents()
      let program = try BatchProgram(["run", "job.json", "--json", "--fresh"], in: directory)
      if round > 1 {
        let line = try #require(program.nextLine())
        #expect(try JSONOutput.object(line)["event"] as? String == "setAside")
        let checkpoint = try JSONOutput.object(line)["checkpoint"] as? String
        #expect(checkpoint == "job.\(round - 1).batch")
        let aside = try directory.contents()["job.\(round - 1).batch"]
        // Nothing of it is lost, and who set it aside may be added.
        let earlier = try #require(before["job.batch"])
        #expect(aside?.starts(with: earlier) == true)
      }
      #expect(try JSONOutput.object(program.nextLine() ?? "{}")["event"] as? String == "started")
      program.send(SIGINT)
      #expect(program.wait().status == 3)
    }
    #expect(try directory.names().filter { $0.hasSuffix(".batch") }.count == 3)

    // The one set aside is still valid: moved back, it resumes.
    let moved = directory.file("job.3.batch")
    try FileManager.default.moveItem(atPath: directory.file("job.batch"), toPath: moved)
    try FileManager.default.moveItem(
      atPath: directory.file("job.1.batch"),
      toPath: directory.file("job.batch")
    )
    let program = try start(event: "resumed")
    program.send(SIGINT)
    #expect(program.wait().status == 3)
  }

  @Test func `a signal during the selection leaves no files`() throws {
    let job = try JobText.update(where: "\(JobText.slowZero) = 0")
    try directory.write(job, to: "job.json")
    let before = try directory.contents()
    let watch = try FolderWatch(directory)
    let program = try BatchProgram(["run", "job.json"], in: directory)
    // There is nothing to read yet; the lock shows that the program has begun.
    #expect(try watch.sees("job.batch.lock"))
    program.send(SIGINT)
    let result = program.wait()
    #expect(result.status == 3, "\(result.errors)")
    #expect(try directory.changes(since: before) == [])
  }
}
