package import BatchEngine
package import BatchIdentifiers

extension WriterLane {
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
  /// - Throws: Errors of ``commitChange(_:to:at:onFailure:)`` and of the computation. If rows must
  ///   not be recomputed, `BatchError` of code `rowsChanged`; then refresh the chunk and commit it
  ///   again.
  package func commitTransform(
    _ transform: RowTransform,
    _ chunk: TransformedChunk,
    at positions: Range<Int>,
    onFailure: FailurePolicy = .failChunk,
    recomputing recomputes: Bool = true
  ) async throws(BatchError) -> Commit {
    try await commitInTurn(positions, onFailure: onFailure) { [self] onFailure throws(BatchError) in
      try transform.write(
        chunk,
        at: positions.lowerBound,
        onFailure: onFailure,
        isCurrent: !noteForeignCommits(since: chunk.lookCount),
        recomputes: recomputes,
        in: connection
      )
    }
  }
}
