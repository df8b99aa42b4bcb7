package import BatchIdentifiers

/// The delays before retries: they double up to a maximum, and are partly random.
///
/// Otherwise, chunks waiting for the same lock would all return at once.
package struct Backoff {
  package let limit: Int
  private let first: Duration
  private let maximum: Duration

  package init(_ retry: RunPolicy.Retry) {
    limit = retry.limit
    first = retry.backoff
    maximum = retry.maximumBackoff
  }

  /// The delay is random, from half its bound to all of it; `attempt` counts from 1.
  package func delay(
    before attempt: Int,
    using generator: inout some RandomNumberGenerator
  ) -> Duration {
    precondition(attempt > 0, "a delay before no retry")
    var bound = min(first, maximum)
    for _ in 1..<attempt where bound < maximum { bound = min(bound * 2, maximum) }
    return bound * Double.random(in: 0.5...1, using: &generator)
  }

  /// Performs a step, and repeats it after transient errors as often as the policy allows.
  ///
  /// The step must leave nothing half done when it throws. `wait` gets the number of the retry and
  /// its reason, and ends the retries by throwing; if it is nil, the delay is slept.
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
