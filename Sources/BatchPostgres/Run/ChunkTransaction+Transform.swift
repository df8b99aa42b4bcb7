#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers

extension ChunkTransaction where Change == PostgresTransform {
  /// Writes a chunk that was read and computed, and recomputes rows that others have changed since.
  ///
  /// If others change the rows faster than they are computed, finally locks them and computes the
  /// changed ones under the lock.
  ///
  /// - Throws: An error of code `retryLater` if rows are postponed, so the chunk must be retried.
  package func run(
    _ chunk: TransformedRows<RowKeys>,
    at positions: Range<Int>,
    under lease: SpanLease,
    by method: inout WritingMethod,
    in session: PostgresSession,
    computing compute: @escaping RowComputation
  ) throws(BatchError) -> Commit {
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
      end,
      limits: limits,
      onFailure: onFailure
    )
    return try locking.run(chunk, at: positions, under: lease, by: &method, in: session)
  }

  private static var refreshLimit: Int { 5 }
}
#endif
