#if PostgreSQL
import BatchTestSupport
import Foundation
import Testing

/// What `batch status` and `batch history` tell of a run on which nobody works.
@Suite(.timeLimit(.minutes(3))) struct SharedStatusTests {
  @Test func `status of a failed run says why, and its time stands still`() throws {
    let job = try SharedJob(rows: 500, "ALTER TABLE t ADD CHECK (id <> 500 OR n = 0)")
    let result = try job.start().wait()
    #expect(result.status == 1)
    let status = try job.status()
    #expect(status["state"] as? String == "failed")
    let error = try #require(status["error"] as? String)
    #expect(error.contains("identifier 500: new row for relation \"t\" violates check constraint"))
    #expect(status["endedAt"] is String)
    let hosts = try #require(status["hosts"] as? [[String: Any]])
    #expect(hosts.map { $0["end"] as? String } == ["failed"])
    #expect(hosts.map { $0["reason"] as? String } == [error])
    // The server's clock goes on between these commands.
    try job.database.run("SELECT pg_sleep(0.1)")
    #expect(try job.status()["elapsedSeconds"] as? Double == status["elapsedSeconds"] as? Double)
    let text = try job.batch("status", "job.json").output
    #expect(text.hasPrefix("job: failed, resumable, "), "\(text)")
    #expect(text.contains("violates check constraint"))
    let history = try JSONOutput.object(job.batch("history", "job.json", "--json").output)
    let runs = try #require(history["runs"] as? [[String: Any]])
    #expect(runs.map { $0["state"] as? String } == ["failed"])
    #expect(runs.map { $0["error"] as? String } == [error])

    // Its end is no longer of interest when the run is finished.
    try job.database.run("ALTER TABLE t DROP CONSTRAINT t_check")
    #expect(try job.start().wait().status == 0)
    let finished = try job.status()
    #expect(finished["state"] as? String == "completed")
    #expect(finished["error"] is NSNull)
    #expect((finished["hosts"] as? [Any])?.isEmpty == true)
    #expect(try job.counts() == ["1 x 500"])
  }

  @Test func `status distinguishes a stopped run from a killed one`() throws {
    let job = try SharedJob(rows: 20_000, adding: SharedJob.slowly)
    let stopped = try job.start()
    try job.untilDone(1)
    stopped.send(SIGTERM)
    #expect(try stopped.wait().status == 3)
    #expect(try job.status()["state"] as? String == "stopped")
    #expect(try job.status()["wasKilled"] as? Bool == false)
    let program = try job.start()
    try job.untilDone(1_000)
    program.send(SIGKILL)
    _ = program.wait()
    try job.wait(
      until: "(SELECT bool_and(seen_at < clock_timestamp() - interval '2 s') FROM _batch_host)"
    )
    let killed = try job.status()
    #expect(killed["state"] as? String == "stopped")
    #expect(killed["wasKilled"] as? Bool == true)
    #expect(killed["endedAt"] is NSNull)
    #expect(killed["lastSeenAt"] is String)
    #expect(try job.status()["elapsedSeconds"] as? Double == killed["elapsedSeconds"] as? Double)
  }
}

extension SharedJob {
  fileprivate func status() throws -> [String: Any] {
    try JSONOutput.object(batch("status", "job.json", "--json").output)
  }
}
#endif
