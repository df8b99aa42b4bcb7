public import BatchIdentifiers

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ModelContext {
  /// Whether this context shows what other contexts of the container save.
  ///
  /// It shows between pieces of work, never within one, where a value could change after it was
  /// read: in an actor's context, such as a ``BackgroundContext``, before each job of its executor;
  /// in any other, before each fetch and look-up that can throw. Unsaved changes are kept, as in
  /// ``mergeChanges(_:)->[ManagedObject]``.
  ///
  /// Without it, it shows in objects without unsaved changes, once refreshed, fetched or looked up
  /// again.
  public var automaticallyMergesChangesFromParent: Bool {
    get { mergesSaved }
    set {
      checkQueue()
      // What was saved before is not what is merged from now on.
      noticeSaved()
      mergesSaved = newValue
    }
  }

  /// Brings objects up to date with changes that were made elsewhere; reads nothing that is not to be
  /// a new object of an entity with sub-entities, see ``model(for:)``.
  ///
  /// Objects of updated rows become faults, those of deleted rows `isDeleted`. An object with values
  /// that were not saved keeps them. Unlike in Core Data they are not written over what others made
  /// of the same attribute in the meantime, which would undo it unseen: that is a conflict, and so
  /// is a row that was deleted.
  ///
  /// - Returns: The objects of the inserted rows, as faults, which the context does not keep alive.
  @discardableResult
  public func mergeChanges(_ changes: ModelChanges) -> [ManagedObject] {
    checkQueue()
    merge(changes)
    return changes.inserted.map { model(for: $0) }
  }

  /// Brings objects up to date with changes that are given by URIs.
  ///
  /// URIs that mean nothing in this container are passed over.
  ///
  /// - Returns: As `mergeChanges(_:)` does.
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

  /// Brings objects up to date with changes that are given by identifiers.
  ///
  /// - Returns: As `mergeChanges(_:)` does.
  @discardableResult
  public func mergeChanges(
    inserted: [PersistentIdentifier] = [],
    updated: [PersistentIdentifier] = [],
    deleted: [PersistentIdentifier] = []
  ) -> [ManagedObject] {
    mergeChanges(ModelChanges(inserted: inserted, updated: updated, deleted: deleted))
  }

  /// Brings objects of several contexts, all of them the caller's, up to date.
  public static func mergeChanges(_ changes: ModelChanges, into contexts: [ModelContext]) {
    for context in contexts { context.mergeChanges(changes) }
  }

  /// Takes note of what other contexts saved since the last time, where that changes nothing that the
  /// work under way has read: in a context that merges by itself and is an executor's, that is
  /// between two pieces of work.
  func noticeSaved() {
    if queue == nil || !mergesSaved { mergeSaved() }
  }

  /// Merges what other contexts saved since the last time, if this context wants it.
  ///
  /// Otherwise no object keeps a row that is not the latest, once it is refreshed or fetched.
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

  /// Makes an object read its row again, whatever was set on it.
  private func outdate(_ object: ManagedObject) {
    if object.unsaved == .delete, let row = object.row {
      // A deletion is checked against the row that it was decided on.
      object.stored = .superseded(row)
    } else {
      object.stored = .fault
    }
  }
}
