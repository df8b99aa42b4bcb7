#if PostgreSQL
package import BatchIdentifiers

/// A process that takes part in a run: gives signs of life while it does, and hears what an operator asks for.
package final class HostPresence: Sendable {
  private struct State {
    var answer: HostHeartbeat.Answer?
    var rate: Double?
    var hold: String?
  }

  /// How long it may take until a process hears of a request.
  private static let longestInterval = Duration.seconds(2)

  private let heartbeat: HostHeartbeat
  private let name: String
  private let process: Int32
  private let interval: Duration
  private let connection: PostgresConnection
  private let state = Lock(State())

  /// A process on a machine, which gives signs of life by a connection that nobody else needs for long.
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
    // Several may be lost before the lease is.
    interval = min(Self.longestInterval, lease / 5)
    self.connection = connection
  }

  /// What the last sign of life has brought back; nil before the first.
  package var answer: HostHeartbeat.Answer? { state.withLock { $0.answer } }

  /// Says how many identifiers a second are done, and why none are, with the next sign of life.
  package func tell(rate: Double?, hold: String?) {
    state.withLock { ($0.rate, $0.hold) = (rate, hold) }
  }

  /// Enters the run; where the connection breaks, again on another one, for some time.
  package func join(within patience: Duration) async throws(BatchError) {
    try await connection.persistently(within: patience) { session throws(BatchError) in
      try join(in: session)
    }
    try? await beat()
  }

  private func join(in session: PostgresSession) throws(BatchError) {
    try heartbeat.join(name: name, process: process, in: session)
  }

  /// Gives signs of life until the task is cancelled.
  ///
  /// One that does not get through is no failure: whoever is not heard of for too long finds its spans with others.
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
      // Somebody has removed its row: it is still there.
      try join(in: session)
      return try heartbeat.beat(rate: rate, hold: hold, in: session)
    }
    if let answer { state.withLock { $0.answer = answer } }
  }

  /// Leaves the run, and gives back what the process has of it.
  package func leave() async throws(BatchError) {
    try await connection.perform { session throws(BatchError) in
      try heartbeat.leave(in: session)
    }
  }
}
#endif
