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
    // It still says which process did what.
    let all = try #require(finished["hosts"] as? [[String: Any]])
    #expect(all.map { $0["end"] as? String } == ["finished", "failed"])
    #expect(all.reduce(0) { $0 + ($1["done"] as? Int ?? 0) } == 500)
    #expect(try job.batch("status", "job.json").output.contains(#/finished .* ago, [0-9]+ done/#))
    #expect(try job.counts() == ["1 x 500"])
  }

  @Test func `the record tells who took part in a run and steered it, once each`() throws {
    let job = try SharedJob(rows: 30_000, adding: SharedJob.slowly)
    func actions(_ run: Int = 0) throws -> [[String: Any]] {
      let history = try JSONOutput.object(job.batch("history", "job.json", "--json").output)
      return (history["runs"] as? [[String: Any]])?[run]["actions"] as? [[String: Any]] ?? []
    }
    func kinds(_ run: Int = 0) throws -> [String] {
      try actions(run).compactMap { $0["kind"] as? String }.sorted()
    }
    let first = try job.start()
    try job.untilDone(100)
    let second = try job.start()
    _ = try second.event("joined")
    try job.wait(until: "(SELECT count(*) FROM _batch_action) = 1")
    for _ in 0..<2 { #expect(try job.batch("pause", "job.json").status == 0) }
    #expect(try job.batch("set", "job.json", "chunk.size=0").status == 2)
    let setting = try (1...4).map { number in
      let rate = "throttle.identifiersPerSecond=\(number * 1000)"
      return try BatchProgram(["set", "job.json", rate], in: job.directory)
    }
    for program in setting { #expect(program.wait().status == 0) }
    #expect(try job.batch("resume", "job.json").status == 0)
    for program in [first, second] {
      program.send(SIGKILL)
      _ = program.wait()
    }
    let changes = try actions().filter { $0["kind"] as? String == "set" }
    let values = changes.compactMap { $0["to"] as? String }
    #expect(changes.compactMap { $0["from"] as? String } == ["5000"] + values.dropLast())
    #expect(
      Set(changes.compactMap { $0["pid"] as? Int }) == Set(setting.map { Int($0.identifier) })
    )
    let steered = ["began", "continued", "joined", "paused", "set", "set", "set", "set"]
    #expect(try kinds() == steered)
    #expect(try job.status()["actions"] as? [[String: Any]] != nil)
    // Nobody is there to be asked.
    try job.database.run("SELECT pg_sleep(2.1)")
    #expect(try job.batch("cancel", "job.json").status == 2)
    try job.writeJob()
    #expect(try job.start().wait().status == 0)
    #expect(
      try kinds() == ["began", "continued", "joined", "paused", "resumed"] + steered.suffix(4)
    )

    try job.writeJob(SharedJob.slowly)
    let stopped = try job.start()
    try job.wait(until: "(SELECT count(*) FROM t WHERE n > 1) >= 100")
    stopped.send(SIGTERM)
    #expect(stopped.wait().status == 3)
    try job.writeJob()
    #expect(try job.start("--fresh").wait().status == 0)
    #expect(try kinds() == ["began"])
    #expect(try kinds(1) == ["began", "setAside"])
    // The record of an earlier version has none.
    try job.database.run("DROP TABLE _batch_action")
    #expect(try kinds(1) == ["began"])
    #expect(try job.status()["state"] as? String == "completed")
  }

  @Test
  func `the time of a run is that in which some process works, through kills and pauses between`()
    throws
  {
    let job = try SharedJob(rows: 30_000, adding: SharedJob.slowly)
    var worked = Duration.zero
    let clock = ContinuousClock()
    for part in 1...3 {
      // Two at once count once.
      let start = clock.now
      let programs = try [job.start(), job.start()]
      try job.untilDone(part * 6_000)
      for program in programs {
        program.send(part == 2 ? SIGTERM : SIGKILL)
        _ = program.wait()
      }
      worked += start.duration(to: clock.now)
      try job.database.run("SELECT pg_sleep(2)")
      let status = try job.status()
      let seconds = try #require(status["elapsedSeconds"] as? Double)
      let time = worked / .seconds(1)
      #expect(
        seconds <= time + 0.1 && seconds >= time - Double(part) * 1.7,
        "\(part): \(seconds) of \(time)"
      )
      let done = (status["hosts"] as? [[String: Any]] ?? []).compactMap { $0["done"] as? Int }
      #expect(done.reduce(0, +) <= status["done"] as? Int ?? 0, "\(status)")
    }
    try job.writeJob()
    let start = clock.now
    #expect(try job.start().wait().status == 0)
    worked += start.duration(to: clock.now)
    let seconds = try #require(try job.status()["elapsedSeconds"] as? Double)
    #expect(seconds <= worked / .seconds(1) + 0.1 && seconds >= worked / .seconds(1) - 5.5)
    #expect(try job.counts() == ["1 x 30000"])
  }

  @Test func `status tells the memory, the held time and the last resumption of a run`() throws {
    let job = try SharedJob(rows: 30_000, adding: ["throttle": ["identifiersPerSecond": 500]])
    let clock = ContinuousClock()
    let first = try job.start()
    try job.untilDone(1_000)
    first.send(SIGTERM)
    let stopped = try first.wait().last
    var status = try job.status()
    #expect(status["resumedAt"] as? Int == 0)
    let peak = try #require(status["peakResidentBytes"] as? Int)
    let told = try #require(stopped["peakResidentBytes"] as? Int)
    #expect(peak > 4 << 20 && peak <= told, "\(peak) of \(told)")
    // A pace holds a run for most of the time.
    let held = try #require(status["throttledSeconds"] as? Double)
    let elapsed = try #require(status["elapsedSeconds"] as? Double)
    #expect(held > elapsed / 3 && held <= elapsed, "\(held) of \(elapsed)")

    // A pause is held time to its end, of one process or of two.
    let done = try #require(status["done"] as? Int)
    try job.writeJob(["chunk": ["size": 10]])
    let programs = try [job.start(), job.start()]
    try job.wait(until: "(SELECT count(*) FROM _batch_host) = 2")
    try job.batch("pause", "job.json")
    try job.wait(until: "(SELECT count(hold) FROM _batch_host) = 2")
    let paused = clock.now
    let before = try #require(try job.status()["throttledSeconds"] as? Double)
    try job.database.run("SELECT pg_sleep(3)")
    status = try job.status()
    let after = try #require(status["throttledSeconds"] as? Double)
    let time = paused.duration(to: clock.now) / .seconds(1)
    // Heartbeats come once a second.
    #expect(abs(after - before - time) < 1.5, "\(after - before) of \(time)")
    #expect(status["resumedAt"] as? Int == done)
    try job.batch("resume", "job.json")
    for program in programs {
      let last = try program.wait().last
      let seconds = try #require(last["throttledSeconds"] as? Double)
      #expect(seconds >= held + time - 1.5, "\(seconds)")
      #expect(last["resumedAt"] as? Int == done)
    }
    let end = try job.status()
    #expect(try #require(end["throttledSeconds"] as? Double) >= held + time - 1.5)
    #expect(try #require(end["peakResidentBytes"] as? Int) >= peak)
    #expect(try job.counts() == ["1 x 30000"])
  }

  @Test func `status distinguishes a stopped run from a killed one`() throws {
    let job = try SharedJob(rows: 20_000, adding: SharedJob.slowly)
    let stopped = try job.start()
    try job.untilDone(1)
    stopped.send(SIGTERM)
    #expect(stopped.wait().status == 3)
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
