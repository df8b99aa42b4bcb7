public import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// How a save treats a row that somebody else changed since this context read it.
///
/// Names and behavior are Core Data's.
public enum MergePolicy: Sendable {
  /// The save throws `BatchError` with code `mergeConflict` and writes nothing.
  ///
  /// A row deleted on both sides is no conflict, under any policy: both wanted the same. In Core
  /// Data it is a conflict under this one.
  case error
  /// Values set here are written; other attributes keep the store's values. A row deleted there and
  /// changed here is inserted again, with the values that the object had read; columns that the
  /// class does not map get their defaults. If the object had not read the row since it had to,
  /// those values are unknown, and it is a conflict after all. A row changed there and deleted here
  /// is deleted.
  case mergeByPropertyObjectTrump
  /// Values set here are written unless the attribute was changed in the store too. A row deleted
  /// there stays deleted; one deleted here keeps the store's values.
  case mergeByPropertyStoreTrump
  /// All attributes are written as they are here; a row deleted there is inserted again, as with
  /// ``mergeByPropertyObjectTrump``.
  case overwrite
  /// Changes and deletions made here are dropped.
  case rollback
}

/// A row changed here and by somebody else.
public struct MergeConflict: Sendable {
  /// The object's identifier.
  public let identifier: PersistentIdentifier
  /// Whether the object was being deleted.
  public let isDeletion: Bool
  /// The attributes as the object had read them.
  public let objectSnapshot: [String: SQLValue]
  /// The attributes set on the object.
  public let changedValues: [String: SQLValue]
  /// The attributes' current values in the store; nil if the row is gone.
  ///
  /// There is no counterpart of Core Data's `cachedSnapshot`: nothing is cached between context and
  /// store.
  public let persistedSnapshot: [String: SQLValue]?
}

/// The conflicts that prevented a save, kept as `BatchError.underlying`.
public struct MergeConflicts: Error, Sendable {
  /// All conflicts of one store, in the order in which the objects were changed.
  public let conflicts: [MergeConflict]
}

extension BatchError {
  /// The conflicts behind an error of code `mergeConflict`; none for others.
  public var mergeConflicts: [MergeConflict] {
    (underlying as? MergeConflicts)?.conflicts ?? []
  }

  init(_ conflicts: [MergeConflict]) {
    self.init(
      .mergeConflict,
      conflicts.count == 1
        ? "the row was \(conflicts[0].persistedSnapshot == nil ? "deleted" : "changed") by somebody else"
        : "\(conflicts.count.grouped) rows were changed by somebody else, this one among them",
      at: conflicts.first?.identifier.description,
      remedy: "refresh the objects and save again, or set the context's mergePolicy",
      underlying: MergeConflicts(conflicts: conflicts)
    )
  }
}

extension BatchError.Code {
  /// Somebody else has changed a row since it was read: Core Data's error 133020.
  public static let mergeConflict = Self(rawValue: "mergeConflict")
}
