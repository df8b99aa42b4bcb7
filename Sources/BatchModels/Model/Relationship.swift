public import BatchIdentifiers

/// What becomes of related objects when an object is deleted.
public enum DeleteRule: Sendable {
  /// Nothing, or what the database does by itself.
  case noAction
  /// They are related to nothing any more.
  case nullify
  /// They are deleted too.
  case cascade
  /// The save is refused as long as there are any that are not deleted with it.
  case deny
}

/// A relationship of an entity of one store, declared or found from foreign keys.
struct Relationship: Sendable {
  /// Where it is kept.
  enum Storage: Sendable {
    /// In a column of the object's row.
    case column(slot: Int)
    /// In a column of the other objects' rows.
    case inverse(slot: Int)
    /// In a table of its own.
    case table(JoinTable)
  }

  let name: String
  let destination: ModelEntity
  let storage: Storage
  let isToMany: Bool
  let deleteRule: DeleteRule
}

/// A table of pairs of keys, as one side sees it.
struct JoinTable: Sendable, Hashable {
  let table: String
  /// The column of this side's key.
  let source: String
  /// The column of the other side's key.
  let target: String

  /// The same table as the other side sees it.
  var reversed: JoinTable { JoinTable(table: table, source: target, target: source) }
}

extension BatchError.Code {
  /// The entity has no relationship of this name.
  public static let unknownRelationship = Self(rawValue: "unknownRelationship")
  /// An object cannot be deleted while others are related to it: Core Data's error 1600.
  public static let deleteDenied = Self(rawValue: "deleteDenied")
}
