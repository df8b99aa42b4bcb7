package import BatchIdentifiers
import Dispatch

/// The answer of a handler or, if that takes too long, the error that says so: whichever comes first.
///
/// A handler that never returns cannot be stopped, since Swift has no way to end a thread. It is left
/// alone, and what it answers after all is nobody's.
package final class HandlerAnswer<Value: Sendable>: Sendable {
  private typealias Answer = Result<Value, BatchError>

  private struct State {
    var answer: Answer?
    /// Who is told once there is one.
    var tell: (@Sendable (Answer) -> Void)?
  }

  private let late: Answer
  private let state = Lock(State())
  private let limit: Duration

  /// An answer that is not there yet, of a handler that has so long.
  package init(within limit: Duration) {
    self.limit = limit
    late = .failure(.handlerTimeout(after: limit))
  }

  /// Gives the answer, unless there is one.
  package func give(_ answer: Result<Value, BatchError>) {
    let tell = state.withLock { state in
      let tell = state.answer == nil ? state.tell : nil
      state.answer = state.answer ?? answer
      return tell
    }
    tell?(answer)
  }

  /// Says that the time is over, unless there is an answer.
  package func expire() { give(late) }

  /// Waits until there is an answer, or somebody says that the time is over.
  package func value() async throws(BatchError) -> Value {
    try await withCheckedContinuation { continuation in
      whenGiven { continuation.resume(returning: $0) }
    }.get()
  }

  /// Waits on this thread, until the time is over that begins now.
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
