package import BatchEngine
package import BatchIdentifiers

/// Updates and deletes: the identifiers go directly to the writer lane.
package struct ChangeProcessor: LaneProcessor {
  package let list: PackedIdentifiers
  package let change: BulkChange
  /// Whether each row has its own statement.
  package let isRowByRow: Bool
  package let inOrder: Bool
  package let lane: WriterLane
  package let ledger: LedgerPlace
  package let onFailure: FailurePolicy

  package init(
    list: PackedIdentifiers,
    change: BulkChange,
    isRowByRow: Bool,
    inOrder: Bool = false,
    lane: WriterLane,
    ledger: LedgerPlace,
    onFailure: FailurePolicy
  ) {
    self.list = list
    self.change = change
    self.isRowByRow = isRowByRow
    self.inOrder = inOrder
    self.lane = lane
    self.ledger = ledger
    self.onFailure = onFailure
  }

  package var patience: Duration? { nil }

  /// The keys of a chunk, and what may be read of it ahead.
  package struct Prepared: Sendable {
    let keys: ChunkKeys
    let ahead: ReadAhead?
  }

  package func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Prepared>,
    in context: StoreConnection
  ) async throws(BatchError) -> PreparedChunk<Prepared> {
    let keys = try await context.compute { () throws(BatchError) in
      let keys = try ChunkKeys(list, positions, key: change.key)
      return isRowByRow ? keys.singly : keys
    }
    let isScattered = lane.changesScatteredPages
    guard change.readsAhead(keys, isScattered: isScattered) else {
      // The rows stay in the database.
      let prepared = Prepared(keys: change.suited(keys, isScattered: isScattered), ahead: nil)
      return PreparedChunk(content: prepared, count: positions.count, byteCount: 0)
    }
    let ahead = try await context.perform { connection throws(BatchError) in
      // Noted before the first read, so that all later commits by others are noticed.
      try change.readAhead(
        keys,
        lookCount: lane.lookCount,
        isScattered: isScattered,
        in: connection
      )
    }
    return PreparedChunk(
      content: Prepared(keys: keys, ahead: ahead),
      count: positions.count,
      byteCount: ahead.byteCount
    )
  }

  package func commit(
    _ prepared: Prepared,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    try await lane.commitChange(
      change,
      to: prepared.keys,
      readAhead: prepared.ahead,
      at: positions,
      onFailure: onFailure
    )
  }
}

extension StoreConnection: ChunkWorker {}

extension WriterLane: ChunkWriter {
  package nonisolated func interrupt() { interrupter.interrupt() }

  package nonisolated var logRemedy: String {
    leavesLogToLitestream
      ? "Litestream holds a read lock on it and restarts it once it has copied it; see that it runs"
      : "another connection reads from it, so it cannot be emptied: look for a long"
        + " SELECT, an open transaction or a backup, as with fuser -v \(path)"
  }

  /// Syncs everything committed to the disk, and completes `progress`.
  package func synchronize(
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
