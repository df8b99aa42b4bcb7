#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// What happens to a run whose connections break while it begins.
@Suite(.timeLimit(.minutes(5))) struct SharedRunBeginningTests {
  /// A condition that waits for a lock, so that a selection takes as long as a test needs.
  private static let gate = """
    CREATE FUNCTION wait() RETURNS boolean LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_advisory_xact_lock_shared(5); RETURN true; END $$;
    CREATE VIEW gate AS SELECT wait() AS is_open;
    """
  private static let condition = "EXISTS (SELECT FROM gate WHERE is_open)"

  private func job(pooled: Bool) throws -> SharedJob {
    let job = try SharedJob(rows: 20_000, Self.gate)
    let cluster = job.database.cluster
    let url = cluster.url(
      database: job.database.name,
      port: pooled ? cluster.bouncerPort : cluster.port
    )
    try job.writeJob([
      "database": ["url": url, "lease": "10s"],
      "source": ["entity": "t", "where": Self.condition],
      "throttle": ["identifiersPerSecond": 5_000],
    ])
    return job
  }

  /// Waits until a selection waits for the lock, in a process other than `besides`.
  ///
  /// - Returns: The ID of the server's process.
  private func selection(of job: SharedJob, besides: String = "0") async throws -> String {
    let query = """
      SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'
        AND query LIKE 'COPY%' AND pid <> \(besides)
      """
    try await job.database.wait(until: query)
    return try job.database.text(query) ?? ""
  }

  @Test(arguments: [false, true])
  func `a selection whose connections the server ends is repeated`(pooled: Bool) async throws {
    let job = try job(pooled: pooled)
    let gate = try job.database.session()
    try gate.execute("SELECT pg_advisory_lock(5)")
    let process = try job.start()
    let first = try await selection(of: job)
    // The selecting session; the one that holds the job's lock; both.
    for condition in ["query LIKE 'COPY%'", "query NOT LIKE 'COPY%'", "true"] {
      try job.database.run(
        """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid NOT IN (pg_backend_pid(), \(gate.backend()))
          AND \(condition)
        """
      )
    }
    _ = try await selection(of: job, besides: first)
    try gate.execute("SELECT pg_advisory_unlock(5)")
    let result = process.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.counts() == ["1 x 20000"])
    #expect(try job.database.text("SELECT count(*) FROM _batch_run") == "1")
  }

  @Test(arguments: [false, true])
  func `a run begins although connections break repeatedly`(
    pooled: Bool
  ) async throws {
    let job = try job(pooled: pooled)
    // Its selection waits, so that it is not over before it is seen.
    let gate = try job.database.session()
    try gate.execute("SELECT pg_advisory_lock(5)")
    let process = try job.start()
    // Until the first connection exists: a process that cannot connect at all fails at once.
    try await job.database.wait(
      until: """
        SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
          AND query <> '' AND application_name NOT LIKE 'test%'
        """
    )
    try job.database.run(
      """
      DO $$ BEGIN
        FOR attempt IN 1..50 LOOP
          PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5
            AND (pid <> \(gate.backend()) OR attempt > 25);
          PERFORM pg_stat_clear_snapshot();
          PERFORM pg_sleep(0.02);
        END LOOP;
      END $$
      """
    )
    let result = process.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.counts() == ["1 x 20000"])
    #expect(try job.database.text("SELECT count(*) FROM _batch_run") == "1")
  }

  @Test func `a process suspended during its selection prevents no other from beginning`()
    async throws
  {
    let job = try job(pooled: false)
    try job.writeJob([
      "database": ["url": job.url(), "lease": "2s"],
      "source": ["entity": "t", "where": Self.condition],
    ])
    let gate = try job.database.session()
    try gate.execute("SELECT pg_advisory_lock(5)")
    let first = try job.start("--run-id", "one")
    _ = try await selection(of: job)
    first.send(SIGSTOP)
    try gate.execute("SELECT pg_advisory_unlock(5)")
    let second = try job.start("--run-id", "one").wait()
    #expect(second.status == 0, "\(second.errors)")
    first.send(SIGCONT)
    let result = first.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.counts() == ["1 x 20000"])
    #expect(try job.database.text("SELECT count(*) FROM _batch_run") == "1")
  }
}

extension PostgresSession {
  /// The ID of the server's process.
  fileprivate func backend() throws -> String { try text("SELECT pg_backend_pid()") ?? "" }
}
#endif
