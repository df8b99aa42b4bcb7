package import BatchIdentifiers

/// Enforces the time limit of handlers.
///
/// A handler that never returns is abandoned together with its context. All calls waiting for that
/// context fail, and so does the run. Committed chunks remain.
package final class HandlerTimes<Value: Sendable>: Sendable {
  private struct State {
    /// The answers that callers wait for, by context.
    var waiting: [ObjectIdentifier: [HandlerAnswer<Value>]] = [:]
    var lost: Set<ObjectIdentifier> = []
  }

  private let limit: Duration?
  private let state = Lock(State())

  package var hasLost: Bool { state.withLock { !$0.lost.isEmpty } }

  package init(limit: Duration?) { self.limit = limit }

  /// Waits for `body`, which calls `begin` when it starts in its context, after earlier calls.
  ///
  /// The wait ends with `handlerTimeout` when the time limit is over, counted from `begin`, or when
  /// a stop of the run allows no more time.
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

  /// Registers an expected answer; returns false if its context was abandoned.
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
