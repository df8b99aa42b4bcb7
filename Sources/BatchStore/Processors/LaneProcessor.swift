package import BatchEngine
package import BatchIdentifiers

/// A processor whose chunks are written by the writer lane, which knows what is done.
package protocol LaneProcessor: ChunkProcessor {
  /// The lane.
  var lane: WriterLane { get }
  /// Where done chunks are recorded.
  var ledger: LedgerPlace { get }
}

extension LaneProcessor {
  package func synchronize(
    _ progress: inout RunProgress,
    done: DoneRanges,
    failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]? {
    try await lane.synchronize(&progress, ledger, done: done, failedCount: failedCount)
  }

  package func passedOver(
    after last: Int?
  ) async throws(BatchError) -> [PassedOverRecord.Piece]? {
    try await lane.passedOver(after: last)
  }

  package func finish(_ progress: inout RunProgress) async throws(BatchError) {
    try await lane.finish(after: progress.elapsedSeconds)
  }
}
