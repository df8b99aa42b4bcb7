package import BatchEngine
package import BatchIdentifiers

extension WriterLane {
  /// Changes the rows of one chunk and enters it in the ledger, both or neither.
  ///
  /// Failed identifiers that are skipped are entered with the chunk.
  ///
  /// - Parameters:
  ///   - change: The change.
  ///   - keys: The keys of the chunk.
  ///   - ahead: What a worker has read, used if no other connection has committed since.
  ///   - positions: The positions of the chunk.
  ///   - onFailure: What happens when identifiers of the run fail.
  /// - Returns: The result of the chunk.
  /// - Throws: Errors of SQLite, from this chunk or the checkpoint after the previous one; the
  ///   store is then unchanged.
  package func commitChange(
    _ change: BulkChange,
    to keys: ChunkKeys,
    readAhead ahead: ReadAhead? = nil,
    at positions: Range<Int>,
    onFailure: FailurePolicy = .failChunk
  ) async throws(BatchError) -> Commit {
    try await commit(positions, onFailure: onFailure) { [self] onFailure throws(BatchError) in
      let current = try ahead.flatMap { ahead throws(BatchError) in
        try noteForeignCommits(since: ahead.lookCount) ? nil : ahead
      }
      let keys = if let current { current.keys } else { try change.located(keys, in: connection) }
      return try change.write(
        to: keys,
        before: current?.rows,
        onFailure: onFailure,
        in: connection
      )
    }
  }

  /// Sets the computed values of one chunk's rows and enters it in the ledger, both or neither.
  ///
  /// If another connection has committed since the rows were read, they are read again under the
  /// write lock, so that no other change is lost.
  ///
  /// - Parameters:
  ///   - transform: The transform that computed the chunk.
  ///   - chunk: The computed chunk.
  ///   - positions: The positions of the chunk.
  ///   - onFailure: What happens when identifiers of the run fail.
  ///   - recomputes: Whether to recompute rows that differ, while others wait for the lock.
  /// - Returns: The result of the chunk.
  /// - Throws: Errors of SQLite and of the computation. If rows must not be recomputed, `BatchError`
  ///   of code `rowsChanged`; then refresh the chunk and commit it again.
  package func commitTransform(
    _ transform: RowTransform,
    _ chunk: TransformedChunk,
    at positions: Range<Int>,
    onFailure: FailurePolicy = .failChunk,
    recomputing recomputes: Bool = true
  ) async throws(BatchError) -> Commit {
    try await commit(positions, onFailure: onFailure) { [self] onFailure throws(BatchError) in
      try transform.write(
        chunk,
        onFailure: onFailure,
        isCurrent: !noteForeignCommits(since: chunk.lookCount),
        recomputes: recomputes,
        in: connection
      )
    }
  }

  /// Restores the rows of one chunk and enters it in the ledger, both or neither.
  ///
  /// - Throws: Errors of ``commit(_:onFailure:isAlone:_:whenCommitted:)``.
  package func commitUndo<Undo: Restoration>(
    _ undo: Undo,
    _ rows: Undo.Rows,
    at positions: Range<Int>,
    onFailure: FailurePolicy
  ) async throws(BatchError) -> Commit {
    try await commit(positions, onFailure: onFailure) {
      [connection] onFailure throws(BatchError) in
      try undo.write(rows, onFailure: onFailure, in: connection)
    }
  }
}
