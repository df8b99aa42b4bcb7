public import BatchIdentifiers
import Dispatch

/// Runs the work of an actor on its own dispatch queue, so that blocking in SQLite never occupies a
/// thread of the cooperative pool.
///
/// Unlike in SwiftData, access is checked: the executor of an actor is available anywhere, but its
/// context is not.
public final class DefaultSerialModelExecutor: SerialModelExecutor, @unchecked Sendable {
  // Sendable: only code on the queue gets the context.
  private let context: ModelContext
  private let queue: DispatchQueue
  private static let current = DispatchSpecificKey<ObjectIdentifier>()
  /// The executors whose work is waiting for that of another one.
  private static let waits = Lock<[ObjectIdentifier: ObjectIdentifier]>([:])

  /// Creates an executor that owns the context from now on.
  public init(modelContext: ModelContext) {
    context = modelContext
    queue = DispatchQueue(label: "batch.context")
    queue.setSpecific(key: Self.current, value: ObjectIdentifier(self))
    modelContext.queue = queue
  }

  /// The context, for work of this executor only.
  ///
  /// - Precondition: The caller is work of this executor. Prepare a context before you give it to
  ///   the executor.
  public var modelContext: ModelContext {
    dispatchPrecondition(condition: .onQueue(queue))
    return context
  }

  /// Runs the job after all jobs that were enqueued before it.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async {
      self.context.mergeSaved()
      unsafe job.runSynchronously(on: self.asUnownedSerialExecutor())
    }
  }

  /// Traps unless the caller is work of this executor.
  public func checkIsolated() {
    dispatchPrecondition(condition: .onQueue(queue))
  }

  /// Runs `body` in its turn and waits for it; immediately within work of this executor.
  ///
  /// If work of this executor is already waiting for the caller, this throws a `BatchError`, so
  /// `Failure` must allow one.
  func performAndWait<Result: Sendable, Failure: Error>(
    _ body: @Sendable (ModelContext) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let caller = DispatchQueue.getSpecific(key: Self.current)
    if caller == ObjectIdentifier(self) { return try body(context) }
    if let caller, !isAwaited(by: caller) {
      guard let error = Self.deadlock as? Failure else { preconditionFailure("\(Self.deadlock)") }
      throw error
    }
    defer { if let caller { Self.waits.withLock { $0[caller] = nil } } }
    let result = queue.sync {
      context.mergeSaved()
      return Swift.Result { () throws(Failure) in try body(context) }
    }
    return try result.get()
  }

  /// Records that the caller waits for this executor; returns false if this one waits for the
  /// caller.
  private func isAwaited(by caller: ObjectIdentifier) -> Bool {
    Self.waits.withLock { waits in
      var next: ObjectIdentifier? = ObjectIdentifier(self)
      while let executor = next, executor != caller { next = waits[executor] }
      if next == nil { waits[caller] = ObjectIdentifier(self) }
      return next == nil
    }
  }

  private static var deadlock: BatchError {
    BatchError(
      .deadlock,
      "the context's own work waits for the work that would wait for it",
      remedy: "have the other context return what is needed, or await perform"
    )
  }
}

extension BatchError.Code {
  /// Two contexts would wait for each other forever.
  public static let deadlock = Self(rawValue: "deadlock")
}
