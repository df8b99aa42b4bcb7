import BatchIdentifiers

/// A kind of object and how it is stored: its table, what identifies a row, its attributes.
///
/// Nothing above the mapping knows where it came from. For a plain SQLite database the entity has
/// the name of its table; see ``Schema``.
public struct Entity: Sendable, Hashable {
  /// What SQLite keeps the rows in.
  public enum Kind: String, Sendable {
    /// An ordinary table, with or without a rowid.
    case table
    /// A view: readable, not writable.
    case view
    /// A virtual table: readable, not writable by a job.
    case virtualTable = "virtual"
    /// A SELECT of a job: readable, not writable.
    case query
    /// An entity of the model of a store that Core Data made, under its name there.
    case model
  }

  /// What the entity is called in job files and identifiers.
  public let name: String
  /// The table, view or virtual table.
  public let table: String
  /// What the table is to SQLite.
  public let kind: Kind
  /// What identifies a row, or nil where nothing does in a way that lasts.
  public let key: EntityKey?
  /// The attributes in the order of the table's columns.
  public let attributes: [Attribute]
  /// Which rows of the table are the entity's, where others share it; an SQL expression.
  package var condition: String?
  /// The columns that refer to rows of other tables.
  package internal(set) var foreignKeys: [ForeignKey] = []
  /// The entities with which this one shares a table; nil of one that is alone in its own.
  package internal(set) var family: EntityFamily?
  /// The column that whoever changes a row raises by one, where others count on that.
  var versionColumn: String?
  /// The columns that a unique index keeps from having the same values in two rows.
  package internal(set) var uniqueKeys: [UniqueKey] = []

  /// What rows are read from instead of the table, under its name: a query, or a copy of the rows.
  var standIn: String?

  /// What stands behind `FROM` where rows are read.
  package var rowSource: String {
    let name = SQLName.quoted(table)
    return standIn.map { "\($0) AS \(name)" } ?? name
  }

  /// The attribute of this name; case matters only outside ASCII, as in SQLite.
  public func attribute(named name: String) -> Attribute? {
    attributes.first { SQLName.equal($0.name, name) }
  }

  /// The same entity with another key.
  func identified(by key: EntityKey) -> Entity {
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

  /// The same entity, whose rows are read from something else of the same columns.
  func read(from standIn: String) -> Entity {
    var entity = self
    entity.standIn = standIn
    return entity
  }
}

extension Entity {
  /// All rows of the table under another name, and under other names of its columns.
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

/// The entities that share a table, as one of them sees it.
package struct EntityFamily: Sendable, Hashable {
  /// The columns of the table, those that are none of the entity's own included, in their order.
  package let columns: [String]
  /// The column that says which entity a row is of.
  package let discriminator: String?
  /// The entities by their numbers there.
  package let names: [Int64: String]
  /// The numbers of the entity and of those that extend it.
  package let members: [Int64]
}

/// What identifies the rows of an entity.
public struct EntityKey: Sendable, Hashable {
  /// Where the key comes from, which says how far it can be trusted.
  public enum Origin: String, Sendable {
    /// An INTEGER PRIMARY KEY, the table's own rowid.
    case rowID = "rowid"
    /// A declared primary key.
    case primaryKey
    /// The columns of a unique index that admits no NULL, in a table without a primary key.
    case uniqueIndex
    /// The primary keys of all tables that a view shows columns of.
    case viewOrigin
    /// Every column of a view that does not show all of those primary keys.
    case wholeRow
    /// Columns that the job names.
    case declared
  }

  /// The columns, in the order of the key.
  public let columns: [String]
  /// Where the key comes from.
  public let origin: Origin
  /// Whether a value is tried as an integer first: the key is one column of INTEGER affinity.
  package let prefersIntegers: Bool
  /// The collations by which columns are unique, where those are not the columns' own.
  package internal(set) var collations: [String: String] = [:]
  /// Whether a text is a key just as it is written: the key is one column that changes no text and
  /// compares byte by byte.
  package internal(set) var keepsText = false

  /// Whether a run of neighbouring keys can be named by a range.
  package var isRowID: Bool { origin == .rowID }
}

/// A column of an entity.
public struct Attribute: Sendable, Hashable {
  /// What the attribute is called in job files.
  public let name: String
  /// The column.
  public let column: String
  /// The type as declared, which may be empty.
  public let type: String
  /// Whether NULL is allowed.
  public let isOptional: Bool
  /// Whether SQLite computes the value, so that it cannot be set.
  public let isGenerated: Bool
  /// Whether a row can be inserted without a value for it.
  public let hasDefault: Bool
  /// What a row has that is inserted without a value for it, where that is known.
  package internal(set) var defaultValue: SQLValue?
  /// Whether the table is STRICT, where a column of type ANY keeps whatever it is given.
  package internal(set) var isStrict = false
}

extension Attribute {
  /// The same column under another name.
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
  /// A key found more rows than were selected by it.
  static func ambiguousKey(of entity: Entity, _ key: EntityKey) -> BatchError {
    BatchError(
      .unstableKey,
      "two rows of \"\(entity.name)\" have the same \(key.columns.joined(separator: ", ")) now",
      advice: "name columns in \(.key) that identify a row"
    )
  }
}
