#if PostgreSQL
import BatchRuns
package import BatchIdentifiers

extension PostgresConnection: ChunkWorker {}

extension PostgresConnection {
  private static let rests = (first: Duration.milliseconds(50), longest: Duration.seconds(1))

  /// Runs `body` on the connection's thread; if the connection breaks, reconnects and retries for a
  /// limited time.
  ///
  /// A server takes seconds to restart. `body` must be safe to repeat, or ask the database what an
  /// earlier attempt did.
  ///
  /// - Throws: The error of `body`; `connectionLost` if the time is over or the task was cancelled.
  package nonisolated func persistently<Result: Sendable>(
    within reconnectTimeout: Duration,
    _ body: @Sendable (PostgresSession) throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    try await Self.persistently(within: reconnectTimeout) { () async throws(BatchError) in
      try await perform(body)
    }
  }

  /// Repeats an operation whose connection breaks, until a time limit that counts from the first
  /// break.
  package static nonisolated func persistently<Result>(
    within reconnectTimeout: Duration,
    _ body: () async throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    var end: ContinuousClock.Instant?
    var rest = Self.rests.first
    while true {
      do {
        return try await body()
      } catch {
        let last = end ?? .now + reconnectTimeout
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
