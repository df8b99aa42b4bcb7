import BatchIdentifiers

/// How long a chunk rests before it is tried again: twice as long each time, up to a bound, less a
/// random part, so that those who wait for the same lock do not all come back at once.
package struct Backoff {
  /// How often a chunk is tried again.
  package let limit: Int
  private let first: Duration
  private let maximum: Duration

  /// The rests that a policy asks for.
  package init(_ retry: RunPolicy.Retry) {
    limit = retry.limit
    first = retry.backoff
    maximum = retry.maximumBackoff
  }

  /// The rest before the `attempt`th further try, counted from 1: from half to all of its bound.
  package func delay(
    before attempt: Int,
    using generator: inout some RandomNumberGenerator
  ) -> Duration {
    precondition(attempt > 0, "a rest before nothing")
    var bound = min(first, maximum)
    for _ in 1..<attempt where bound < maximum { bound = min(bound * 2, maximum) }
    return bound * Double.random(in: 0.5...1, using: &generator)
  }
}
