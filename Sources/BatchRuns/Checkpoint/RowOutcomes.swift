public import BatchIdentifiers

/// The outcome of a selected row.
package enum RowOutcome: UInt8, CaseIterable, Sendable {
  case succeeded = 1
  case unchanged
  case vanished
  case noLongerMatching
  case failed
}

package struct RowOutcomes: Sendable {
  package struct PassedOverPositions: Sendable {
    package private(set) var unchanged = PositionSet()
    package private(set) var vanished = PositionSet()
    package private(set) var noLongerMatching = PositionSet()

    package init() {}

    package mutating func formUnion(_ chunk: PassedOver) {
      for range in chunk.unchanged.ranges { unchanged.insert(contentsOf: range) }
      for range in chunk.vanished.ranges { vanished.insert(contentsOf: range) }
      for range in chunk.noLongerMatching.ranges { noLongerMatching.insert(contentsOf: range) }
    }
  }

  package var done: DoneRanges
  /// The positions that are done but were neither changed nor failed.
  package var passedOver: PassedOverPositions
  /// Ascending.
  package var failed: [FailedIdentifier]

  package init(done: DoneRanges, passedOver: PassedOverPositions, failed: [FailedIdentifier]) {
    self.done = done
    self.passedOver = passedOver
    self.failed = failed
  }

  package var all: PositionSet { PositionSet(done.rows.map { $0.first..<$0.next }) }

  /// The positions that have no other outcome; the error is of code `outcomeNotRecorded` if some
  /// outcomes were not recorded.
  package var succeeded: PositionSet {
    get throws(BatchError) {
      var succeeded = all
      succeeded.subtract(try recorded(passedOver.unchanged, done.outcomes.unchanged))
      succeeded.subtract(try recorded(passedOver.vanished, done.outcomes.vanished))
      succeeded.subtract(
        try recorded(passedOver.noLongerMatching, done.outcomes.noLongerMatching)
      )
      for failure in failed {
        succeeded.remove(contentsOf: failure.position..<(failure.position + 1))
      }
      return try recorded(succeeded, done.outcomes.succeeded)
    }
  }

  /// The positions with an outcome; throws `outcomeNotRecorded` if only counts were recorded.
  package func positions(_ outcome: RowOutcome) throws(BatchError) -> PositionSet {
    let counts = done.outcomes
    switch outcome {
    case .succeeded: return try succeeded
    case .unchanged: return try recorded(passedOver.unchanged, counts.unchanged)
    case .vanished: return try recorded(passedOver.vanished, counts.vanished)
    case .noLongerMatching:
      return try recorded(passedOver.noLongerMatching, counts.noLongerMatching)
    case .failed: return PositionSet(failed.map { $0.position..<($0.position + 1) })
    }
  }

  /// Returns the positions if they match the count and all of them are done.
  package func recorded(
    _ positions: PositionSet,
    _ count: Int
  ) throws(BatchError) -> PositionSet {
    if count == 0 { return PositionSet() }
    var others = positions
    for row in done.rows { others.remove(contentsOf: row.first..<row.next) }
    guard positions.count == count, others.count == 0 else {
      throw BatchError(
        .outcomeNotRecorded,
        "which rows these are is not recorded: somebody has changed or dropped tables of batch",
        remedy: "the lists of done, remaining and failed identifiers are known"
      )
    }
    return positions
  }
}

extension Checkpoint {
  /// The outcomes according to the file alone, without the store.
  package func rowOutcomes() throws(BatchError) -> RowOutcomes {
    RowOutcomes(
      done: progress.done,
      passedOver: try passedOver(),
      // A killed export may have recorded failures of chunks that are not done.
      failed: try failedIdentifiers().filter { progress.done.contains($0.position) }
    )
  }
}

extension BatchError.Code {
  /// Only the number of rows with an outcome is known, not which rows they are.
  public static let outcomeNotRecorded = Self(rawValue: "outcomeNotRecorded")
}
