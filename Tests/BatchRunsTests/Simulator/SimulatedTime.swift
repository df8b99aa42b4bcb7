/// Runs the tasks of a simulation one after another on the thread of the simulation, in the order in which they become ready.
final class SimulatedExecutor: TaskExecutor, @unchecked Sendable {
  private var jobs: [UnownedJob] = []

  func enqueue(_ job: consuming ExecutorJob) { jobs.append(UnownedJob(job)) }

  /// Runs tasks until all of them wait.
  func drain() {
    var next = 0
    while next < jobs.count {
      jobs[next].runSynchronously(on: asUnownedTaskExecutor())
      next += 1
    }
    jobs.removeAll(keepingCapacity: true)
  }
}

/// The wait of a task, which ends at a time, or early by somebody else, or when the task is cancelled.
final class Sleeper: @unchecked Sendable {
  private var continuation: CheckedContinuation<Void, Never>?
  private(set) var isOver = false

  func sleep() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if isOver { continuation.resume() } else { self.continuation = continuation }
      }
    } onCancel: {
      end()
    }
  }

  func end() {
    isOver = true
    continuation?.resume()
    continuation = nil
  }
}
