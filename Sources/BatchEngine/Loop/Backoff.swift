import BatchIdentifiers

/// The delay before a chunk is retried: doubles up to a maximum, less a random part, so that chunks
/// waiting for the same lock do not all return at once.
package struct Backoff {
  /// How often a chunk is retried.
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
}
