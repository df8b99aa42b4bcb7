public import BatchIdentifiers

/// What became of each identifier of a run.
package struct RowOutcomes: Sendable {
  /// The positions of a run that were passed over, however many.
  package struct PassedOverPositions: Sendable {
    /// Those for which the action found nothing to do.
    package private(set) var unchanged = PositionSet()
    /// Those whose rows were gone.
    package private(set) var vanished = PositionSet()
    /// Those whose rows no longer satisfied `where`.
    package private(set) var noLongerMatching = PositionSet()

    /// No positions at all.
    package init() {}

    /// Adds those of a chunk.
    package mutating func formUnion(_ chunk: PassedOver) {
      for range in chunk.unchanged.ranges { unchanged.insert(contentsOf: range) }
      for range in chunk.vanished.ranges { vanished.insert(contentsOf: range) }
      for range in chunk.noLongerMatching.ranges { noLongerMatching.insert(contentsOf: range) }
    }
  }

  /// The positions that are done.
  package var done: DoneRanges
  /// Those of them that were neither changed nor failed.
  package var passedOver: PassedOverPositions
  /// Those of them that failed, ascending.
  package var failed: [FailedIdentifier]

  package init(done: DoneRanges, passedOver: PassedOverPositions, failed: [FailedIdentifier]) {
    self.done = done
    self.passedOver = passedOver
    self.failed = failed
  }

  /// The positions that are done, whatever became of them.
  package var all: PositionSet { PositionSet(done.rows.map { $0.first..<$0.next }) }

  /// The positions that succeeded: those that nothing else is said of.
  ///
  /// - Throws: `BatchError` of code `outcomeNotRecorded` if what is said is not all.
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

  /// Some positions, if they are as many as were counted and all of them are done.
  package func recorded(
    _ positions: PositionSet,
    _ count: Int
  ) throws(BatchError) -> PositionSet {
    // Of none there is nothing to record.
    if count == 0 { return PositionSet() }
    var others = positions
    for row in done.rows { others.remove(contentsOf: row.first..<row.next) }
    guard positions.count == count, others.count == 0 else {
      throw BatchError(
        .outcomeNotRecorded,
        "which rows these are was not recorded: the run, or a part of it, is of an earlier version",
        remedy: "what is done, what remains and what failed is known"
      )
    }
    return positions
  }
}

extension Checkpoint {
  /// What became of each identifier, by the file alone.
  package func rowOutcomes() throws(BatchError) -> RowOutcomes {
    RowOutcomes(
      done: progress.done,
      passedOver: try passedOver(),
      // That of a killed export may have failures of chunks that are not done.
      failed: try failedIdentifiers().filter { progress.done.contains($0.position) }
    )
  }
}

extension BatchError.Code {
  /// How many rows came to an outcome is known, and not which.
  public static let outcomeNotRecorded = Self(rawValue: "outcomeNotRecorded")
}
