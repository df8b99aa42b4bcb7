extension ModelContainer {
  /// The context of the main actor, always the same one: SwiftData's `mainContext`.
  ///
  /// What other contexts save shows in it by itself, with its next fetch or look-up. What it reads and
  /// saves blocks the main actor; where that would be felt, there is ``newBackgroundContext()``.
  ///
  /// Container and context keep each other, so that what is unsaved in it is not lost: a container whose
  /// main context was used is open for as long as the process runs. One that comes and goes, as in a
  /// test, is used with a `ModelContext` of its own.
  @MainActor public var mainContext: ModelContext {
    if let context = keptMainContext as? ModelContext { return context }
    let context = ModelContext(self)
    context.automaticallyMergesChangesFromParent = true
    keptMainContext = context
    return context
  }
}
