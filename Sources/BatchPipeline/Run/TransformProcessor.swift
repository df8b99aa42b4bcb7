public import BatchIdentifiers
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
  /// How long a handler may take for a chunk; nil if whatever computes keeps time itself.
  let timeout: Duration?

  var inOrder: Bool { false }

  func prepare(
    _ positions: Range<Int>,
    in context: StoreConnection
  ) async throws(BatchError) -> TransformedChunk {
    guard let timeout else { return try await read(positions, in: context) }
    // A handler that never returns cannot be stopped, since Swift has no way to end a thread. It is
    // given up: the run fails, and what is committed stays.
    return try await withTimeLimit(timeout) { () async throws(BatchError) in
      try await read(positions, in: context)
    }
  }

  private func read(
    _ positions: Range<Int>,
    in context: StoreConnection
  ) async throws(BatchError) -> TransformedChunk {
    try await context.perform { connection throws(BatchError) in
      // Noted before anything is read: whatever others commit from here on is noticed.
      let look = lane.look
      return try transform.prepare(
        ChunkKeys(list, positions, key: transform.target.key),
        run: run,
        look: look,
        failing: failureLimit == 0 ? nil : failureLimit,
        in: connection
      )
    }
  }

  func commit(
    _ chunk: TransformedChunk,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    try await lane.apply(transform, chunk, at: positions, failing: failureLimit)
  }

  func synchronize(
    _ progress: inout RunProgress,
    done: DoneRanges,
    failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]? {
    try await lane.synchronize(&progress, ledger, done: done, failedCount: failedCount)
  }

  func finish(_ progress: inout RunProgress) async throws(BatchError) {}
}

/// Waits for `body`, but no longer than so long; a `body` that goes on after that is left alone.
private func withTimeLimit<Value: Sendable>(
  _ limit: Duration,
  _ body: @escaping @Sendable () async throws(BatchError) -> Value
) async throws(BatchError) -> Value {
  typealias Answer = Result<Value, BatchError>
  let result = await withCheckedContinuation { (continuation: CheckedContinuation<Answer, Never>) in
    let waiting = Lock<CheckedContinuation<Answer, Never>?>(continuation)
    let timer = Task {
      guard (try? await Task.sleep(for: limit)) != nil else { return }
      waiting.take()?.resume(
        returning: .failure(
          BatchError(
            .handlerTimeout,
            "the handler has not returned after \(limit)",
            remedy: "look for a row that it cannot end with, or raise action.timeout"
          )
        )
      )
    }
    Task {
      let answer: Answer
      do throws(BatchError) {
        answer = .success(try await body())
      } catch {
        answer = .failure(error)
      }
      timer.cancel()
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

extension BatchError.Code {
  /// A handler did not return in time.
  public static let handlerTimeout = Self(rawValue: "handlerTimeout")
}
