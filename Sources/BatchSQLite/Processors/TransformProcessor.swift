package import BatchRuns
package import BatchIdentifiers

/// Transforms rows: workers read and compute them, and the writer lane sets the results.
package struct TransformProcessor: ChunkProcessor {
  package let list: PackedIdentifiers
  package let transform: RowTransform
  package let run: String
  package let store: Store
  package let lane: WriterLane
  package let onFailure: FailurePolicy
  package let handlerTimeLimit: Duration?
  private let times: HandlerTimes<TransformedChunk>

  package init(
    list: PackedIdentifiers,
    transform: RowTransform,
    run: String,
    store: Store,
    lane: WriterLane,
    onFailure: FailurePolicy,
    handlerTimeLimit: Duration?,
    inOrder: Bool = false
  ) {
    self.inOrder = inOrder
    self.list = list
    self.transform = transform
    self.run = run
    self.store = store
    self.lane = lane
    self.onFailure = onFailure
    self.handlerTimeLimit = handlerTimeLimit
    times = HandlerTimes(limit: transform.timeout)
  }

  package let inOrder: Bool

  package func makeWorker(_ label: String) -> StoreConnection { store.makeWorker(label) }

  package struct Prepared: Sendable {
    package var chunk: TransformedChunk
    package let context: StoreConnection
  }

  package func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Prepared>,
    in context: StoreConnection
  ) async throws(BatchError) -> PreparedChunk<Prepared> {
    let chunk = try await compute(in: context) { connection, lookCount throws(BatchError) in
      if let earlier = attempt.earlier?.chunk {
        return try transform.refresh(
          earlier,
          lookCount: lookCount,
          onFailure: onFailure,
          isLastTry: attempt.isLast,
          holding: ChunkBytes.chunkLimit,
          in: connection
        )
      }
      return try transform.prepare(
        ChunkKeys(list, positions, key: transform.target.key),
        at: positions.lowerBound,
        run: run,
        lookCount: lookCount,
        onFailure: onFailure,
        isLastTry: attempt.isLast,
        holding: ChunkBytes.chunkLimit,
        in: connection
      )
    }
    return PreparedChunk(
      content: Prepared(chunk: chunk, context: context),
      count: chunk.count,
      byteCount: chunk.byteCount,
      postponement: chunk.transformed.postponement
    )
  }

  package func commit(
    _ prepared: Prepared,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    var chunk = prepared.chunk
    var refreshes = 0
    // The worker recomputes only rows that others have changed. With each attempt they become
    // fewer, and other writers do not wait for the lock meanwhile. If others are faster than the
    // handler, the lane computes the few that are left.
    while true {
      do throws(BatchError) {
        return try await lane.commit(positions, onFailure: onFailure) {
          [transform, chunk, recomputes = refreshes == Self.refreshLimit]
          (lane: isolated WriterLane, onFailure) throws(BatchError) in
          try transform.write(chunk, onFailure: onFailure, recomputing: recomputes, by: lane)
        }
      } catch {
        guard error.code == .rowsChanged, refreshes < Self.refreshLimit else { throw error }
      }
      refreshes += 1
      let stale = chunk
      chunk = try await compute(in: prepared.context) { connection, lookCount throws(BatchError) in
        try transform.refresh(
          stale,
          lookCount: lookCount,
          onFailure: onFailure,
          isLastTry: false,
          in: connection
        )
      }
      // Rare enough to redo the whole chunk.
      if let error = chunk.transformed.postponement { throw error }
    }
  }

  private static let refreshLimit = 5

  package var hasLostWorkers: Bool { times.hasLost }

  /// Computes a chunk on a worker's connection, within the handler's time limit.
  private func compute(
    in context: StoreConnection,
    _ body:
      @escaping @Sendable (
        _ connection: Connection,
        _ lookCount: Int
      ) throws(BatchError) -> TransformedChunk
  ) async throws(BatchError) -> TransformedChunk {
    let lane = lane
    return try await times.wait(for: context) { begin throws(BatchError) in
      try await context.perform { connection throws(BatchError) in
        begin()
        // Noted before the first read, so that all later commits of others are noticed.
        return try body(connection, lane.watch.lookCount)
      }
    }
  }
}
