package import BatchIdentifiers
import Dispatch

/// A handler's answer or, if it takes too long, a timeout error: whichever comes first.
///
/// Swift cannot end a thread, so a handler that never returns is abandoned; a late answer is
/// ignored.
package final class HandlerAnswer<Value: Sendable>: Sendable {
  private typealias Answer = Result<Value, BatchError>

  private struct State {
    var answer: Answer?
    /// Receives the answer.
    var tell: (@Sendable (Answer) -> Void)?
  }

  private let late: Answer
  private let state = Lock(State())
  private let limit: Duration

  /// An answer still to come, with a time limit.
  package init(within limit: Duration) {
    self.limit = limit
    late = .failure(.handlerTimeout(after: limit))
  }

  /// Gives the answer, unless there is one already.
  package func give(_ answer: Result<Value, BatchError>) {
    let tell = state.withLock { state in
      let tell = state.answer == nil ? state.tell : nil
      state.answer = state.answer ?? answer
      return tell
    }
    tell?(answer)
  }

  /// Ends the waiting with a timeout, unless there is an answer.
  package func expire() { give(late) }

  /// Waits for the answer or the timeout.
  package func value() async throws(BatchError) -> Value {
    try await withCheckedContinuation { continuation in
      whenGiven { continuation.resume(returning: $0) }
    }.get()
  }

  /// Blocks this thread until there is an answer or the time limit, which starts now, has passed.
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
