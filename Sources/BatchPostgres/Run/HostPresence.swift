#if PostgreSQL
package import BatchIdentifiers

/// A process's row among those that take part in a run.
package final class HostPresence: Sendable {
  /// How long a request may take to reach a process.
  private static let longestInterval = Duration.seconds(1)

  private let heartbeat: HostHeartbeat
  private let name: String
  private let process: Int32
  private let lease: Duration
  private let connection: PostgresConnection
  private let lastAnswer = Lock<HostHeartbeat.Answer?>(nil)

  /// The time between heartbeats; several may be lost before the lease expires.
  package let interval: Duration

  /// The connection must not be occupied for long by other work.
  package init(
    _ heartbeat: HostHeartbeat,
    name: String,
    process: Int32,
    lease: Duration,
    by connection: PostgresConnection
  ) {
    self.heartbeat = heartbeat
    self.name = name
    self.process = process
    self.lease = lease
    interval = min(Self.longestInterval, lease / 5)
    self.connection = connection
  }

  package var host: String { heartbeat.host }

  /// The answer to the last heartbeat; nil before the first.
  package var answer: HostHeartbeat.Answer? { lastAnswer.withLock(\.self) }

  /// Enters the run; retries a broken connection for up to `reconnectTimeout`.
  package func join(within reconnectTimeout: Duration) async throws(BatchError) {
    try await connection.persistently(within: reconnectTimeout) { session throws(BatchError) in
      try join(in: session)
    }
    await beat(.init())
  }

  private func join(in session: PostgresSession) throws(BatchError) {
    try heartbeat.join(name: name, process: process, lease: lease, in: session)
  }

  /// Sends a heartbeat.
  ///
  /// A lost heartbeat is not a failure. If the process is silent for too long, others take over its
  /// spans.
  package func beat(_ report: HostHeartbeat.Report) async {
    let answer = try? await connection.perform {
      session throws(BatchError) -> HostHeartbeat.Answer? in
      if let answer = try heartbeat.beat(report, in: session) { return answer }
      // The row was removed, but the process is alive.
      try join(in: session)
      return try heartbeat.beat(report, in: session)
    }
    if let answer { lastAnswer.withLock { $0 = answer } }
  }

  /// Leaves the run and releases the process's spans.
  ///
  /// Records `exit` on a best-effort basis, since others need the spans in any case. If releasing
  /// the spans fails, they become free when the lease expires.
  package func leave(_ exit: HostExit) async throws(BatchError) {
    try? await connection.perform { session throws(BatchError) in
      try heartbeat.enter(exit, in: session)
    }
    try await connection.perform { session throws(BatchError) in
      try heartbeat.leave(in: session)
    }
  }
}
#endif
