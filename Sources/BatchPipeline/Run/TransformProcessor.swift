import BatchIdentifiers
import BatchStore

/// Transforms: workers read rows and have them computed, the writer lane sets what came of it.
struct TransformProcessor: ChunkProcessor {
  let list: IdentifierList
  let transform: RowTransform
  let run: String
  let lane: WriterLane
  let ledger: LedgerPlace
  /// How many identifiers of the run may fail.
  let failureLimit: Int

  var inOrder: Bool { false }

  func prepare(
    _ positions: Range<Int>,
    in context: StoreConnection
  ) async throws(BatchError) -> TransformedChunk {
    try await context.perform { connection throws(BatchError) in
      // Noted before anything is read: whatever others commit from here on is noticed.
      let look = lane.look
      return try transform.prepare(
        ChunkKeys(list, positions, key: transform.target.key),
        run: run,
        look: look,
        failing: failureLimit == 0 ? nil : failureLimit,
        in: connection
      )
    }
  }

  func commit(
    _ chunk: TransformedChunk,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    try await lane.apply(transform, chunk, at: positions, failing: failureLimit)
  }

  func synchronize(
    _ progress: inout RunProgress,
    done: DoneRanges,
    failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]? {
    try await lane.synchronize(&progress, ledger, done: done, failedCount: failedCount)
  }

  func finish(_ progress: inout RunProgress) async throws(BatchError) {}
}
