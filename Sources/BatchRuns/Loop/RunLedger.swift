package import BatchIdentifiers

/// The authority on which chunks of a run are done; the checkpoint follows it.
package protocol RunLedger: Sendable {
  /// Syncs everything committed to the disk, and completes `progress` for the checkpoint.
  ///
  /// - Parameters:
  ///   - progress: The progress of the run, as the checkpoint will record it.
  ///   - done: The positions that this process knows to be committed.
  ///   - failedCount: The number of failed identifiers in the checkpoint; nil to return all.
  /// - Returns: All failed identifiers, unless the checkpoint has as many.
  /// - Throws: An error of the store or the file; committed chunks remain.
  func makeDurable(
    _ progress: inout RunProgress,
    seen done: DoneRanges,
    knowing failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]?

  /// Reads the passed-over identifiers that a store keeps.
  ///
  /// - Parameter last: The previous piece; nil for the first pieces.
  /// - Returns: The next pieces, as many as may be held at once; nil if there are no more, or if
  ///   the checkpoint has them.
  /// - Throws: An error of the store.
  func passedOver(after last: Int?) async throws(BatchError) -> [PassedOverRecord.Piece]?

  /// Writes what ends a result whose chunks are all done, before its length is recorded.
  func seal() async throws(BatchError)

  /// Publishes the result of a completed run, and completes `progress`.
  func finish(_ progress: inout RunProgress) async throws(BatchError)
}

extension RunLedger {
  package func passedOver(
    after last: Int?
  ) async throws(BatchError) -> [PassedOverRecord.Piece]? { nil }
}

/// The ledger of a run without any record: positions that this process has committed are done.
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

  package func seal() {}

  package func finish(_ progress: inout RunProgress) {}
}
