public import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// How a save treats a row that others have changed since this context read it.
///
/// The names and the behavior are those of Core Data.
public enum MergePolicy: Sendable {
  /// The save throws `BatchError` with code `mergeConflict` and writes nothing.
  ///
  /// A row that both sides have deleted is no conflict, under any policy. In Core Data, it is a
  /// conflict under this one.
  case error
  /// Values set here are written; other attributes keep the values in the store.
  ///
  /// A row that was deleted there and changed here is inserted again, with the values that the
  /// object had read; columns that the class does not map get their defaults. If the object had not
  /// read the row, these values are unknown, and it is a conflict after all. A row that was changed
  /// there and deleted here is deleted.
  case mergeByPropertyObjectTrump
  /// Values set here are written, except for attributes that were changed in the store too.
  ///
  /// A row that was deleted there stays deleted; a row that was deleted here keeps the values in
  /// the store.
  case mergeByPropertyStoreTrump
  /// All attributes are written as they are here.
  ///
  /// A row that was deleted there is inserted again, as with ``mergeByPropertyObjectTrump``.
  case overwrite
  /// Changes and deletions made here are dropped.
  case rollback
}

/// A row that was changed both here and by others.
public struct MergeConflict: Sendable {
  /// The identifier of the object.
  public let identifier: PersistentIdentifier
  /// Whether the object was deleted here.
  public let isDeletion: Bool
  /// The attributes as the object had read them.
  public let objectSnapshot: [String: SQLValue]
  /// The attributes that were set on the object.
  public let changedValues: [String: SQLValue]
  /// The current values of the attributes in the store; nil if the row is gone.
  ///
  /// Core Data's `cachedSnapshot` has no counterpart: nothing is cached between context and store.
  public let persistedSnapshot: [String: SQLValue]?
}

/// The conflicts that prevented a save; they are the `BatchError.underlying` of its error.
public struct MergeConflicts: Error, Sendable {
  /// All conflicts of one store, in the order in which the objects were changed.
  public let conflicts: [MergeConflict]
}

extension BatchError {
  /// The conflicts of an error with code `mergeConflict`; empty for other errors.
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
  /// Others have changed a row since it was read: Core Data's error 133020.
  public static let mergeConflict = Self(rawValue: "mergeConflict")
}
