extension ModelContainer {
  /// The context of the main actor, always the same one: SwiftData's `mainContext`.
  ///
  /// It shows other contexts' saves at its next fetch or look-up. Reading and saving block the main
  /// actor; use ``newBackgroundContext()`` for longer work.
  ///
  /// Container and context retain each other, so that unsaved changes are not lost: a container
  /// whose main context was used stays open until the process exits. For short-lived containers, as
  /// in tests, make your own `ModelContext`.
  @MainActor public var mainContext: ModelContext {
    if let context = keptMainContext as? ModelContext { return context }
    let context = ModelContext(self)
    context.automaticallyMergesChangesFromParent = true
    keptMainContext = context
    return context
  }
}
