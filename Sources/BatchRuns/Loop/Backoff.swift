package import BatchIdentifiers

/// The delay before a chunk is retried: doubles up to a maximum, less a random part, so that chunks
/// waiting for the same lock do not all return at once.
package struct Backoff {
  /// How often a chunk, or a step without chunks, is retried.
  package let limit: Int
  private let first: Duration
  private let maximum: Duration

  /// Makes the delays of a policy.
  package init(_ retry: RunPolicy.Retry) {
    limit = retry.limit
    first = retry.backoff
    maximum = retry.maximumBackoff
  }

  /// The delay before a retry, counted from 1: from half to all of its bound.
  package func delay(
    before attempt: Int,
    using generator: inout some RandomNumberGenerator
  ) -> Duration {
    precondition(attempt > 0, "a delay before no retry")
    var bound = min(first, maximum)
    for _ in 1..<attempt where bound < maximum { bound = min(bound * 2, maximum) }
    return bound * Double.random(in: 0.5...1, using: &generator)
  }

  /// Does a step, and after a delay again if that may succeed, as often as the policy says.
  ///
  /// - Parameters:
  ///   - host: What it waits on.
  ///   - step: The step; it leaves nothing half done when it throws.
  ///   - wait: Waits before a retry, of which it gets the number and the reason; ends the retries if
  ///     it throws. Nil to sleep.
  /// - Returns: The result of the step.
  /// - Throws: The last error of the step, or that of the wait.
  package func repeating<Result>(
    on host: RunEnvironment = RunEnvironment(),
    _ step: () async throws(BatchError) -> Result,
    wait: (
      (_ delay: Duration, _ attempt: Int, _ reason: BatchError) async throws(BatchError) ->
        Void
    )? = nil
  ) async throws(BatchError) -> Result {
    var generator: any RandomNumberGenerator = host.generator
    var attempt = 0
    while true {
      do throws(BatchError) {
        return try await step()
      } catch {
        attempt += 1
        guard error.isTransient, attempt <= limit else { throw error }
        let delay = delay(before: attempt, using: &generator)
        if let wait { try await wait(delay, attempt, error) } else { await host.sleep(delay) }
      }
    }
  }
}
