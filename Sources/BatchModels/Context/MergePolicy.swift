public import BatchIdentifiers
public import BatchStore

/// What a save does about a row that somebody else changed since it was read here.
///
/// The names and what they do are Core Data's.
public enum MergePolicy: Sendable {
  /// The save throws `BatchError` with code `mergeConflict` and writes nothing.
  ///
  /// A row that is to be deleted here and was deleted there is none, under no policy: both wanted the
  /// same. In Core Data it is a conflict under this one.
  case error
  /// Attributes set here are written; the others are as the store has them. A row deleted there and
  /// changed here is inserted again, with the values that the object had read of it; columns that the
  /// class does not map have their defaults. Where the object had to read the row again and had not,
  /// those are not known, and it is a conflict after all. A row changed there and deleted here is
  /// deleted.
  case mergeByPropertyObjectTrump
  /// Attributes set here are written unless they were changed in the store too. A row deleted there
  /// stays deleted; one deleted here stays as the store has it.
  case mergeByPropertyStoreTrump
  /// All attributes are written as they are here; a row deleted there is inserted again, as with
  /// ``mergeByPropertyObjectTrump``.
  case overwrite
  /// What was set here, or deleted, is given up.
  case rollback
}

/// A row that was changed here and by somebody else.
public struct MergeConflict: Sendable {
  /// The object's identifier.
  public let identifier: PersistentIdentifier
  /// Whether the object was to be deleted.
  public let isDeletion: Bool
  /// The attributes as the object had read them.
  public let objectSnapshot: [String: SQLValue]
  /// The attributes that were set on the object.
  public let changedValues: [String: SQLValue]
  /// The attributes as the store has them now; nil if the row is gone.
  ///
  /// Core Data's `cachedSnapshot` has no part here: nothing is cached between context and store.
  public let persistedSnapshot: [String: SQLValue]?
}

/// The conflicts that kept a save from being done, kept as `BatchError.underlying`.
public struct MergeConflicts: Error, Sendable {
  /// All of one store, in the order in which the objects were changed.
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
        : "\(conflicts.count) rows were changed by somebody else, this one among them",
      at: conflicts.first?.identifier.description,
      remedy: "refresh the objects and save again, or set the context's mergePolicy",
      underlying: MergeConflicts(conflicts: conflicts)
    )
  }
}

extension BatchError.Code {
  /// A row was changed by somebody else since it was read: Core Data's error 133020.
  public static let mergeConflict = Self(rawValue: "mergeConflict")
}
