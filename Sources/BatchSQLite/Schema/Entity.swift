package import BatchRuns
package import BatchIdentifiers

/// A kind of object and how it is stored: its table, its key, its attributes.
///
/// In an ordinary SQLite database, the entity has its table's name; see ``Schema``.
public struct Entity: Sendable, Hashable {
  /// How SQLite stores the rows.
  public enum Kind: String, Sendable {
    /// An ordinary table, with or without a rowid.
    case table
    /// A view, which can be read but not written.
    case view
    /// A virtual table, which a job can read but not write.
    case virtualTable = "virtual"
    /// A SELECT of a job, which can be read but not written.
    case query
    /// An entity of a Core Data model, under the name it has there.
    case model

    var words: String { self == .virtualTable ? "virtual table" : rawValue }
  }

  /// The entity's name in job files and identifiers.
  public let name: String
  /// The table, view or virtual table.
  public let table: String
  /// The kind of table.
  public let kind: Kind
  /// The key; nil if nothing identifies a row permanently.
  public let key: EntityKey?
  /// The attributes in the order of the table's columns.
  public let attributes: [Attribute]
  /// The SQL condition that selects the entity's rows in a shared table.
  package var condition: String?
  package internal(set) var foreignKeys: [ForeignKey] = []
  /// The entities that share this one's table; nil if there are no others.
  package internal(set) var family: EntityFamily?
  /// The column to increment with every change of a row, if other programs rely on that.
  var versionColumn: String?
  package internal(set) var uniqueKeys: [UniqueKey] = []

  /// Why SQLite cannot read the rows; nil if it can.
  var unreadable: Unreadable?

  /// A query or a copy of the rows that is read instead of the table, under its name.
  var standIn: String?

  package var rowSource: String {
    let name = SQLName.quoted(table)
    return standIn.map { "\($0) AS \(name)" } ?? name
  }

  /// The attribute with this name.
  ///
  /// As in SQLite, case matters only outside ASCII.
  public func attribute(named name: String) -> Attribute? {
    attributes.first { SQLName.equal($0.name, name) }
  }

  func identified(by key: EntityKey) -> Entity { with(key: key, attributes: attributes) }

  package func with(key: EntityKey?, attributes: [Attribute]) -> Entity {
    Entity(
      name: name,
      table: table,
      kind: kind,
      key: key,
      attributes: attributes,
      condition: condition,
      foreignKeys: foreignKeys,
      family: family,
      versionColumn: versionColumn,
      uniqueKeys: uniqueKeys,
      standIn: standIn
    )
  }

  func read(from standIn: String) -> Entity {
    var entity = self
    entity.standIn = standIn
    return entity
  }
}

extension Entity {
  struct Unreadable: Sendable, Hashable {
    let message: String
    let advice: Remedy?
  }

  package var problem: BatchError? {
    unreadable.map { BatchError(.invalidSQL, $0.message, advice: $0.advice) }
  }

  /// All rows of the table, under another name and with other names for its columns.
  package func renamed(_ name: String, attributes: [Attribute]) -> Entity {
    Entity(
      name: name,
      table: table,
      kind: kind,
      key: key,
      attributes: attributes,
      foreignKeys: foreignKeys,
      uniqueKeys: uniqueKeys
    )
  }
}

package struct EntityFamily: Sendable, Hashable {
  /// All columns of the table in order, including those of other entities.
  package let columns: [String]
  /// The column that says which entity a row belongs to.
  package let discriminator: String?
  package let names: [Int64: String]
  package let members: [Int64]
}

/// The key of an entity.
public struct EntityKey: Sendable, Hashable {
  /// The origin of a key, which determines how far it can be trusted.
  public enum Origin: String, Sendable {
    /// An INTEGER PRIMARY KEY, the table's own rowid.
    case rowID = "rowid"
    /// A declared primary key.
    case primaryKey
    /// The columns of a unique index without NULLs, in a table without a primary key.
    case uniqueIndex
    /// The primary keys of all tables whose columns a view shows.
    case viewOrigin
    /// All columns of a view that does not show all of those primary keys.
    case wholeRow
    /// Columns named by the job.
    case declared
  }

  /// The columns, in the order of the key.
  public let columns: [String]
  /// The origin of the key.
  public let origin: Origin
  /// Whether to try a value as an integer first, because the key is one column of INTEGER affinity.
  package let prefersIntegers: Bool
  /// The collations of unique columns that differ from the columns' own.
  package internal(set) var collations: [String: String] = [:]
  /// Whether text is used as the key unchanged, because the key is one column that stores text
  /// unchanged and compares it byte by byte.
  package internal(set) var keepsText = false
  /// A name of the rowid, in a table whose key is not the rowid; nil if it has none.
  package internal(set) var rowIDName: String?
  /// The primary key's index that sorts the rows of a table without rowids, ascending; nil for
  /// other keys.
  package internal(set) var clusteredIndex: String?

  /// Whether a range can select consecutive keys.
  package var isRowID: Bool { origin == .rowID }
}

/// A column of an entity.
public struct Attribute: Sendable, Hashable {
  /// The attribute's name in job files.
  public let name: String
  /// The column.
  public let column: String
  /// The declared type, which may be empty.
  public let type: String
  /// Whether NULL is allowed.
  public let isOptional: Bool
  /// Whether SQLite computes the value, so that it cannot be set.
  public let isGenerated: Bool
  /// Whether a row can be inserted without a value for it.
  public let hasDefault: Bool
  /// The value of a row inserted without one, if known.
  package internal(set) var defaultValue: SQLValue?
  /// Whether the table is STRICT, where a column of type ANY stores any value unchanged.
  package internal(set) var isStrict = false
}

extension Attribute {
  /// Whether a job means it by a name.
  package func isNamed(_ name: String) -> Bool {
    self.name == name || SQLName.equal(column, name)
  }

  package func renamed(_ name: String) -> Attribute {
    Attribute(
      name: name,
      column: column,
      type: type,
      isOptional: isOptional,
      isGenerated: isGenerated,
      hasDefault: hasDefault,
      defaultValue: defaultValue,
      isStrict: isStrict
    )
  }
}

extension BatchError {
  static func ambiguousKey(of entity: Entity, _ key: EntityKey) -> BatchError {
    BatchError(
      .unstableKey,
      "two rows of \"\(entity.name)\" have the same \(key.columns.joined(separator: ", ")) now",
      advice: "name columns in \(.key) that identify a row"
    )
  }
}
