public import BatchIdentifiers

/// The effect on related objects when an object is deleted.
public enum DeleteRule: Sendable {
  /// None, or what the database does.
  case noAction
  /// Their relationship is nullified.
  case nullify
  /// They are deleted too.
  case cascade
  /// The save is refused while there are any that are not deleted with it.
  case deny
}

/// A relationship of an entity of one store, declared or found from foreign keys.
struct Relationship: Sendable {
  /// Where it is stored.
  enum Storage: Sendable {
    /// In a column of the object's row.
    case column(slot: Int)
    /// In a column of the other objects' rows.
    case inverse(slot: Int)
    /// In a separate table.
    case table(JoinTable)
  }

  let name: String
  let destination: ModelEntity
  let storage: Storage
  let isToMany: Bool
  let deleteRule: DeleteRule
}

/// A table of pairs of keys, from one side.
struct JoinTable: Sendable, Hashable {
  let table: String
  /// The column of this side's key.
  let source: String
  /// The column of the other side's key.
  let target: String

  /// The same table from the other side.
  var reversed: JoinTable { JoinTable(table: table, source: target, target: source) }
}

extension BatchError.Code {
  /// The entity has no relationship with this name.
  public static let unknownRelationship = Self(rawValue: "unknownRelationship")
  /// An object cannot be deleted while others are related to it: Core Data's error 1600.
  public static let deleteDenied = Self(rawValue: "deleteDenied")
}
