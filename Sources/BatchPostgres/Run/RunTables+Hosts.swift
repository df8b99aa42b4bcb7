#if PostgreSQL
package import BatchIdentifiers
import BatchPlatform

extension RunTables {
  /// The most exits of processes that a run keeps, the newest ones, since a scheduler may restart a
  /// failing run again and again.
  static let exitLimit = 100

  /// The processes of a run: first those that take part or went silent, in the order in which they
  /// joined, then those that ended their part, the newest first.
  ///
  /// Of processes that failed for the same reason on a machine, or fell silent there, only the last
  /// one is listed, with their number and the sum of what they have done. While the run is running,
  /// exits are left out if a process has joined on the machine since.
  package func hosts(
    ofRun run: String,
    in session: PostgresSession
  ) throws(BatchError) -> [HostSnapshot] {
    let times = """
      greatest(0, extract(epoch FROM clock_timestamp() - seen_at))::float8,
      to_char(seen_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), done
      """
    let present = try session.execute(
      """
      SELECT host, name, process, \(times), rate, hold, waiting,
        (SELECT count(*) FROM \(span) AS s WHERE s.run = h.run AND s.host = h.host AND NOT s.done)
      FROM \(host) AS h WHERE run = $1::uuid ORDER BY began_at, host
      """,
      .text(run)
    )
    var hosts = (0..<present.count).map { row in
      var host = HostSnapshot(present, row)
      host.rate = present.text(row, 6).flatMap(Double.init)
      host.hold = present.text(row, 7)
      host.waiting = present.text(row, 8)
      host.spanCount = Int(present.integer(row, 9) ?? 0)
      return host
    }
    let kind = "name, state, reason, CASE WHEN state IN ('finished', 'stopped') THEN host END"
    let gone = try session.execute(
      """
      SELECT host, name, process, \(times), state, reason, processes FROM (
        SELECT DISTINCT ON (\(kind)) host, name, process, exited_at AS seen_at, state, reason,
          sum(done) OVER (PARTITION BY \(kind))::bigint AS done, count(*) OVER (PARTITION BY \(kind)) AS processes
        FROM \(exit) AS e
        WHERE run = $1::uuid AND NOT EXISTS (SELECT FROM \(host) AS h WHERE h.run = e.run AND h.host = e.host)
          AND NOT EXISTS (
            SELECT FROM \(host) AS h JOIN \(self.run) AS r USING (run)
            WHERE h.run = e.run AND h.name = e.name AND h.began_at > e.exited_at AND r.state = 'running')
        ORDER BY \(kind), exited_at DESC) AS e
      ORDER BY seen_at DESC, host
      """,
      .text(run)
    )
    for row in 0..<gone.count {
      var host = HostSnapshot(gone, row)
      host.exit = HostExit.State(rawValue: gone.text(row, 6) ?? "").map { state in
        HostExit(state, because: gone.text(row, 7))
      }
      host.processCount = Int(gone.integer(row, 8) ?? 1)
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
    let entry = PostgresStatement(
      sql: """
        INSERT INTO \(self.exit) (run, host, name, process, exited_at, state, reason, done)
        SELECT run, host, name, process, clock_timestamp(), $3, left($4, 4000), done FROM \(self.host)
        WHERE run = $1::uuid AND host = $2::uuid
        ON CONFLICT (run, host) DO UPDATE SET exited_at = excluded.exited_at, state = excluded.state,
          reason = excluded.reason, done = excluded.done
        """,
      values: [
        .text(run), .text(host), .text(exit.state.rawValue),
        exit.reason.map { .text($0) } ?? .null,
      ]
    )
    try session.executeAtEase([entry, exitsBeyondLimit(ofRun: run)])
  }

  /// The statement that removes the oldest exits of a run.
  func exitsBeyondLimit(ofRun run: String) -> PostgresStatement {
    PostgresStatement(
      sql: """
        DELETE FROM \(exit) WHERE run = $1::uuid AND host IN (
          SELECT host FROM \(exit) WHERE run = $1::uuid ORDER BY exited_at DESC, host OFFSET $2)
        """,
      values: [.text(run), .integer(Int64(Self.exitLimit))]
    )
  }
}

package struct HostExit: Sendable, Hashable {
  package enum State: String, Sendable {
    /// All identifiers of the run are done.
    case finished
    case stopped, failed
    /// It sent no more heartbeats.
    case silent
  }

  package let state: State
  /// The reason, on one line; nil if there is none, as for a process that was asked to stop.
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
  /// The number of identifiers that it had done by then.
  package let done: Int
  package fileprivate(set) var rate: Double?
  package fileprivate(set) var hold: String?
  package fileprivate(set) var waiting: String?
  package fileprivate(set) var spanCount = 0
  /// The number of processes that it stands for.
  package fileprivate(set) var processCount = 1
  /// How it ended its part; nil if it takes part, or went silent.
  package fileprivate(set) var exit: HostExit?

  package func isAlive(within lease: Duration) -> Bool {
    exit == nil && silence < lease && !isGone
  }

  /// Whether it was a process of this machine that does not exist any more.
  ///
  /// It must have missed heartbeats too: containers may share the name of a machine, but do not see
  /// each other's processes.
  package var isGone: Bool { isMissing && silence > .milliseconds(2_500) }

  /// Whether this machine has no such process.
  package var isMissing: Bool {
    exit == nil && name == ProcessInfo.processInfo.hostName && kill(process, 0) != 0
      && errno == ESRCH
  }

  /// Whether it has sent one of its last heartbeats; a process that misses some may be waiting.
  package func isHeard(within lease: Duration) -> Bool { isAlive(within: min(lease, .seconds(5))) }

  fileprivate init(_ rows: PostgresResult, _ row: Int) {
    host = rows.text(row, 0) ?? ""
    name = rows.text(row, 1) ?? ""
    process = Int32(truncatingIfNeeded: rows.integer(row, 2) ?? 0)
    silence = .seconds(rows.text(row, 3).flatMap(Double.init) ?? 0)
    seenAt = rows.text(row, 4) ?? ""
    done = Int(rows.integer(row, 5) ?? 0)
  }
}
#endif
