import Dispatch

/// A serial executor on a dispatch queue, so that an actor's blocking calls to SQLite occupy a
/// thread of their own and never one of the cooperative pool.
package final class DispatchSerialExecutor: SerialExecutor {
  private let queue: DispatchQueue

  /// An executor whose thread shows under `label` in debuggers.
  package init(label: String) {
    queue = DispatchQueue(label: label)
  }

  /// Runs the job after all that were enqueued before it.
  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}
