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
  package func join(
    name: String,
    process: Int32,
    in session: PostgresSession
  ) throws(BatchError) {
    try session.executeAtEase(
      """
      INSERT INTO \(tables.host) (run, host, name, process, began_at, seen_at)
      SELECT run, $2::uuid, $3, $4, clock_timestamp(), clock_timestamp()
      FROM \(tables.run) WHERE run = $1::uuid AND state = 'running'
      ON CONFLICT (run, host) DO UPDATE SET seen_at = clock_timestamp()
      """,
      .text(run),
      .text(host),
      .text(name),
      .integer(Int64(process))
    )
  }

  /// Sends a heartbeat, with the rate in identifiers per second and the reason for a hold; nil if
  /// the run, or the process's row, no longer exists.
  package func beat(
    rate: Double? = nil,
    hold: String? = nil,
    in session: PostgresSession
  ) throws(BatchError) -> Answer? {
    let answer = try session.executeAtEase(
      """
      UPDATE \(tables.host) AS h SET seen_at = clock_timestamp(), rate = $3::float8, hold = $4
      FROM \(tables.run) AS r
      WHERE h.run = $1::uuid AND h.host = $2::uuid AND r.run = h.run RETURNING r.state, r.control
      """,
      .text(run),
      .text(host),
      rate.map { .real($0) } ?? .null,
      hold.map { .text($0) } ?? .null
    )
    guard answer.count == 1, let state = TableRun.State(rawValue: answer.text(0, 0) ?? "") else {
      return nil
    }
    return Answer(state: state, control: answer.text(0, 1))
  }

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
