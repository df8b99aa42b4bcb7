#if PostgreSQL
package import BatchIdentifiers

extension RunTables {
  /// The most exits of processes that a run keeps, the newest ones, since a scheduler may restart a
  /// failing run again and again.
  static let exitLimit = 100

  /// The processes of a run: first those that take part or went silent, in the order in which they
  /// joined, then those that stopped or failed, the newest first.
  ///
  /// Of equal exits on a machine, includes only the newest, and none if a process has joined there
  /// since.
  package func hosts(
    ofRun run: String,
    in session: PostgresSession
  ) throws(BatchError) -> [HostSnapshot] {
    let times = """
      greatest(0, extract(epoch FROM clock_timestamp() - seen_at))::float8,
      to_char(seen_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
      extract(epoch FROM seen_at - (SELECT started_at FROM \(self.run) WHERE run = $1::uuid))::float8
      """
    let present = try session.execute(
      """
      SELECT host, name, process, \(times), rate, hold,
        (SELECT count(*) FROM \(span) AS s WHERE s.run = h.run AND s.host = h.host AND NOT s.done)
      FROM \(host) AS h WHERE run = $1::uuid ORDER BY began_at, host
      """,
      .text(run)
    )
    var hosts = (0..<present.count).map { row in
      var host = HostSnapshot(present, row)
      host.rate = present.text(row, 6).flatMap(Double.init)
      host.hold = present.text(row, 7)
      host.spanCount = Int(present.integer(row, 8) ?? 0)
      return host
    }
    let gone = try session.execute(
      """
      SELECT host, name, process, \(times), state, reason FROM (
        SELECT DISTINCT ON (name, state, reason) *, exited_at AS seen_at FROM \(exit) AS e
        WHERE run = $1::uuid AND NOT EXISTS (
          SELECT FROM \(host) AS h WHERE h.run = e.run AND h.name = e.name AND h.began_at > e.exited_at)
        ORDER BY name, state, reason, exited_at DESC) AS e
      ORDER BY seen_at DESC, host
      """,
      .text(run)
    )
    for row in 0..<gone.count {
      var host = HostSnapshot(gone, row)
      host.exit = HostExit.State(rawValue: gone.text(row, 6) ?? "").map { state in
        HostExit(state, because: gone.text(row, 7))
      }
      hosts.append(host)
    }
    return hosts
  }

  /// Records how a process ends its part of a run; does nothing if the process's row was removed.
  func enter(
    _ exit: HostExit,
    of host: String,
    inRun run: String,
    in session: PostgresSession
  ) throws(BatchError) {
    try session.executeAtEase(
      """
      WITH older AS (
        DELETE FROM \(self.exit) WHERE run = $1::uuid AND host IN (
          SELECT host FROM \(self.exit) WHERE run = $1::uuid ORDER BY exited_at DESC OFFSET $5))
      INSERT INTO \(self.exit) (run, host, name, process, exited_at, state, reason)
      SELECT run, host, name, process, clock_timestamp(), $3, left($4, 4000) FROM \(self.host)
      WHERE run = $1::uuid AND host = $2::uuid
      ON CONFLICT DO NOTHING
      """,
      .text(run),
      .text(host),
      .text(exit.state.rawValue),
      exit.reason.map { .text($0) } ?? .null,
      .integer(Int64(Self.exitLimit - 1))
    )
  }
}

package struct HostExit: Sendable, Hashable {
  package enum State: String, Sendable {
    case stopped, failed
  }

  package let state: State
  /// The reason, on one line; nil for a process that was asked to stop.
  package let reason: String?

  package init(_ state: State, because reason: String?) {
    self.state = state
    self.reason = reason
  }
}

/// The state of a process that takes part in a run, or did.
package struct HostSnapshot: Sendable, Hashable {
  package let host: String
  package let name: String
  package let process: Int32
  /// The time since its last heartbeat or its exit, by the server's clock.
  package let silence: Duration
  /// The time of its last heartbeat or its exit: ISO 8601 in UTC.
  package let seenAt: String
  /// The seconds from the beginning of the run until then.
  package let seenSeconds: Double
  package fileprivate(set) var rate: Double?
  package fileprivate(set) var hold: String?
  package fileprivate(set) var spanCount = 0
  /// How it ended its part; nil if it takes part, or went silent.
  package fileprivate(set) var exit: HostExit?

  package func isAlive(within lease: Duration) -> Bool { exit == nil && silence < lease }

  fileprivate init(_ rows: PostgresResult, _ row: Int) {
    host = rows.text(row, 0) ?? ""
    name = rows.text(row, 1) ?? ""
    process = Int32(truncatingIfNeeded: rows.integer(row, 2) ?? 0)
    silence = .seconds(rows.text(row, 3).flatMap(Double.init) ?? 0)
    seenAt = rows.text(row, 4) ?? ""
    seenSeconds = rows.text(row, 5).flatMap(Double.init) ?? 0
  }
}
#endif
