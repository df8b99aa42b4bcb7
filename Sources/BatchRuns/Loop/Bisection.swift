package import BatchIdentifiers

/// Finds the positions of a range that fail individually, by halving each part that fails.
///
/// Each halving costs two tries, so one failure among *n* positions costs about 2·log2(*n*). The
/// caller takes parts from ``next()`` and reports the ones that failed.
package struct Bisection {
  /// The parts still to do; the next one is last.
  private var parts: [Range<Int>]
  private let policy: FailurePolicy
  /// Ascending.
  package private(set) var failures: [(position: Int, error: BatchError)] = []

  package init(_ range: Range<Int>, _ policy: FailurePolicy) {
    parts = range.isEmpty ? [] : [range]
    self.policy = policy
  }

  package mutating func next() -> Range<Int>? { parts.popLast() }

  package var position: Int? { parts.last?.lowerBound }

  /// Adds positions that the previous part did not include.
  package mutating func add(_ part: Range<Int>) {
    if !part.isEmpty { parts.append(part) }
  }

  /// Splits a part in halves to be tried again; returns false for a single position.
  package mutating func split(_ part: Range<Int>) -> Bool {
    guard part.count > 1 else { return false }
    let middle = part.lowerBound + part.count / 2
    parts.append(middle..<part.upperBound)
    parts.append(part.lowerBound..<middle)
    return true
  }

  /// Records that a part failed, with none of it done; throws if too many positions have failed.
  package mutating func failed(
    _ part: Range<Int>,
    _ error: BatchError,
    naming: (BatchError) -> BatchError = { $0 }
  ) throws(BatchError) {
    if split(part) { return }
    guard failures.count < policy.limit else { throw policy.refusal(naming(error)) }
    failures.append((part.lowerBound, error))
  }
}
