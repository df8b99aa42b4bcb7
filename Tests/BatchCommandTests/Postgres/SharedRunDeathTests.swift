#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// The fate of rows when processes, connections and the server die.
@Suite(.timeLimit(.minutes(5))) struct SharedRunDeathTests {
  @Test func `a run of two processes, one of them killed, changes each row once`() throws {
    let job = try SharedJob(rows: 30_000, adding: SharedJob.slowly)
    let first = try job.start()
    #expect(try first.event("started") != nil)
    let second = try job.start("--join-only")
    #expect(try second.event("joined") != nil)
    try job.untilDone(5_000)
    first.send(SIGKILL)
    #expect(first.wait().status == -SIGKILL)
    let result = second.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try result.last["done"] as? Int == 30_000)
    #expect(try job.counts() == ["1 x 30000"])
    #expect(try job.database.text("SELECT state FROM _batch_run") == "acknowledged")
  }

  @Test func `a process suspended past its lease repeats nothing that others have done`() throws {
    let job = try SharedJob(rows: 30_000, adding: SharedJob.slowly)
    let first = try job.start()
    #expect(try first.event("started") != nil)
    try job.untilDone(2_000)
    first.send(SIGSTOP)
    let second = try job.start("--join-only").wait()
    #expect(second.status == 0, "\(second.errors)")
    #expect(try job.counts() == ["1 x 30000"])
    first.send(SIGCONT)
    let result = first.wait()
    #expect(result.status == 0, "\(result.errors)")
    // Both end with the same summary.
    for key in ["run", "state", "total", "done", "chunks", "endedAt"] {
      #expect(try "\(result.last[key] ?? "")" == "\(second.last[key] ?? "")", "\(key)")
    }
    #expect(try job.counts() == ["1 x 30000"])
  }

  @Test func `connections that the server ends are reopened, and no row is done twice`() throws {
    let job = try SharedJob(rows: 30_000, adding: SharedJob.slowly)
    let process = try job.start()
    for count in [1, 5_000, 10_000, 15_000] {
      try job.untilDone(count)
      try job.database.run(
        """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'batch%'
        """
      )
    }
    let result = process.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.counts() == ["1 x 30000"])
  }

  @Test func `a run continues after a server crash, and no row is done twice`() throws {
    let cluster = try TestCluster()
    let job = try SharedJob(rows: 30_000, adding: SharedJob.slowly, in: cluster)
    // The waits for rows use separate sessions, which the crash ends.
    let process = try job.start()
    try job.untilDone(5_000)
    try cluster.crash()
    try job.untilDone(15_000)
    try cluster.crash()
    let result = process.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.counts() == ["1 x 30000"])
  }

  @Test func `a run abandoned by all its processes continues with the same command`() throws {
    let job = try SharedJob(rows: 30_000, adding: SharedJob.slowly)
    let first = try job.start()
    try job.untilDone(5_000)
    first.send(SIGKILL)
    _ = first.wait()
    let second = try job.start()
    let event = try #require(try second.event("resumed", "started"))
    #expect(event["event"] as? String == "resumed")
    #expect(event["done"] as? Int ?? 0 >= 5_000)
    try job.untilDone(10_000)
    second.send(SIGINT)
    let stopped = second.wait()
    #expect(stopped.status == 3, "\(stopped.errors)")
    #expect(try stopped.last["state"] as? String == "stopped")
    // It left properly, and found the killed one gone, so nobody waits for a lease.
    #expect(try job.database.text("SELECT count(*) FROM _batch_host") == "0")
    try job.writeJob()
    let third = try job.start().wait()
    #expect(third.status == 0, "\(third.errors)")
    #expect(try job.counts() == ["1 x 30000"])
  }
}
#endif
