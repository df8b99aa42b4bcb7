package import BatchRuns
package import BatchIdentifiers

/// Restores rows: workers unpack them, and the writer lane writes them.
package struct RestorationProcessor<Undo: Restoration>: ChunkProcessor {
  private let undo: Undo
  private let store: Store
  private let lane: WriterLane
  private let onFailure: FailurePolicy

  package init(
    _ undo: Undo,
    store: Store,
    lane: WriterLane,
    onFailure: FailurePolicy
  ) {
    self.undo = undo
    self.store = store
    self.lane = lane
    self.onFailure = onFailure
  }

  /// Rows return in reverse order, so a row follows the ones it refers to.
  package var inOrder: Bool { true }
  package var handlerTimeLimit: Duration? { nil }
  package var units: [Int] { undo.units }

  package func makeWorker(_ label: String) -> StoreConnection { store.makeWorker(label) }

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
    try await lane.commit(positions, onFailure: onFailure) {
      [undo] (lane: isolated WriterLane, onFailure) throws(BatchError) in
      try undo.write(rows, onFailure: onFailure, in: lane.connection)
    }
  }
}
