#if PostgreSQL
package import BatchEngine
package import BatchIdentifiers

extension ChunkTransaction where Change == PostgresTransform {
  /// Does a chunk that was read and computed, and computes again what others have changed since.
  ///
  /// Where others are faster each time, the rows are locked in the end, and the few that are left are computed under the
  /// lock.
  ///
  /// - Parameters:
  ///   - chunk: The chunk.
  ///   - positions: Its positions.
  ///   - lease: What the process has the span by.
  ///   - method: See ``run(_:at:under:by:in:)``.
  ///   - session: The session, in no transaction.
  ///   - compute: What computes.
  /// - Returns: What became of the identifiers.
  /// - Throws: What ``run(_:at:under:by:in:)`` does, and what `compute` does; of code `retryLater` if rows cannot be done
  ///   now, so that the chunk is to be done anew.
  package func run(
    _ chunk: TransformedRows,
    at positions: Range<Int>,
    under lease: SpanLease,
    by method: inout WritingMethod,
    in session: PostgresSession,
    computing compute: @escaping RowComputation
  ) throws(BatchError) -> Outcomes {
    var chunk = chunk
    for _ in 0..<Self.refreshLimit {
      do {
        return try run(chunk, at: positions, under: lease, by: &method, in: session)
      } catch {
        guard error.isAboutStaleRows else { throw error }
      }
      chunk = try change.refresh(chunk, within: limits.statement, in: session, compute)
      if let postponement = chunk.postponement { throw postponement }
    }
    let locking = ChunkTransaction<LockingTransform>(
      LockingTransform(transform: change, compute: compute),
      fence,
      limits: limits,
      onFailure: onFailure
    )
    return try locking.run(chunk, at: positions, under: lease, by: &method, in: session)
  }

  private static var refreshLimit: Int { 5 }
}
#endif
