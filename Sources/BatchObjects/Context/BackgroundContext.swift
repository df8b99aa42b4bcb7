/// A context on its own thread, for work that should not run on the caller's thread.
///
///     let background = container.newBackgroundContext()
///     let total = try await background.perform { context in
///       try context.fetch(Order.self).reduce(0) { $0 + $1.price }
///     }
///
/// Everything passed in and out is `Sendable`: identifiers and values, not objects.
public actor BackgroundContext: ModelActor {
  /// The container of the context.
  public nonisolated let modelContainer: ModelContainer
  /// The executor that runs the context's work.
  public nonisolated var modelExecutor: any SerialModelExecutor { executor }

  private nonisolated let executor: DefaultSerialModelExecutor

  /// Creates a context for a container.
  public init(_ container: ModelContainer) {
    modelContainer = container
    executor = DefaultSerialModelExecutor(modelContext: ModelContext(container))
  }

  /// Runs `body` with the context, after work that was requested earlier.
  ///
  /// - Throws: The error of `body`.
  public func perform<Result: Sendable, Failure: Error>(
    _ body: @Sendable (ModelContext) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(modelContext)
  }

  /// Runs `body` with the context, and blocks the thread until it is done.
  ///
  /// Within work of this context, `body` runs immediately. It is an error if work of this context
  /// is waiting for the caller, as when another context's `performAndWait(_:)` is called from here
  /// and calls this one.
  ///
  /// - Precondition: `body` can throw that error. If it throws no errors, or only its own type, the
  ///   process ends instead.
  /// - Throws: The error of `body`, or `BatchError` with code `deadlock`.
  public nonisolated func performAndWait<Result: Sendable, Failure: Error>(
    _ body: @Sendable (ModelContext) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try executor.performAndWait(body)
  }
}

extension ModelContainer {
  /// Makes a new context on its own thread.
  public func newBackgroundContext() -> BackgroundContext {
    BackgroundContext(self)
  }
}
