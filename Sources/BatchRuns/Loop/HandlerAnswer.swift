package import BatchIdentifiers
import Dispatch

/// The answer of a handler or a timeout error, whichever comes first.
///
/// Swift cannot end a thread, so a handler that never returns is abandoned, and its late answer is
/// ignored.
package final class HandlerAnswer<Value: Sendable>: Sendable {
  private typealias Answer = Result<Value, BatchError>

  private struct State {
    var answer: Answer?
    /// Called with the answer.
    var tell: (@Sendable (Answer) -> Void)?
  }

  private let late: Answer
  private let state = Lock(State())
  private let limit: Duration

  package init(within limit: Duration) {
    self.limit = limit
    late = .failure(.handlerTimeout(after: limit))
  }

  /// Sets the answer, unless there is one.
  package func give(_ answer: Result<Value, BatchError>) {
    let tell = state.withLock { state in
      let tell = state.answer == nil ? state.tell : nil
      state.answer = state.answer ?? answer
      return tell
    }
    tell?(answer)
  }

  /// Sets a timeout error as the answer, unless there is one.
  package func expire() { give(late) }

  package func value() async throws(BatchError) -> Value {
    try await withCheckedContinuation { continuation in
      whenGiven { continuation.resume(returning: $0) }
    }.get()
  }

  /// Blocks this thread until there is an answer or the time limit, counted from this call, ends.
  package func block() throws(BatchError) -> Value {
    let isGiven = DispatchSemaphore(value: 0)
    whenGiven { _ in isGiven.signal() }
    let time = Int(clamping: Int64(limit / .nanoseconds(1)))
    _ = isGiven.wait(timeout: .now() + .nanoseconds(time))
    return try (state.withLock(\.answer) ?? late).get()
  }

  private func whenGiven(_ tell: @escaping @Sendable (Answer) -> Void) {
    let answer = state.withLock { state in
      state.tell = tell
      return state.answer
    }
    if let answer { tell(answer) }
  }
}
