public import BatchIdentifiers

/// The effect on related objects when an object is deleted.
public enum DeleteRule: Sendable {
  /// Nothing, or the action of the database.
  case noAction
  /// Their relationship is set to nil.
  case nullify
  /// They are deleted too.
  case cascade
  /// The save is refused if there are any that are not deleted with the object.
  case deny
}

struct Relationship: Sendable {
  enum Storage: Sendable {
    /// In a column of the object's row.
    case column(slot: Int)
    /// In a column of the other objects' rows.
    case inverse(slot: Int)
    case table(JoinTable)
  }

  let name: String
  let destination: ModelEntity
  let storage: Storage
  let isToMany: Bool
  let deleteRule: DeleteRule
}

/// A table of pairs of keys, seen from one side.
struct JoinTable: Sendable, Hashable {
  let table: String
  /// The column with the keys of this side.
  let source: String
  /// The column with the keys of the other side.
  let target: String

  var reversed: JoinTable { JoinTable(table: table, source: target, target: source) }
}

extension BatchError.Code {
  /// The entity has no relationship with this name.
  public static let unknownRelationship = Self(rawValue: "unknownRelationship")
  /// An object cannot be deleted while others are related to it: Core Data's error 1600.
  public static let deleteDenied = Self(rawValue: "deleteDenied")
}
