package import BatchIdentifiers

/// Finds those positions of a range that fail alone: a part that fails is done again in halves, down to
/// single positions.
///
/// That makes two further tries for each halving, so about 2·log2(*n*) for one that fails among *n*.
/// Whoever does the parts takes them from ``next()`` and says which failed.
package struct Bisection {
  /// Parts that are still to do, the next one last.
  private var parts: [Range<Int>]
  private let policy: FailurePolicy
  /// The positions that failed, ascending.
  package private(set) var failures: [(position: Int, error: BatchError)] = []

  /// A bisection of a range, of whose positions as many may fail as a policy says.
  package init(_ range: Range<Int>, _ policy: FailurePolicy) {
    parts = range.isEmpty ? [] : [range]
    self.policy = policy
  }

  /// The next part to do; nil if all are done.
  package mutating func next() -> Range<Int>? { parts.popLast() }

  /// The first position that is not done; nil if all are.
  package var position: Int? { parts.last?.lowerBound }

  /// Has some positions done that were left out of the part before.
  package mutating func add(_ part: Range<Int>) {
    if !part.isEmpty { parts.append(part) }
  }

  /// Has a part done again in halves.
  ///
  /// - Returns: Whether it has halves.
  package mutating func split(_ part: Range<Int>) -> Bool {
    guard part.count > 1 else { return false }
    let middle = part.lowerBound + part.count / 2
    parts.append(middle..<part.upperBound)
    parts.append(part.lowerBound..<middle)
    return true
  }

  /// Takes note that a part failed and nothing of it is done.
  ///
  /// - Throws: `error`, as `naming` tells what it is about, if one more has failed than may.
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
