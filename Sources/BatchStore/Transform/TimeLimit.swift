import BatchEngine
import BatchIdentifiers
import Dispatch

/// Runs `body` on another thread, and waits for it here, but no longer than `limit`.
///
/// A `body` that goes on after that is left alone, since Swift has no way to end a thread.
func withTimeLimit<Value: Sendable>(
  _ limit: Duration?,
  _ body: @escaping @Sendable () throws(BatchError) -> Value
) throws(BatchError) -> Value {
  guard let limit else { return try body() }
  let answer = Lock<Result<Value, BatchError>?>(nil)
  let isDone = DispatchSemaphore(value: 0)
  try DetachedThread.start {
    let result: Result<Value, BatchError>
    do throws(BatchError) {
      result = .success(try body())
    } catch {
      result = .failure(error)
    }
    answer.withLock { $0 = result }
    isDone.signal()
  }
  _ = isDone.wait(timeout: .now() + .nanoseconds(Int(clamping: Int64(limit / .nanoseconds(1)))))
  guard let result = answer.withLock({ $0 }) else { throw .handlerTimeout(after: limit) }
  return try result.get()
}
