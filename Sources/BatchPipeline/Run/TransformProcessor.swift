import BatchIdentifiers
import BatchStore

/// Transforms: workers read rows and have them computed, the writer lane sets what came of it.
struct TransformProcessor: ChunkProcessor {
  let list: IdentifierList
  let transform: RowTransform
  let run: String
  let lane: WriterLane
  let ledger: LedgerPlace
  /// How many identifiers of the run may fail.
  let failureLimit: Int

  var inOrder: Bool { false }

  /// A computed chunk, and the context that computed it.
  struct Prepared: Sendable {
    var chunk: TransformedChunk
    let context: StoreConnection
  }

  func prepare(
    _ positions: Range<Int>,
    in context: StoreConnection
  ) async throws(BatchError) -> PreparedChunk<Prepared> {
    let chunk = try await compute(in: context) { connection, look, limit throws(BatchError) in
      try transform.prepare(
        ChunkKeys(list, positions, key: transform.target.key),
        run: run,
        look: look,
        failing: limit,
        holding: ChunkBytes.chunkLimit,
        in: connection
      )
    }
    return PreparedChunk(
      content: Prepared(chunk: chunk, context: context),
      count: chunk.count,
      byteCount: chunk.byteCount
    )
  }

  func commit(
    _ prepared: Prepared,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    var chunk = prepared.chunk
    // Computed by the worker again where others have changed rows, and each time only those, since
    // they are fewer each time and nobody waits for the lock meanwhile. Where others are faster than
    // the handler, the lane computes the few that are left.
    for _ in 0..<Self.refreshes {
      do throws(BatchError) {
        return try await apply(chunk, at: positions, recomputing: false)
      } catch {
        guard error.code == .rowsChanged else { throw error }
      }
      let stale = chunk
      chunk = try await compute(in: prepared.context) {
        connection,
        look,
        limit throws(BatchError) in
        try transform.refresh(stale, look: look, failing: limit, in: connection)
      }
    }
    return try await apply(chunk, at: positions, recomputing: true)
  }

  private static let refreshes = 5

  private func apply(
    _ chunk: TransformedChunk,
    at positions: Range<Int>,
    recomputing: Bool
  ) async throws(BatchError) -> Commit {
    try await lane.apply(
      transform,
      chunk,
      at: positions,
      failing: failureLimit,
      recomputing: recomputing
    )
  }

  /// Computes a chunk in a worker's context, within the time that a handler has.
  private func compute(
    in context: StoreConnection,
    _ body:
      @escaping @Sendable (
        _ connection: Connection,
        _ look: Int,
        _ limit: Int?
      ) throws(BatchError) -> TransformedChunk
  ) async throws(BatchError) -> TransformedChunk {
    let (lane, failureLimit) = (lane, failureLimit)
    // A handler that never returns cannot be stopped, since Swift has no way to end a thread. It is
    // given up: the run fails, and what is committed stays.
    return try await withTimeLimit(transform.timeout) { begin throws(BatchError) in
      try await context.perform { connection throws(BatchError) in
        begin()
        // Noted before anything is read: whatever others commit from here on is noticed.
        return try body(connection, lane.look, failureLimit == 0 ? nil : failureLimit)
      }
    }
  }

  func synchronize(
    _ progress: inout RunProgress,
    done: DoneRanges,
    failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]? {
    try await lane.synchronize(&progress, ledger, done: done, failedCount: failedCount)
  }

  func finish(_ progress: inout RunProgress) async throws(BatchError) {
    try await lane.finish(after: progress.elapsedSeconds)
  }
}

/// Waits for `body`, but no longer than so long after it has called `begin`; a `body` that goes on
/// after that is left alone.
private func withTimeLimit<Value: Sendable>(
  _ limit: Duration?,
  _ body: @escaping @Sendable (_ begin: @Sendable () -> Void) async throws(BatchError) -> Value
) async throws(BatchError) -> Value {
  guard let limit else { return try await body {} }
  typealias Answer = Result<Value, BatchError>
  let result = await withCheckedContinuation { (continuation: CheckedContinuation<Answer, Never>) in
    let waiting = Lock<CheckedContinuation<Answer, Never>?>(continuation)
    let timer = Lock<Task<Void, Never>?>(nil)
    Task {
      let answer: Answer
      do throws(BatchError) {
        answer = .success(
          try await body {
            let task = Task {
              guard (try? await Task.sleep(for: limit)) != nil else { return }
              waiting.take()?.resume(returning: .failure(.handlerTimeout(after: limit)))
            }
            timer.withLock { $0 = task }
          }
        )
      } catch {
        answer = .failure(error)
      }
      timer.take()?.cancel()
      waiting.take()?.resume(returning: answer)
    }
  }
  return try result.get()
}

extension Lock {
  /// Takes out what there is.
  fileprivate func take<Wrapped>() -> Wrapped? where Value == Wrapped? {
    withLock { value in
      defer { value = nil }
      return value
    }
  }
}
