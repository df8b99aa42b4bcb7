package import BatchIdentifiers

/// The time limit of a handler for a chunk.
///
/// A handler that never returns is abandoned with its context: all calls waiting for that context
/// fail, and so does the run. What is committed stays.
package final class HandlerTimes<Value: Sendable>: Sendable {
  private struct State {
    /// The expected answers in each context.
    var waiting: [ObjectIdentifier: [HandlerAnswer<Value>]] = [:]
    /// Abandoned contexts.
    var lost: Set<ObjectIdentifier> = []
  }

  private let limit: Duration?
  private let state = Lock(State())

  /// Whether a context was abandoned.
  package var hasLost: Bool { state.withLock { !$0.lost.isEmpty } }

  /// - Parameter limit: A handler's time limit; nil for none.
  package init(limit: Duration?) { self.limit = limit }

  /// Waits for `body`, at most for the limit after a handler has begun in its context, or until a stop of the
  /// run no longer allows it.
  ///
  /// - Parameters:
  ///   - context: Where `body` runs, after earlier calls.
  ///   - body: Calls `begin` when it starts.
  /// - Returns: What `body` returns.
  /// - Throws: What `body` throws, or `BatchError` of code `handlerTimeout`.
  package func wait(
    for context: some AnyObject,
    _ body:
      @escaping @Sendable (
        _ begin: @Sendable () -> Void
      ) async throws(BatchError) -> Value
  ) async throws(BatchError) -> Value {
    guard let limit else { return try await body {} }
    let context = ObjectIdentifier(context)
    let answer = HandlerAnswer<Value>(within: limit)
    guard expect(answer, in: context) else { throw .handlerTimeout(after: limit) }
    defer { state.withLock { $0.waiting[context]?.removeAll { $0 === answer } } }
    Task {
      let timer = Lock<Task<Void, Never>?>(nil)
      let result: Result<Value, BatchError>
      do throws(BatchError) {
        result = .success(
          try await body {
            let task = Task {
              let end = ContinuousClock.now + limit
              while ContinuousClock.now < end, !RunStop.isOver() {
                let rest = min(ContinuousClock.now.duration(to: end), RunThrottle.lookInterval)
                guard (try? await Task.sleep(for: rest)) != nil else { return }
              }
              self.giveUp(context)
            }
            timer.withLock { $0 = task }
          }
        )
      } catch {
        result = .failure(error)
      }
      timer.withLock { $0?.cancel() }
      answer.give(result)
    }
    return try await answer.value()
  }

  /// Notes an expected answer; false if its context was abandoned.
  private func expect(_ answer: HandlerAnswer<Value>, in context: ObjectIdentifier) -> Bool {
    state.withLock { state in
      guard !state.lost.contains(context) else { return false }
      state.waiting[context, default: []].append(answer)
      return true
    }
  }

  private func giveUp(_ context: ObjectIdentifier) {
    let answers = state.withLock { state in
      state.lost.insert(context)
      return state.waiting.removeValue(forKey: context) ?? []
    }
    for answer in answers { answer.expire() }
  }
}
