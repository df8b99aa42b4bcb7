package import BatchIdentifiers

/// The outcomes of a chunk's identifiers, numbered within the chunk.
package struct ChunkResult: Sendable {
  /// The number of rows that were changed or exported.
  package var succeeded = 0
  package var passedOver = PassedOver()
  /// Ascending.
  package var failures: [(number: Int, error: BatchError)] = []

  package init() {}

  package var outcomes: Outcomes {
    var outcomes = passedOver.counts
    outcomes.succeeded = succeeded
    outcomes.failed = failures.count
    return outcomes
  }

  /// Adds the result of the identifiers from `offset` on.
  package mutating func append(_ part: ChunkResult, from offset: Int) {
    succeeded += part.succeeded
    passedOver.formUnion(part.passedOver, from: offset)
    failures += part.failures.map { ($0.number + offset, $0.error) }
  }

  /// The result of some of the identifiers, numbered from the first of them.
  package func part(_ numbers: Range<Int>) -> ChunkResult {
    var part = ChunkResult()
    part.passedOver = passedOver.part(numbers)
    part.failures = failures.filter { numbers.contains($0.number) }.map {
      ($0.number - numbers.lowerBound, $0.error)
    }
    part.succeeded =
      numbers.count - part.passedOver.counts.passedOver - part.failures.count
    return part
  }
}
