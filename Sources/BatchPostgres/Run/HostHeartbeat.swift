#if PostgreSQL
package import BatchIdentifiers

/// The heartbeat of a process that takes part in a run: its row of `_batch_host`.
///
/// A heartbeat need not be durable: one that a crash undoes is like one that was never sent. So
/// heartbeats do not wait for a standby, and the process stays in the run while its commits do.
///
/// One row covers all spans of the process. Only the server's clock counts. The answer to a
/// heartbeat contains the operator's request.
package struct HostHeartbeat: Sendable {
  package let tables: RunTables
  package let run: String
  package let host: String

  package init(_ tables: RunTables, run: String, host: String) {
    self.tables = tables
    self.run = run
    self.host = host
  }

  package struct Answer: Sendable, Hashable {
    package let state: TableRun.State
    /// The operator's request, in the requester's form.
    package let control: String?

    /// The request that a process obeys; if a process that does not know of a pause ends the run,
    /// the pause could never be lifted, so requests count only while the run is running.
    package var request: String? { state == .running ? control : nil }
  }

  /// Enters the process in the run, if the run is unfinished.
  ///
  /// The rows of processes on the same machine that fell silent, or do not exist any more, become
  /// exits. So a scheduler that restarts a killed process does not add a row each time, and the new
  /// process does not wait for the lease of the killed one.
  package func join(
    name: String,
    process: Int32,
    lease: Duration = .seconds(60),
    in session: PostgresSession
  ) throws(BatchError) {
    let joined = PostgresStatement(
      sql: """
        INSERT INTO \(tables.host) (run, host, name, process, began_at, seen_at, counted_at)
        SELECT run, $2::uuid, $3, $4, clock_timestamp(), clock_timestamp(), clock_timestamp()
        FROM \(tables.run) WHERE run = $1::uuid AND state = 'running'
        ON CONFLICT (run, host) DO UPDATE SET seen_at = clock_timestamp()
        """,
      values: [.text(run), .text(host), .text(name), .integer(Int64(process))]
    )
    let gone = try tables.hosts(ofRun: run, in: session).filter(\.isGone).map(\.host)
    let silent = PostgresStatement(
      sql: """
        WITH silent AS (
          DELETE FROM \(tables.host) WHERE run = $1::uuid AND name = $2 AND host <> $3::uuid
            AND (clock_timestamp() - seen_at > $4 * interval '1 millisecond' OR host::text = ANY (string_to_array($5, ' ')))
          RETURNING *)
        INSERT INTO \(tables.exit) (run, host, name, process, exited_at, state, reason, done)
        SELECT run, host, name, process, seen_at, 'silent', NULL, done FROM silent ON CONFLICT DO NOTHING
        """,
      values: [
        .text(run), .text(name), .text(host), .integer(Int64(lease.milliseconds)),
        .text(gone.joined(separator: " ")),
      ]
    )
    try session.executeAtEase([joined, silent, tables.exitsBeyondLimit(ofRun: run)])
  }

  /// What a heartbeat tells the others.
  package struct Report: Sendable {
    /// In identifiers per second.
    package var rate: Double?
    /// Why the process is held.
    package var hold: String?
    /// What the process waits for.
    package var waiting: String?
    /// How long the process has been held, also by a pace.
    package var heldSeconds = 0.0
    /// The peak resident memory of the process.
    package var peakBytes = 0
    /// The number of identifiers that the process has done.
    package var done = 0

    package init() {}
  }

  /// Sends a heartbeat; nil if the run, or the process's row, no longer exists.
  ///
  /// The run's elapsed time is the time in which any of its processes was alive: each heartbeat
  /// adds the time since the process's last one that no other has added. Of that time, as large a
  /// part counts as held as the process was held since its last one. A heartbeat never waits for the
  /// run's row; what it cannot add now, the next one adds.
  package func beat(
    _ report: Report = Report(),
    in session: PostgresSession
  ) throws(BatchError) -> Answer? {
    let answer = try session.executeAtEase(
      """
      WITH counted AS (
        UPDATE \(tables.run) AS r SET counted_at = greatest(r.counted_at, clock_timestamp()),
          elapsed = r.elapsed + \(Self.uncounted),
          held = r.held + \(Self.uncounted) * least(1, greatest(0, $7::float8 - h.held) / greatest(0.001,
            extract(epoch FROM clock_timestamp() - h.counted_at)::float8)),
          peak_bytes = greatest(r.peak_bytes, $8)
        FROM \(tables.host) AS h, (
          SELECT run FROM \(tables.run) WHERE run = $1::uuid AND state = 'running'
          FOR NO KEY UPDATE SKIP LOCKED) AS free
        WHERE r.run = free.run AND h.run = r.run AND h.host = $2::uuid RETURNING r.run)
      UPDATE \(tables.host) AS h SET seen_at = clock_timestamp(), rate = $3::float8, hold = $4, done = $5,
        waiting = $6,
        counted_at = CASE WHEN EXISTS (SELECT FROM counted) THEN clock_timestamp() ELSE h.counted_at END,
        held = CASE WHEN EXISTS (SELECT FROM counted) THEN $7 ELSE h.held END
      FROM \(tables.run) AS r
      WHERE h.run = $1::uuid AND h.host = $2::uuid AND r.run = h.run RETURNING r.state, r.control
      """,
      .text(run),
      .text(host),
      report.rate.map { .real($0) } ?? .null,
      report.hold.map { .text($0) } ?? .null,
      .integer(Int64(report.done)),
      report.waiting.map { .text($0) } ?? .null,
      .real(report.heldSeconds),
      .integer(Int64(report.peakBytes))
    )
    guard answer.count == 1, let state = TableRun.State(rawValue: answer.text(0, 0) ?? "") else {
      return nil
    }
    return Answer(state: state, control: answer.text(0, 1))
  }

  /// The seconds of work of the process `h` that the run `r` does not count yet.
  static let uncounted =
    "greatest(0, extract(epoch FROM clock_timestamp() - greatest(r.counted_at, h.counted_at)))::float8"

  /// Records how the process ends its part of the run; must be called before the process leaves.
  func enter(_ exit: HostExit, in session: PostgresSession) throws(BatchError) {
    try tables.enter(exit, of: host, inRun: run, in: session)
  }

  package func leave(in session: PostgresSession) throws(BatchError) {
    try session.transaction(.bookkeeping) { () throws(BatchError) in
      try session.execute("SELECT pg_catalog.set_config('synchronous_commit', 'off', true)")
      try session.execute(
        """
        UPDATE \(tables.span) SET host = NULL, token = token + 1
        WHERE run = $1::uuid AND host = $2::uuid AND NOT done
        """,
        .text(run),
        .text(host)
      )
      try session.execute(
        "DELETE FROM \(tables.host) WHERE run = $1::uuid AND host = $2::uuid",
        .text(run),
        .text(host)
      )
    }
  }
}
#endif
