package import BatchEngine
package import BatchIdentifiers

extension WriterLane {
  /// Gives the rows of one chunk the values that were computed for them and enters it in the
  /// ledger, both or neither.
  ///
  /// If another connection has committed since the rows were read, they are read again, under the
  /// write lock: no change of another is lost.
  ///
  /// - Parameters:
  ///   - transform: What the chunk was computed by.
  ///   - chunk: The computed chunk.
  ///   - positions: The positions of the chunk.
  ///   - onFailure: What becomes of identifiers of the whole run that fail.
  ///   - recomputes: Whether rows that are not as they were are computed again, while others wait for
  ///     the lock.
  /// - Returns: What came of the chunk.
  /// - Throws: What ``commitChange(_:to:at:onFailure:)`` throws, and what the computation does. If it is not to
  ///   be done, `BatchError` of code `rowsChanged`; the chunk is to be refreshed, and committed again.
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
