#if PostgreSQL
package import BatchIdentifiers

package final class HostPresence: Sendable {
  private struct State {
    var answer: HostHeartbeat.Answer?
    var rate: Double?
    var hold: String?
  }

  /// How long a request may take to reach a process.
  private static let longestInterval = Duration.seconds(2)

  private let heartbeat: HostHeartbeat
  private let name: String
  private let process: Int32
  private let interval: Duration
  private let connection: PostgresConnection
  private let state = Lock(State())

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
    // Several heartbeats may be lost before the lease expires.
    interval = min(Self.longestInterval, lease / 5)
    self.connection = connection
  }

  /// The answer to the last heartbeat; nil before the first.
  package var answer: HostHeartbeat.Answer? { state.withLock { $0.answer } }

  /// Sets what the next heartbeat sends: the rate in identifiers per second, or the reason for a
  /// hold.
  package func tell(rate: Double?, hold: String?) {
    state.withLock { ($0.rate, $0.hold) = (rate, hold) }
  }

  /// Enters the run; retries a broken connection for up to `reconnectTimeout`.
  package func join(within reconnectTimeout: Duration) async throws(BatchError) {
    try await connection.persistently(within: reconnectTimeout) { session throws(BatchError) in
      try join(in: session)
    }
    try? await beat()
  }

  private func join(in session: PostgresSession) throws(BatchError) {
    try heartbeat.join(name: name, process: process, in: session)
  }

  /// Sends heartbeats until the task is cancelled.
  ///
  /// A lost heartbeat is not a failure. If the process is silent for too long, others take over its
  /// spans.
  package func stay() async {
    while !Task.isCancelled {
      try? await Task.sleep(for: interval)
      if Task.isCancelled { return }
      try? await beat()
    }
  }

  private func beat() async throws(BatchError) {
    let (rate, hold) = state.withLock { ($0.rate, $0.hold) }
    let answer = try await connection.perform {
      session throws(BatchError) -> HostHeartbeat.Answer? in
      if let answer = try heartbeat.beat(rate: rate, hold: hold, in: session) { return answer }
      // The row was removed, but the process is alive.
      try join(in: session)
      return try heartbeat.beat(rate: rate, hold: hold, in: session)
    }
    if let answer { state.withLock { $0.answer = answer } }
  }

  /// Leaves the run and releases the process's spans.
  ///
  /// Records `exit` on a best-effort basis, since others need the spans in any case; nil if the run
  /// is finished. If releasing the spans fails, they become free when the lease expires.
  package func leave(_ exit: HostExit?) async throws(BatchError) {
    if let exit {
      try? await connection.perform { session throws(BatchError) in
        try heartbeat.enter(exit, in: session)
      }
    }
    try await connection.perform { session throws(BatchError) in
      try heartbeat.leave(in: session)
    }
  }
}
#endif
