package import BatchIdentifiers

/// The outcomes of a chunk's identifiers, by their numbers in the chunk.
package struct ChunkResult: Sendable {
  /// How many rows were changed, or have a line.
  package var succeeded = 0
  /// The identifiers that neither succeeded nor failed.
  package var passedOver = PassedOver()
  /// The identifiers that failed, ascending.
  package var failures: [(number: Int, error: BatchError)] = []

  /// Makes an empty result.
  package init() {}

  /// The number of identifiers per outcome.
  package var outcomes: Outcomes {
    var outcomes = passedOver.counts
    outcomes.succeeded = succeeded
    outcomes.failed = failures.count
    return outcomes
  }

  /// Adds the result of the identifiers that follow, from this number on.
  package mutating func append(_ part: ChunkResult, from offset: Int) {
    succeeded += part.succeeded
    passedOver.formUnion(part.passedOver, from: offset)
    failures += part.failures.map { ($0.number + offset, $0.error) }
  }
}
