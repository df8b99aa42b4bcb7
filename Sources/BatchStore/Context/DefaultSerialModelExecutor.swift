import Dispatch

/// Runs an actor's work on a dispatch queue of its own, so that what blocks in SQLite occupies a
/// thread of its own and never one of the cooperative pool.
public final class DefaultSerialModelExecutor: SerialModelExecutor, @unchecked Sendable {
  // Sendable: the context is used by what runs on the queue only.
  /// The context, for use by work on this executor only.
  public let modelContext: ModelContext

  private let queue: DispatchQueue
  private static let current = DispatchSpecificKey<ObjectIdentifier>()

  /// Makes an executor that owns a context from now on.
  public init(modelContext: ModelContext) {
    self.modelContext = modelContext
    queue = DispatchQueue(label: "batch.context")
    queue.setSpecific(key: Self.current, value: ObjectIdentifier(self))
    modelContext.queue = queue
  }

  /// Runs the job after all that were enqueued before it.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async {
      self.modelContext.mergeSaved()
      unsafe job.runSynchronously(on: self.asUnownedSerialExecutor())
    }
  }

  /// Ends the process unless it is called by work on this executor.
  public func checkIsolated() {
    dispatchPrecondition(condition: .onQueue(queue))
  }

  /// Runs `body` in its turn and waits for it; at once if this is called by work on this executor.
  func performAndWait<Result: Sendable, Failure: Error>(
    _ body: @Sendable (ModelContext) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    if DispatchQueue.getSpecific(key: Self.current) == ObjectIdentifier(self) {
      return try body(modelContext)
    }
    let result = queue.sync {
      modelContext.mergeSaved()
      return Swift.Result { () throws(Failure) in try body(modelContext) }
    }
    return try result.get()
  }
}
