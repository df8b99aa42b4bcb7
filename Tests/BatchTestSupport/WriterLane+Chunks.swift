package import BatchRuns
package import BatchIdentifiers
package import BatchSQLite

extension WriterLane {
  /// Changes the rows of one chunk and enters it in the ledger, as a processor of changes does.
  package func commit(
    _ change: BulkChange,
    to keys: ChunkKeys,
    readAhead ahead: ReadAhead? = nil,
    at positions: Range<Int>,
    onFailure: FailurePolicy = .failChunk
  ) async throws(BatchError) -> Commit {
    try await commit(positions, onFailure: onFailure) {
      (lane: isolated WriterLane, onFailure) throws(BatchError) in
      try change.write(to: keys, readAhead: ahead, onFailure: onFailure, by: lane)
    }
  }

  /// Sets the computed values of one chunk's rows and enters it in the ledger, as a processor of
  /// transforms does.
  package func commit(
    _ transform: RowTransform,
    _ chunk: TransformedChunk,
    at positions: Range<Int>,
    onFailure: FailurePolicy = .failChunk,
    recomputing recomputes: Bool = true
  ) async throws(BatchError) -> Commit {
    try await commit(positions, onFailure: onFailure) {
      (lane: isolated WriterLane, onFailure) throws(BatchError) in
      try transform.write(chunk, onFailure: onFailure, recomputing: recomputes, by: lane)
    }
  }
}
