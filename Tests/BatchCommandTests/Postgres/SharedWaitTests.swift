#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// What a run says while it waits for somebody on the server.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SharedWaitTests {
  private static let cluster = Result {
    try TestCluster(configuration: "max_prepared_transactions = 10")
  }

  private func makeJob(rows: Int = 500, busyTimeout: String = "60s") throws -> SharedJob {
    let job = try SharedJob(rows: rows, in: Self.cluster.get())
    try job.writeJob([
      "database": ["url": job.url(), "lease": SharedJob.lease, "busyTimeout": busyTimeout],
      "retry": ["limit": 1, "backoff": "10ms"],
    ])
    return job
  }

  @Test
  func `a lock held at the start ends the run after its retries, and the error names the holder`()
    throws
  {
    let job = try makeJob(busyTimeout: "500ms")
    let holder = try job.database.session()
    try holder.run("BEGIN; LOCK TABLE t IN SHARE MODE")
    let process = try #require(try holder.text("SELECT pg_backend_pid()"))
    let result = try job.batch("run", "job.json")
    #expect(result.status == 1)
    let words = "waited 0.5 seconds for a lock on t, held by process \(process) (test of postgres"
    let parts = result.errors.split(separator: words, omittingEmptySubsequences: false)
    #expect(parts.count == 3, "once before the retry, and in the end: \(result.errors)")
    #expect(try job.counts() == ["0 x 500"])
    try holder.run("ROLLBACK")
    #expect(try job.start().wait().status == 0)
    #expect(try job.counts() == ["1 x 500"])
  }

  @Test func `status names the holder of the lock that a first run waits for`() throws {
    let job = try makeJob()
    let holder = try job.database.session()
    try holder.run("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
    let process = try #require(try holder.text("SELECT pg_backend_pid()"))
    let program = try job.start()
    let words = "waiting for a lock on t, held by process \(process) (test of postgres"
    var status = try job.batch("status", "job.json")
    while program.isRunning, !status.errors.contains(words) {
      status = try job.batch("status", "job.json")
    }
    #expect(status.errors.contains("is about to begin its first run"), "\(status.errors)")
    #expect(!status.errors.contains("has not been run"))
    let message = try program.event("message")?["message"] as? String
    #expect(message?.hasPrefix(words) == true, "\(message ?? "")")
    program.send(SIGTERM)
    let result = program.wait()
    #expect(result.status == 3)
    #expect(result.errors.contains("it has changed no row"), "\(result.errors)")
  }

  @Test func `a run names the prepared transaction that it waits for`() throws {
    let job = try makeJob()
    let holder = try job.database.session()
    try holder.run("BEGIN; LOCK TABLE t IN SHARE MODE; PREPARE TRANSACTION 'left behind'")
    let program = try job.start()
    let message = try program.event("message")?["message"] as? String
    #expect(
      message == "waiting for a lock on t, held by the prepared transaction 'left behind'",
      "\(message ?? "")"
    )
    try holder.run("ROLLBACK PREPARED 'left behind'")
    #expect(program.wait().status == 0)
    #expect(try job.counts() == ["1 x 500"])
  }

  @Test func `a run waiting for a missing standby says so, as does status, without an estimate`()
    throws
  {
    let job = try makeJob(rows: 20_000)
    try job.writeJob(SharedJob.slowly)
    let other = try job.database.session()
    try job.database.run("ALTER DATABASE \(job.database.name) SET synchronous_commit = on")
    let program = try job.start()
    try job.untilDone(1)
    try other.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    try other.run("SELECT pg_reload_conf()")
    let words = "a synchronous standby to confirm a commit (synchronous_standby_names is 'nobody')"
    let message = try program.event("message")?["message"] as? String
    #expect(message == "waiting for \(words)", "\(message ?? "")")
    var status: [String: Any] = [:]
    while program.isRunning, status["waiting"] as? String != words {
      status = try JSONOutput.object(job.batch("status", "job.json", "--json").output)
    }
    // As on SQLite, where nothing holds the run either.
    #expect(status["state"] as? String == "running")
    #expect(status["throttle"] is NSNull)
    #expect(status["etaSeconds"] is NSNull)
    let text = try job.batch("status", "job.json").output.replacing(/\s+/, with: " ")
    #expect(
      text.contains("waiting for: \(words)") || text.contains("waiting for \(words)"),
      "\(text)"
    )
    try other.run("ALTER SYSTEM RESET synchronous_standby_names")
    try other.run("SELECT pg_reload_conf()")
    #expect(program.wait().status == 0)
    #expect(try job.counts() == ["1 x 20000"])
  }

  @Test func `status names the silent command that a transform waits for`() throws {
    let job = try makeJob(rows: 10)
    try job.directory.write("", to: "hold")
    let script = "while [ -e hold ]; do sleep 0.05; done; sed -u 's/.*/{\"n\": 1}/'"
    let action: [String: Any] = [
      "type": "transform", "columns": ["n"], "writes": ["n"], "command": ["sh", "-c", script],
    ]
    try job.writeJob(["action": action, "workers": 1])
    let program = try job.start()
    var status: [String: Any] = [:]
    while program.isRunning, !(status["waiting"] is String) {
      let result = try job.batch("status", "job.json", "--json")
      if result.status == 0 { status = try JSONOutput.object(result.output) }
    }
    let words = try #require(status["waiting"] as? String)
    #expect(words.contains(#/^sh \(process \d+\), silent for \d+ s$/#), "\(words)")
    #expect(status["state"] as? String == "running")
    #expect(status["throttle"] is NSNull)
    let hosts = try #require(status["hosts"] as? [[String: Any]])
    #expect(hosts.map { $0["waiting"] is String } == [true])
    #expect(hosts.map { $0["hold"] is String } == [false])
    try FileManager.default.removeItem(atPath: job.directory.file("hold"))
    #expect(program.wait().status == 0)
    #expect(try job.counts() == ["1 x 10"])
  }
}
#endif
