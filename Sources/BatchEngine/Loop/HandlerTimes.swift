package import BatchIdentifiers

/// The time that a handler has for a chunk.
///
/// A handler that never returns is given up with its context: whatever waits for that fails, and so does
/// the run. What is committed stays.
package final class HandlerTimes<Value: Sendable>: Sendable {
  private struct State {
    /// The answers that are waited for in each context.
    var waiting: [ObjectIdentifier: [HandlerAnswer<Value>]] = [:]
    /// Contexts that were given up.
    var lost: Set<ObjectIdentifier> = []
  }

  private let limit: Duration?
  private let state = Lock(State())

  /// - Parameter limit: How long a handler has; nil if it has any time.
  package init(limit: Duration?) { self.limit = limit }

  /// Waits for `body`, but no longer than the limit after a handler has begun in its context.
  ///
  /// - Parameters:
  ///   - context: Where `body` is done, after what it was asked before.
  ///   - body: Calls `begin` when it is its turn.
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
              guard (try? await Task.sleep(for: limit)) != nil else { return }
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

  /// Notes an answer that is waited for; false if its context is lost.
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
