package import BatchIdentifiers

/// Finds the positions of a range that fail individually: a part that fails is split in halves,
/// down to single positions.
///
/// Each halving costs two tries, so one failure among *n* costs about 2·log2(*n*). The caller takes
/// parts from ``next()`` and reports which ones failed.
package struct Bisection {
  /// Parts still to do, the next one last.
  private var parts: [Range<Int>]
  private let policy: FailurePolicy
  /// The positions that failed, ascending.
  package private(set) var failures: [(position: Int, error: BatchError)] = []

  /// A bisection of a range in which as many positions may fail as the policy allows.
  package init(_ range: Range<Int>, _ policy: FailurePolicy) {
    parts = range.isEmpty ? [] : [range]
    self.policy = policy
  }

  /// The next part to do; nil if all are done.
  package mutating func next() -> Range<Int>? { parts.popLast() }

  /// The first position that is not done; nil if all are.
  package var position: Int? { parts.last?.lowerBound }

  /// Adds positions that the previous part left out.
  package mutating func add(_ part: Range<Int>) {
    if !part.isEmpty { parts.append(part) }
  }

  /// Splits a part in halves to be done again.
  ///
  /// - Returns: Whether it could be split.
  package mutating func split(_ part: Range<Int>) -> Bool {
    guard part.count > 1 else { return false }
    let middle = part.lowerBound + part.count / 2
    parts.append(middle..<part.upperBound)
    parts.append(part.lowerBound..<middle)
    return true
  }

  /// Notes that a part failed and none of it is done.
  ///
  /// - Throws: `error`, extended by `naming`, if more positions have failed than may.
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
