#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// `batch retry-failed` on PostgreSQL, as a user runs it after correcting the cause.
@Suite(.timeLimit(.minutes(5))) struct SharedRetryTests {
  private static func poison(_ job: SharedJob, _ identifiers: String) throws {
    try job.database.run(
      """
      ALTER TABLE t DROP CONSTRAINT IF EXISTS poison;
      ALTER TABLE t ADD CONSTRAINT poison CHECK (id NOT IN (\(identifiers)) OR n < 1) NOT VALID
      """
    )
  }

  private static func failed(_ job: SharedJob) throws -> String {
    try job.batch("ids", "job.json", "--outcome", "failed").output.replacing("\n", with: " ")
  }

  private static func attempts(_ job: SharedJob) throws -> String? {
    try job.database.text("SELECT string_agg(attempt::text, ' ') FROM _batch_failure")
  }

  @Test func `a retry removes its successes from the failed rows and keeps other outcomes`() throws
  {
    let job = try SharedJob(rows: 25_000, "UPDATE t SET n = 1 WHERE id % 10 = 3")
    try Self.poison(job, "1, 2, 77, 9999, 10001, 24999")
    try job.writeJob([
      "action": ["type": "update", "set": ["n": "1"], "unchanged": "skip"], "skip": ["limit": 10],
    ])
    #expect(try job.batch("retry-failed", "job.json").status == 2)
    let first = try job.start().wait()
    #expect(first.status == 4, "\(first.errors)")
    #expect(try Self.failed(job) == "1 2 77 9999 10001 24999 ")
    let unchanged = try job.batch("ids", "job.json", "--outcome", "unchanged").output
    #expect(unchanged.split(separator: "\n").count == 2_500)

    try Self.poison(job, "77, 24999")
    let second = try job.batch("retry-failed", "job.json", "--json")
    #expect(second.status == 4, "\(second.errors)")
    let events = try JSONOutput.lines(second.output)
    #expect(events.first?["event"] as? String == "retryingFailures")
    let last = try #require(events.last)
    #expect(try last["run"] as? String == first.last["run"] as? String)
    #expect(last["done"] as? Int == 25_000)
    let outcomes = try #require(last["outcomes"] as? [String: Int])
    #expect(
      outcomes["succeeded"] == 22_498 && outcomes["unchanged"] == 2_500 && outcomes["failed"] == 2
    )
    #expect(try Self.failed(job) == "77 24999 ")
    #expect(try Self.attempts(job) == "2 2")
    let reasons = try #require(last["reasons"] as? [[String: Any]])
    #expect(reasons.map { $0["count"] as? Int } == [2] && reasons[0]["firstKey"] as? String == "77")
    let attempts = try #require(last["failedAttempts"] as? [[String: Any]])
    #expect(attempts.map { $0["failed"] as? Int } == [6])
    let earlier = try #require(attempts[0]["reasons"] as? [[String: Any]])
    #expect(earlier.map { $0["count"] as? Int } == [6] && earlier[0]["firstKey"] as? String == "1")
    let history = try job.batch("history", "job.json").output
    #expect(history.contains(", 6 failed before a retry"), "\(history)")
    #expect(try job.batch("ids", "job.json", "--outcome", "unchanged").output == unchanged)

    #expect(try job.batch("retry-failed", "job.json").status == 4)
    #expect(try Self.attempts(job) == "3 3")
    try job.database.run("ALTER TABLE t DROP CONSTRAINT poison")
    let fourth = try job.batch("retry-failed", "job.json")
    #expect(fourth.status == 0, "\(fourth.errors)")
    #expect(try Self.failed(job) == "")
    #expect(try job.counts() == ["1 x 25000"])
    let fifth = try job.batch("retry-failed", "job.json")
    #expect(fifth.status == 0)
    #expect(fifth.errors.contains("nothing has failed"), "\(fifth.errors)")
    #expect(try job.database.text("SELECT state FROM _batch_run") == "acknowledged")
  }

  @Test func `the retry of a run that was set aside is refused with the reason`() throws {
    let job = try SharedJob(rows: 1_000)
    try Self.poison(job, "5")
    try job.writeJob(["skip": ["limit": 10]])
    #expect(try job.start().wait().status == 4)
    // As an operator who wants it to be left alone may do.
    try job.database.run("UPDATE _batch_run SET state = 'setAside'")
    let result = try job.batch("retry-failed", "job.json")
    #expect(result.status == 2, "\(result.errors)")
    #expect(result.errors.contains("was set aside"), "\(result.errors)")
    #expect(try job.counts() == ["0 x 1", "1 x 999"])
  }

  @Test func `a retry of an unfinished run repeats its failures, and does the rest`() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("seed \(seed)")
    var random = SeededGenerator(seed: seed)
    for _ in 0..<6 {
      let count = Int.random(in: 50...4_000, using: &random)
      let job = try SharedJob(rows: count)
      let bad = (1...count).shuffled(using: &random).prefix(Int.random(in: 4...9, using: &random))
      try Self.poison(job, bad.map(String.init).joined(separator: ", "))
      try job.writeJob([
        "action": ["type": "update", "set": ["n": "n + 1"]],
        "skip": ["limit": 1], "workers": Int.random(in: 1...3, using: &random),
        "chunk": ["size": Int.random(in: 1...300, using: &random)],
      ])
      let run = try job.start().wait()
      #expect(run.status == 1, "\(run.errors)")
      let failed = try Self.failed(job).split(separator: " ").count
      try job.database.run("ALTER TABLE t DROP CONSTRAINT poison")
      let retry = try job.batch("retry-failed", "job.json", "--json")
      guard failed > 0 else {
        // All that failed was in one chunk, which is refused as a whole.
        #expect(retry.status == 2, "\(retry.errors)")
        #expect(try job.batch("run", "job.json").status == 0)
        #expect(try job.counts() == ["1 x \(count)"])
        continue
      }
      #expect(retry.status == 0, "\(retry.errors)")
      let events = try JSONOutput.lines(retry.output)
      let first = try #require(events.first)
      #expect(first["event"] as? String == "retryingFailures")
      #expect((first["outcomes"] as? [String: Int])?["failed"] == failed)
      #expect(events.last?["done"] as? Int == count)
      #expect(try job.counts() == ["1 x \(count)"])
    }
  }

  @Test func `a run on which a process works, or in which nothing has failed, is not retried`()
    throws
  {
    let job = try SharedJob(rows: 1_000)
    try job.writeJob(["throttle": ["identifiersPerSecond": 50], "chunk": ["size": 10]])
    let live = try job.start()
    try job.untilDone(10)
    let early = try job.batch("retry-failed", "job.json")
    #expect(early.status == 2, "\(early.errors)")
    #expect(early.errors.contains("batch cancel"), "\(early.errors)")
    live.send(SIGTERM)
    #expect(live.wait().status == 3)
    let vain = try job.batch("retry-failed", "job.json")
    #expect(vain.status == 2, "\(vain.errors)")
    #expect(vain.errors.contains("resume it first: batch run"), "\(vain.errors)")
    try job.writeJob([:])
    #expect(try job.batch("run", "job.json").status == 0)
    #expect(try job.counts() == ["1 x 1000"])
  }

  @Test func `two hosts that retry simultaneously both take part`() throws {
    let job = try SharedJob(rows: 1_000)
    try Self.poison(job, "5")
    try job.writeJob(["skip": ["limit": 10]])
    #expect(try job.start().wait().status == 4)
    try job.database.run("ALTER TABLE t DROP CONSTRAINT poison")
    let gate = try job.database.session()
    try gate.run("BEGIN; LOCK TABLE _batch_failure")
    let programs = try (0..<2).map { _ in
      try BatchProgram(["retry-failed", "job.json", "--json"], in: job.directory)
    }
    // One is about to reopen the run, and the other waits for it.
    try job.database.run(
      """
      DO $$ BEGIN
        FOR attempt IN 1..12000 LOOP
          IF (SELECT count(*) FROM pg_locks WHERE NOT granted) >= 2 THEN RETURN; END IF;
          PERFORM pg_sleep(0.005);
        END LOOP;
        RAISE EXCEPTION 'nobody waits';
      END $$
      """
    )
    try gate.run("COMMIT")
    for program in programs {
      let result = program.wait()
      #expect(result.status == 0, "\(result.errors)")
      #expect(!result.errors.contains("nothing has failed"), "\(result.errors)")
      #expect(try result.last["state"] as? String == "completed")
    }
    #expect(try job.counts() == ["1 x 1000"])
  }

  @Test func `a killed retry continues and changes each row once`() throws {
    let job = try SharedJob(rows: 30_000)
    try job.database.run(
      """
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.id % 100 = 0 THEN RAISE check_violation; END IF; RETURN NEW; END $$;
      CREATE TRIGGER refuse BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION refuse();
      """
    )
    try job.writeJob(["skip": ["limit": 1_000], "chunk": ["size": 1_000]])
    #expect(try job.start().wait().status == 4)
    #expect(try job.counts() == ["0 x 300", "1 x 29700"])
    try job.database.run("DROP TRIGGER refuse ON t")
    // Another job is refused, and changes nothing.
    try job.writeJob(["action": ["type": "update", "set": ["n": "n + 2"]]])
    let other = try job.batch("retry-failed", "job.json")
    #expect(other.status == 2)
    #expect(other.errors.contains("the job has changed"), "\(other.errors)")
    let slowly: [String: Any] = [
      "skip": ["limit": 1_000], "throttle": ["identifiersPerSecond": 100],
    ]
    try job.writeJob(slowly)
    let first = try BatchProgram(["retry-failed", "job.json", "--json"], in: job.directory)
    #expect(try first.event("retryingFailures") != nil)
    let second = try job.start("--join-only")
    #expect(try second.event("joined") != nil)
    try job.untilDone(29_750)
    first.send(SIGKILL)
    #expect(first.wait().status == -SIGKILL)
    second.send(SIGKILL)
    #expect(second.wait().status == -SIGKILL)
    try job.writeJob(["skip": ["limit": 1_000]])
    let third = try job.batch("retry-failed", "job.json")
    #expect(third.status == 0, "\(third.errors)")
    #expect(try job.counts() == ["1 x 30000"])
    #expect(try job.batch("ids", "job.json", "--outcome", "failed", "--count").output == "0\n")
  }
}
#endif
