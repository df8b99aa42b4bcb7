/// What runs the work of one context.
public protocol ModelExecutor: Executor {
  /// The context, for use by that work only.
  ///
  /// - Precondition: This is called by that work.
  var modelContext: ModelContext { get }
}

/// What runs the work of one context, one piece after the other.
public protocol SerialModelExecutor: ModelExecutor, SerialExecutor {}
