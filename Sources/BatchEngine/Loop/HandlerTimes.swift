package import BatchIdentifiers

/// The time that a handler has for a chunk.
///
/// A handler that never returns cannot be stopped, since Swift has no way to end a thread. It is given
/// up with its context: whatever waits for that fails, and so does the run. What is committed stays.
package final class HandlerTimes<Value: Sendable>: Sendable {
  private typealias Answer = Result<Value, BatchError>

  private struct State {
    var number = 0
    var waiting:
      [Int: (context: ObjectIdentifier, continuation: CheckedContinuation<Answer, Never>)] = [:]
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
    let answer = await withCheckedContinuation { continuation in
      guard let number = add(continuation, in: context) else {
        return continuation.resume(returning: .failure(.handlerTimeout(after: limit)))
      }
      Task {
        let timer = Lock<Task<Void, Never>?>(nil)
        let answer: Answer
        do throws(BatchError) {
          answer = .success(
            try await body {
              let task = Task {
                guard (try? await Task.sleep(for: limit)) != nil else { return }
                self.giveUp(context, after: limit)
              }
              timer.withLock { $0 = task }
            }
          )
        } catch {
          answer = .failure(error)
        }
        timer.withLock { $0?.cancel() }
        self.take(number)?.resume(returning: answer)
      }
    }
    return try answer.get()
  }

  /// Notes who waits; nil if the context is lost.
  private func add(
    _ continuation: CheckedContinuation<Answer, Never>,
    in context: ObjectIdentifier
  ) -> Int? {
    state.withLock { state in
      guard !state.lost.contains(context) else { return nil }
      state.number += 1
      state.waiting[state.number] = (context, continuation)
      return state.number
    }
  }

  private func take(_ number: Int) -> CheckedContinuation<Answer, Never>? {
    state.withLock { $0.waiting.removeValue(forKey: number)?.continuation }
  }

  private func giveUp(_ context: ObjectIdentifier, after limit: Duration) {
    let waiting = state.withLock { state in
      state.lost.insert(context)
      let waiting = state.waiting.filter { $0.value.context == context }
      for number in waiting.keys { state.waiting[number] = nil }
      return waiting.values
    }
    for (_, continuation) in waiting {
      continuation.resume(returning: .failure(.handlerTimeout(after: limit)))
    }
  }
}
