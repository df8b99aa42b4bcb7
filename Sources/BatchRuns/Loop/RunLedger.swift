package import BatchIdentifiers

/// What knows which chunks of a run are done, and can make that durable: the truth behind a checkpoint.
package protocol RunLedger: Sendable {
  /// Syncs everything committed to the disk, and completes `progress`.
  ///
  /// - Parameters:
  ///   - progress: The progress of the run, as the checkpoint will have it.
  ///   - done: What this process has seen committed.
  ///   - failedCount: How many failed identifiers the checkpoint has; nil to return all.
  /// - Returns: All failed identifiers, unless the checkpoint has as many.
  /// - Throws: Errors of the store or of the file; what is committed stays.
  func makeDurable(
    _ progress: inout RunProgress,
    seen done: DoneRanges,
    knowing failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]?

  /// The passed-over identifiers, from a store that keeps them.
  ///
  /// - Parameter last: The previous piece; nil for the first ones.
  /// - Returns: The next pieces, as many as may be held at once; nil if there are no more, or if
  ///   the checkpoint has them.
  /// - Throws: Errors of the store.
  func passedOver(after last: Int?) async throws(BatchError) -> [PassedOverRecord.Piece]?

  /// Puts the result of a completed run in place, and completes `progress`.
  func finish(_ progress: inout RunProgress) async throws(BatchError)
}

extension RunLedger {
  package func passedOver(
    after last: Int?
  ) async throws(BatchError) -> [PassedOverRecord.Piece]? { nil }
}

/// The ledger of a run that records nothing outside its process: what it has seen committed is done.
package struct UnrecordedLedger: RunLedger {
  package init() {}

  package func makeDurable(
    _ progress: inout RunProgress,
    seen done: DoneRanges,
    knowing failedCount: Int?
  ) -> [FailedIdentifier]? {
    progress.done = done
    return []
  }

  package func finish(_ progress: inout RunProgress) {}
}
