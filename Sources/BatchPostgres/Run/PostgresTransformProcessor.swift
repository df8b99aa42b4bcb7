#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers

/// Transforms the rows of a run's chunks: each worker reads rows, computes their values and sets
/// them, with each chunk in a transaction on the worker's own connection.
///
/// No transaction is open during the computation, unless others change the rows of a chunk faster
/// than they can be computed.
package struct PostgresTransformProcessor: ChunkProcessor {
  package struct Prepared: Sendable {
    fileprivate var chunk: TransformedRows<RowKeys>
    fileprivate let worker: PostgresConnection
  }

  /// Returns the computation, which postpones rows that cannot be computed now; on the last
  /// attempt, such rows fail.
  package typealias Computing = @Sendable (_ isLastTry: Bool) -> RowComputation

  private let chunks: ChunkTransaction<PostgresTransform>
  private let computing: Computing
  private let spans: any ChunkSpans
  private let connect: PostgresConnection.Connecting
  package let handlerTimeLimit: Duration?
  private let reconnection: Duration
  private let method = Lock(WritingMethod.counting)

  package init(
    _ chunks: ChunkTransaction<PostgresTransform>,
    of spans: any ChunkSpans,
    handlerTimeLimit: Duration?,
    reconnectingFor reconnection: Duration,
    by connect: @escaping PostgresConnection.Connecting,
    _ computing: @escaping Computing
  ) {
    self.chunks = chunks
    self.spans = spans
    self.handlerTimeLimit = handlerTimeLimit
    self.reconnection = reconnection
    self.connect = connect
    self.computing = computing
  }

  package var inOrder: Bool { spans.inOrder }

  package func makeWorker(_ label: String) -> PostgresConnection { connect(label) }

  package func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Prepared>,
    in worker: PostgresConnection
  ) async throws(BatchError) -> PreparedChunk<Prepared> {
    let transform = chunks.change
    let limit = chunks.limits.statement
    let keys = try spans.span(of: positions).keys(positions, key: transform.key).anywhere
    let compute = computing(attempt.isLast)
    let earlier = attempt.earlier?.chunk
    let chunk = try await worker.persistently(within: reconnection) {
      session throws(BatchError) in
      if let earlier {
        return try transform.refresh(earlier, within: limit, in: session, compute)
      }
      return try transform.prepare(
        keys,
        holding: ChunkBytes.chunkLimit,
        within: limit,
        in: session,
        compute
      )
    }
    return PreparedChunk(
      content: Prepared(chunk: chunk, worker: worker),
      count: chunk.count,
      byteCount: chunk.byteCount,
      postponement: chunk.postponement
    )
  }

  package func commit(
    _ prepared: Prepared,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    let lease = try spans.span(of: positions).lease
    let (chunks, compute) = (chunks, computing(false))
    let before = method.withLock { $0 }
    // After a broken connection, the ledger has the outcome of the chunk.
    let (commit, after) = try await prepared.worker.persistently(within: reconnection) {
      session throws(BatchError) in
      var method = before
      let commit = try chunks.run(
        prepared.chunk,
        at: positions,
        under: lease,
        by: &method,
        in: session,
        computing: compute
      )
      return (commit, method)
    }
    if after != before { method.withLock { $0 = after } }
    return commit
  }
}
#endif
