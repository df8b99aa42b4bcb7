/// Runs the work of one context.
public protocol ModelExecutor: Executor {
  /// The context, for use by that work only.
  ///
  /// - Precondition: The caller is work of this executor.
  var modelContext: ModelContext { get }
}

/// Runs the work of one context, one piece after another.
public protocol SerialModelExecutor: ModelExecutor, SerialExecutor {}
