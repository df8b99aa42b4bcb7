import BatchIdentifiers
import BatchStore

/// Updates and deletes: the identifiers go straight to the writer lane.
struct ChangeProcessor: ChunkProcessor {
  let list: IdentifierList
  let change: BulkChange
  /// Whether each row gets a statement of its own.
  let isRowByRow: Bool
  let lane: WriterLane
  let ledger: LedgerPlace
  /// How many identifiers of the run may fail.
  let failureLimit: Int

  var inOrder: Bool { false }

  func prepare(
    _ positions: Range<Int>,
    in context: StoreConnection
  ) async throws(BatchError) -> PreparedChunk<ChunkKeys> {
    let keys = try await context.compute { () throws(BatchError) in
      let keys = try ChunkKeys(list, positions, key: change.key)
      return isRowByRow ? keys.singly : keys
    }
    // The rows stay in the database.
    return PreparedChunk(content: keys, count: positions.count, byteCount: 0)
  }

  func commit(
    _ keys: ChunkKeys,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    try await lane.apply(change, to: keys, at: positions, failing: failureLimit)
  }

  func synchronize(
    _ progress: inout RunProgress,
    done: DoneRanges,
    failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]? {
    try await lane.synchronize(&progress, ledger, done: done, failedCount: failedCount)
  }

  func finish(_ progress: inout RunProgress) async throws(BatchError) {
    try await lane.finish(after: progress.elapsedSeconds)
  }
}

extension StoreConnection: ChunkWorker {}

extension WriterLane: ChunkWriter {
  nonisolated func interrupt() { interrupter.interrupt() }

  /// Waits until everything committed is on the disk, and completes `progress`.
  func synchronize(
    _ progress: inout RunProgress,
    _ ledger: LedgerPlace,
    done: DoneRanges,
    failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]? {
    let durable = try await makeDurable(failedCount: failedCount)
    progress.done = ledger == .store ? durable.done : done
    progress.peakWALBytes = max(progress.peakWALBytes, try peakLogBytes())
    return durable.failed
  }
}
