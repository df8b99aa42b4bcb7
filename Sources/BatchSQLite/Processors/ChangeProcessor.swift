package import BatchRuns
package import BatchIdentifiers

/// Updates and deletes by passing identifiers directly to the writer lane.
package struct ChangeProcessor: ChunkProcessor {
  package let list: PackedIdentifiers
  package let change: BulkChange
  package let isRowByRow: Bool
  package let inOrder: Bool
  package let store: Store
  package let lane: WriterLane
  package let onFailure: FailurePolicy

  package init(
    list: PackedIdentifiers,
    change: BulkChange,
    isRowByRow: Bool,
    inOrder: Bool = false,
    store: Store,
    lane: WriterLane,
    onFailure: FailurePolicy
  ) {
    self.list = list
    self.change = change
    self.isRowByRow = isRowByRow
    self.inOrder = inOrder
    self.store = store
    self.lane = lane
    self.onFailure = onFailure
  }

  package var handlerTimeLimit: Duration? { nil }

  package func makeWorker(_ label: String) -> StoreConnection { store.makeWorker(label) }

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
      // No rows are read, so they need no memory.
      let prepared = Prepared(keys: change.suited(keys, isScattered: isScattered), ahead: nil)
      return PreparedChunk(content: prepared, count: positions.count, byteCount: 0)
    }
    let ahead = try await context.perform { connection throws(BatchError) in
      // Noted before the first read, so that all later commits of others are noticed.
      try change.readAhead(
        keys,
        lookCount: lane.watch.lookCount,
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
    try await lane.commit(positions, onFailure: onFailure) {
      [change] (lane: isolated WriterLane, onFailure) throws(BatchError) in
      try change.write(
        to: prepared.keys,
        readAhead: prepared.ahead,
        onFailure: onFailure,
        by: lane
      )
    }
  }
}

extension StoreConnection: ChunkWorker {}

extension Store {
  package func makeWorker(_ label: String) -> StoreConnection {
    makeConnection(label: label, priority: .background)
  }
}
