#if PostgreSQL
package import BatchIdentifiers

/// The signs of life that a process gives while it takes part in a run: its row of `_batch_host`.
///
/// One row for all spans that it has. Only the server's clock counts. A sign of life brings back what an operator asks
/// for.
package struct HostHeartbeat: Sendable {
  package let tables: RunTables
  package let run: String
  /// The UUID of the process, which no other has.
  package let host: String

  package init(_ tables: RunTables, run: String, host: String) {
    self.tables = tables
    self.run = run
    self.host = host
  }

  /// What a sign of life brings back.
  package struct Answer: Sendable, Hashable {
    package let state: SharedRun.State
    /// What an operator asks for, in the form of whoever has put it there.
    package let control: String?
  }

  /// Enters the process, if the run goes on.
  ///
  /// - Parameters:
  ///   - name: The name of the machine.
  ///   - process: The number of the process there.
  ///   - session: The session.
  /// - Throws: What the server says.
  package func join(
    name: String,
    process: Int32,
    in session: PostgresSession
  ) throws(BatchError) {
    try session.execute(
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

  /// Gives a sign of life.
  ///
  /// - Parameters:
  ///   - rate: How many identifiers a second the process does.
  ///   - hold: Why it does none, in words; nil if it does.
  ///   - session: The session.
  /// - Returns: What there is to know; nil if the run, or the process in it, is not there any more.
  /// - Throws: What the server says.
  package func beat(
    rate: Double? = nil,
    hold: String? = nil,
    in session: PostgresSession
  ) throws(BatchError) -> Answer? {
    let answer = try session.execute(
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
    guard answer.count == 1, let state = SharedRun.State(rawValue: answer.text(0, 0) ?? "") else {
      return nil
    }
    return Answer(state: state, control: answer.text(0, 1))
  }

  /// Takes the process out of the run, and gives back what it has.
  package func leave(in session: PostgresSession) throws(BatchError) {
    try session.transaction(.bookkeeping) { () throws(BatchError) in
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
