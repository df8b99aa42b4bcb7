/// Runs the work of one context.
public protocol ModelExecutor: Executor {
  /// The context, for use by that work only.
  ///
  /// - Precondition: Called by that work.
  var modelContext: ModelContext { get }
}

/// Runs the work of one context, one piece after the other.
public protocol SerialModelExecutor: ModelExecutor, SerialExecutor {}
