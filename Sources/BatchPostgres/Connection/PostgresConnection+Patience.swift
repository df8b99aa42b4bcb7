#if PostgreSQL
import BatchEngine
package import BatchIdentifiers

extension PostgresConnection: ChunkWorker {}

extension PostgresConnection {
  /// How long it takes until a connection is tried again that could not be made.
  private static let rests = (first: Duration.milliseconds(50), longest: Duration.seconds(2))

  /// Runs `body` on the context's thread; where the session breaks, again with another one, for some time.
  ///
  /// A server that is started again takes some seconds. For what asks the database what has become of an earlier try, or may be done twice.
  ///
  /// - Throws: What `body` throws; of code `connectionLost` if the time is over, or the task was cancelled.
  package nonisolated func persistently<Result: Sendable>(
    within patience: Duration,
    _ body: @Sendable (PostgresSession) throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    try await Self.persistently(within: patience) { () async throws(BatchError) in
      try await perform(body)
    }
  }

  /// Does something again that fails because a connection breaks, until so much time has passed since the first break.
  ///
  /// - Throws: What `body` throws; of code `connectionLost` if the time is over, or the task was cancelled.
  package static nonisolated func persistently<Result>(
    within patience: Duration,
    _ body: () async throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    var end: ContinuousClock.Instant?
    var rest = Self.rests.first
    while true {
      do {
        return try await body()
      } catch {
        let last = end ?? .now + patience
        end = last
        guard error.code == .connectionLost, ContinuousClock.now + rest < last, !Task.isCancelled
        else { throw error }
        try? await Task.sleep(for: rest)
        rest = min(rest * 2, Self.rests.longest)
      }
    }
  }
}
#endif
