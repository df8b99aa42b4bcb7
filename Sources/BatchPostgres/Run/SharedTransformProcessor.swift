#if PostgreSQL
package import BatchEngine
package import BatchIdentifiers

/// Transforms the rows of a run's chunks: a worker reads rows and has them computed, and then sets what came of it, each
/// chunk in a transaction on its own connection.
///
/// No transaction is open while something computes, unless others change the rows of a chunk faster than that.
package struct SharedTransformProcessor: ChunkProcessor {
  package struct Prepared: Sendable {
    fileprivate var chunk: TransformedRows
    fileprivate let worker: PostgresConnection
  }

  /// What computes: of rows that cannot be done now it says so, and in the last try that they have failed.
  package typealias Computing = @Sendable (_ isLastTry: Bool) -> RowComputation

  private let chunks: ChunkTransaction<PostgresTransform>
  private let computing: Computing
  private let spans: LeasedSpans
  package let patience: Duration?
  /// How long a connection that breaks is made anew.
  private let reconnection: Duration
  /// How the last chunks had to be done.
  private let method = Lock(WritingMethod.counting)

  package init(
    _ chunks: ChunkTransaction<PostgresTransform>,
    of spans: LeasedSpans,
    patience: Duration?,
    reconnectingFor reconnection: Duration,
    _ computing: @escaping Computing
  ) {
    self.chunks = chunks
    self.spans = spans
    self.patience = patience
    self.reconnection = reconnection
    self.computing = computing
  }

  package var inOrder: Bool { false }

  package func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Prepared>,
    in worker: PostgresConnection
  ) async throws(BatchError) -> PreparedChunk<Prepared> {
    let transform = chunks.change
    let limit = chunks.limits.statement
    let keys = try spans.span(of: positions).keys(positions, key: transform.key)
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
    let start = ContinuousClock.now
    // After a break the ledger says what became of the chunk.
    let (outcomes, after) = try await prepared.worker.persistently(within: reconnection) {
      session throws(BatchError) in
      var method = before
      let outcomes = try chunks.run(
        prepared.chunk,
        at: positions,
        under: lease,
        by: &method,
        in: session,
        computing: compute
      )
      return (outcomes, method)
    }
    if after != before { method.withLock { $0 = after } }
    return Commit(outcomes: outcomes, duration: start.duration(to: .now))
  }

  package func synchronize(
    _ progress: inout RunProgress,
    done: DoneRanges,
    failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]? { nil }

  package func finish(_ progress: inout RunProgress) async throws(BatchError) {}
}
#endif
