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

  /// The first and the last of some numbers whose rows were exported; nil if none was.
  func succeededNumbers(among count: Int) -> (first: Int, last: Int)? {
    guard succeeded > 0 else { return nil }
    let failed = Set(failures.map(\.number))
    func isExported(_ number: Int) -> Bool {
      !failed.contains(number) && !passedOver.contains(number)
    }
    guard let first = (0..<count).first(where: isExported),
      let last = (0..<count).last(where: isExported)
    else { return nil }
    return (first, last)
  }
}
