extension ModelContainer {
  /// The context of the main actor, which is always the same: SwiftData's `mainContext`.
  ///
  /// It shows saves of other contexts from its next fetch or look-up on. Reading and saving block
  /// the main actor; use ``newBackgroundContext()`` for longer work.
  ///
  /// The container and the context retain each other, so that unsaved changes are not lost: a
  /// container whose main context was used stays open until the process exits. For short-lived
  /// containers, as in tests, create a separate `ModelContext`.
  @MainActor public var mainContext: ModelContext {
    if let context = keptMainContext as? ModelContext { return context }
    let context = ModelContext(self)
    context.automaticallyMergesChangesFromParent = true
    keptMainContext = context
    return context
  }
}
