public import BatchIdentifiers
public import BatchPlatform

extension ModelContext {
  /// Whether this context merges changes that other contexts of the container save.
  ///
  /// It merges between pieces of work, never within one, where a value could change after it was
  /// read. For the context of an actor, such as a ``BackgroundContext``, this is before each job of
  /// its executor; for any other context, before each fetch and look-up that can throw. Unsaved
  /// changes are kept, as in ``mergeChanges(_:)->[ManagedObject]``.
  ///
  /// Without merging, changes are visible in objects without unsaved changes after they are
  /// refreshed, fetched or looked up again.
  public var automaticallyMergesChangesFromParent: Bool {
    get { mergesSaved }
    set {
      checkQueue()
      // Earlier saves are not merged afterwards.
      noticeSaved()
      mergesSaved = newValue
    }
  }

  /// Updates objects with changes that were made elsewhere.
  ///
  /// Objects of updated rows become faults, and objects of deleted rows become `isDeleted`. Nothing
  /// is read, except for new objects of an entity with sub-entities, see ``model(for:)``. An object
  /// keeps its unsaved values. Unlike in Core Data, these do not silently overwrite values that
  /// others have saved for the same attribute: that is a conflict, and so is a deleted row.
  ///
  /// - Returns: The objects of inserted rows, as faults, which the context does not keep alive.
  /// - Returns: The objects of the inserted rows, as faults, which the context does not keep alive.
  @discardableResult
  public func mergeChanges(_ changes: ModelChanges) -> [ManagedObject] {
    checkQueue()
    merge(changes)
    return changes.inserted.map { model(for: $0) }
  }

  /// Updates objects with changes given by URIs; ignores URIs that are unknown in this container.
  ///
  /// - Returns: As for `mergeChanges(_:)`.
  @discardableResult
  public func mergeChanges(
    inserted: [URL] = [],
    updated: [URL] = [],
    deleted: [URL] = []
  ) -> [ManagedObject] {
    mergeChanges(
      ModelChanges(
        inserted: inserted.compactMap { container.identifier(forURI: $0) },
        updated: updated.compactMap { container.identifier(forURI: $0) },
        deleted: deleted.compactMap { container.identifier(forURI: $0) }
      )
    )
  }

  /// Updates objects with changes given by identifiers.
  ///
  /// - Returns: As for `mergeChanges(_:)`.
  @discardableResult
  public func mergeChanges(
    inserted: [PersistentIdentifier] = [],
    updated: [PersistentIdentifier] = [],
    deleted: [PersistentIdentifier] = []
  ) -> [ManagedObject] {
    mergeChanges(ModelChanges(inserted: inserted, updated: updated, deleted: deleted))
  }

  /// Updates objects of several contexts, all of which belong to the caller.
  public static func mergeChanges(_ changes: ModelChanges, into contexts: [ModelContext]) {
    for context in contexts { context.mergeChanges(changes) }
  }

  /// Takes note of saves of other contexts, unless this could change values that the current work
  /// has read.
  ///
  /// A merging context of an executor does this only between two pieces of work.
  func noticeSaved() {
    if queue == nil || !mergesSaved { mergeSaved() }
  }

  /// Merges saves of other contexts, if this context merges.
  ///
  /// Otherwise, this only ensures that no object keeps an outdated row when it is refreshed or
  /// fetched.
  func mergeSaved() {
    guard let inbox, inbox.hasChanges else { return }
    generation += 1
    switch (inbox.take(), mergesSaved) {
    case (.changes(let all), true):
      for changes in all { merge(changes) }
    case (.changes(let all), false):
      for changes in all {
        for identifier in changes.inserted + changes.updated + changes.deleted {
          if let object = registered(identifier) { object.stored = object.stored.outdated }
        }
      }
    case (.everything, true):
      for object in registry.objects where object.unsaved != .insert { outdate(object) }
    case (.everything, false):
      for object in registry.objects { object.stored = object.stored.outdated }
    }
  }

  private func merge(_ changes: ModelChanges) {
    generation += 1
    for identifier in changes.inserted + changes.updated {
      if let object = registered(identifier), object.unsaved != .insert { outdate(object) }
    }
    for identifier in changes.deleted {
      guard let object = registered(identifier), object.unsaved != .insert else { continue }
      if object.unsaved == nil { object.stored = .gone(object.row) }
    }
  }

  private func outdate(_ object: ManagedObject) {
    if object.unsaved == .delete, let row = object.row {
      // A deletion is checked against the row that it was based on.
      object.stored = .superseded(row)
    } else {
      object.stored = .fault
    }
  }
}
