package import BatchEngine
package import BatchIdentifiers

/// Gives rows back: workers unpack them, the writer lane writes them.
package struct RestorationProcessor<Undo: Restoration>: ChunkProcessor {
  private let undo: Undo
  private let lane: WriterLane
  private let ledger: LedgerPlace
  private let onFailure: FailurePolicy

  package init(
    _ undo: Undo,
    lane: WriterLane,
    ledger: LedgerPlace,
    onFailure: FailurePolicy
  ) {
    self.undo = undo
    self.lane = lane
    self.ledger = ledger
    self.onFailure = onFailure
  }

  /// Rows come back in the reverse of the order in which they went: what refers to another comes after it.
  package var inOrder: Bool { true }
  package var patience: Duration? { nil }
  package var units: [Int] { undo.units }

  package func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Undo.Rows>,
    in context: StoreConnection
  ) async throws(BatchError) -> PreparedChunk<Undo.Rows> {
    let rows = try await context.compute { () throws(BatchError) in try undo.rows(at: positions) }
    return PreparedChunk(content: rows, count: rows.count, byteCount: rows.byteCount)
  }

  package func commit(
    _ rows: Undo.Rows,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    try await lane.commitUndo(undo, rows, at: positions, onFailure: onFailure)
  }

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
