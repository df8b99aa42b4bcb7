#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers

/// Changes the rows of a run's chunks by SQL alone, each chunk in a transaction on its worker's own
/// connection.
///
/// Preparing a chunk reads no rows of the table, so a worker has its next chunk ready while the
/// server processes the previous one.
package struct PostgresChangeProcessor<Change: ChunkChange>: ChunkProcessor {
  /// What the change needs of a chunk, for as many of its first keys as may be held.
  package typealias Preparing =
    @Sendable (RowKeys) async throws(BatchError) -> PreparedChunk<Change.Rows>

  package struct Prepared: Sendable {
    fileprivate let rows: Change.Rows
    fileprivate let worker: PostgresConnection
  }

  private let chunks: ChunkTransaction<Change>
  private let spans: any ChunkSpans
  private let prepare: Preparing
  private let connect: PostgresConnection.Connecting
  private let reconnection: Duration
  private let method = Lock(WritingMethod.counting)

  package init(
    _ chunks: ChunkTransaction<Change>,
    of spans: any ChunkSpans,
    reconnectingFor reconnectTimeout: Duration,
    by connect: @escaping PostgresConnection.Connecting,
    preparing prepare: @escaping Preparing
  ) {
    self.chunks = chunks
    self.spans = spans
    self.prepare = prepare
    reconnection = reconnectTimeout
    self.connect = connect
  }

  package var inOrder: Bool { spans.inOrder }
  package var handlerTimeLimit: Duration? { nil }

  package func makeWorker(_ label: String) -> PostgresConnection { connect(label) }

  package func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Prepared>,
    in worker: PostgresConnection
  ) async throws(BatchError) -> PreparedChunk<Prepared> {
    let keys = try spans.span(of: positions).keys(positions, key: chunks.change.key)
    let rows = try await prepare(keys)
    return PreparedChunk(
      content: Prepared(rows: rows.content, worker: worker),
      count: rows.count,
      byteCount: rows.byteCount
    )
  }

  package func commit(
    _ prepared: Prepared,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    let lease = try spans.span(of: positions).lease
    let chunks = chunks
    let before = method.withLock { $0 }
    // After a broken connection, the ledger has the outcome of the chunk.
    let (commit, after) = try await prepared.worker.persistently(within: reconnection) {
      session throws(BatchError) in
      var method = before
      let commit = try chunks.run(
        prepared.rows,
        at: positions,
        under: lease,
        by: &method,
        in: session
      )
      return (commit, method)
    }
    if after != before { method.withLock { $0 = after } }
    return commit
  }
}
#endif
