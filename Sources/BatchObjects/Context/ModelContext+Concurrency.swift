import BatchPlatform
import Dispatch

extension ModelContext {
  /// Traps if the context belongs to a queue, this code is not on it, and `BATCH_CONCURRENCY_DEBUG`
  /// is 1.
  ///
  /// The compiler finds most wrong uses, but not all.
  func checkQueue() {
    guard let queue, isDebuggingConcurrency else { return }
    dispatchPrecondition(condition: .onQueue(queue))
  }
}

let isDebuggingConcurrency =
  ProcessInfo.processInfo.environment["BATCH_CONCURRENCY_DEBUG"] == "1"
