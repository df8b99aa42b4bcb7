#if PostgreSQL
import BatchRuns
package import BatchIdentifiers

/// A table or view as described by the catalog, with everything there that can affect a job.
package struct PostgresTable: Sendable {
  /// The kind of relation, by the letters of `pg_class.relkind`.
  package enum Kind: String, Sendable {
    case table = "r"
    case partitionedTable = "p"
    case view = "v"
    case materializedView = "m"
    case foreignTable = "f"
  }

  package struct Rights: Sendable, Hashable {
    package var usesSchema = false
    package var selects = false
    package var updates = false
    package var inserts = false
    package var deletes = false
  }

  package struct Trigger: Sendable, Hashable {
    package let name: String
    package let function: String
    /// `INSERT`, `UPDATE`, `DELETE`, `TRUNCATE`.
    package let events: [String]
    /// The columns whose updates fire it; empty for all.
    package let columns: [String]
    /// `BEFORE`, `AFTER`, `INSTEAD OF`.
    package let time: String
    package let isForEachRow: Bool
    /// Whether it fires in ordinary sessions.
    package let isEnabled: Bool
    package let definition: String
  }

  package struct ForeignKey: Sendable, Hashable {
    package let name: String
    /// The referencing table and its columns.
    package let table: String
    package let columns: [String]
    /// The referenced table and its columns.
    package let target: String
    package let targetColumns: [String]
    /// What happens when the referenced row is deleted: `CASCADE`, `SET NULL`, ….
    package let onDelete: String
    package let onUpdate: String
    /// Whether it is checked at the end of the transaction.
    package let isDeferred: Bool
  }

  package struct Index: Sendable, Hashable {
    package let name: String
    /// The key columns; nil for an expression.
    package let columns: [String?]
    package let isDescending: [Bool]
    package let isPrimary: Bool
    package let isUnique: Bool
    /// Whether queries can use it; false while it is being built, or if building it failed.
    package let isValid: Bool
    /// Whether it is enforced at once, not at the end of the transaction.
    package let isImmediate: Bool
    package let isPartial: Bool
    package let isOfConstraint: Bool
    package let definition: String

    /// Whether it compares rows by some of the columns.
    fileprivate func compares(_ names: [String]) -> Bool {
      (isUnique || isOfConstraint)
        && (isPartial || columns.contains { $0.map(names.contains) ?? true })
    }
  }

  package let oid: Int64
  package let schema: String
  package let name: String
  /// Whether the table is found without its schema.
  package let isVisible: Bool
  package internal(set) var kind: Kind
  package internal(set) var columns: [PostgresColumn]
  package let indexes: [Index]
  package let triggers: [Trigger]
  /// The table's rules, which rewrite statements.
  package let rules: [String]
  package let references: [ForeignKey]
  /// The foreign keys, of this and other tables, that refer to its rows.
  package let referrers: [ForeignKey]
  package let partitionCount: Int
  package let partitionColumns: [String]
  /// Whether other tables inherit from it, so that no index keeps a key unique over all its rows.
  package let hasChildren: Bool
  /// Whether policies decide which rows the role may see and write.
  package let hasRowSecurity: Bool
  /// Whether policies apply to some roles.
  package let enablesRowSecurity: Bool
  package let rights: Rights
  /// The number of rows at the last ANALYZE of the table or its partitions; nil if there was none,
  /// and for a view.
  package let estimatedCount: Int?
  /// The query whose rows these are; nil for a table or view.
  let query: PostgresQueryRows?

  /// What is read instead of the table, under its name; nil for the table.
  var standIn: String?

  package var sql: String { query?.sql ?? standIn ?? PostgresName.qualified(schema, name) }

  /// The rows of a query, like those of a view, with the table's columns and one of texts.
  func read(from standIn: String, adding column: String) -> PostgresTable {
    var table = self
    (table.kind, table.standIn) = (.view, standIn)
    table.columns.append(
      PostgresColumn(
        name: column,
        type: "text",
        baseType: 25,
        baseKind: "b",
        isDomain: false,
        isOptional: true,
        isGenerated: false,
        identity: nil,
        hasDefault: false,
        isOrderedByBytes: false,
        isUpdatable: false
      )
    )
    return table
  }

  /// The columns of the table itself.
  var ownColumns: [PostgresColumn] { standIn == nil ? columns : columns.dropLast() }

  /// An identity that does not depend on its name and columns.
  func identity(in database: PostgresDatabase) -> String { Self.identity(oid, in: database) }

  /// The identity of a table by its OID, which is 0 for the rows of a query.
  static func identity(_ oid: Int64, in database: PostgresDatabase) -> String {
    "\(database.derivedIdentity)/\(oid)"
  }

  package var written: String {
    isVisible ? WrittenName.text(name) : "\(WrittenName.text(schema)).\(WrittenName.text(name))"
  }

  package var title: String { schema == "public" ? name : "\(schema).\(name)" }

  /// The columns that are named, in this order; all if none are.
  package func columns(named names: [String]?) throws(BatchError) -> [PostgresColumn] {
    guard let names else { return columns }
    var columns: [PostgresColumn] = []
    for name in names { columns.append(try requireColumn(named: name)) }
    return columns
  }

  /// - Throws: `BatchError` of code `unknownAttribute` with the nearest existing name.
  package func requireColumn(named name: String) throws(BatchError) -> PostgresColumn {
    if let column = columns.column(named: name) { return column }
    throw BatchError(
      .unknownAttribute,
      "entity \(title.quotedForMessage) has no attribute \(name.quotedForMessage)",
      remedy: remedyForUnknownName(name, among: columns.map(\.name), kind: "attributes")
    ).about(.attribute(name))
  }

  /// Whether constraints or triggers can make the outcome depend on the order in which rows change.
  ///
  /// `columns` is nil if rows are deleted.
  package func isAffectedByOrder(of columns: [String]? = nil) -> Bool {
    let event = columns == nil ? "DELETE" : "UPDATE"
    if triggers.contains(where: { $0.isEnabled && $0.events.contains(event) }) { return true }
    guard let columns else {
      return referrers.contains { key in references.contains { $0 == key } }
    }
    return indexes.contains { $0.compares(columns) }
  }

  /// Whether rows that exchange values in one statement may violate a constraint meanwhile; one that can be deferred
  /// is satisfied in the end.
  func mayCollide(setting columns: [String]) -> Bool {
    indexes.contains { $0.isImmediate && $0.compares(columns) }
  }

  /// - Throws: `BatchError` of code `accessDenied` that names the missing privilege.
  package func requireRights(setting columns: [String] = [], deletes: Bool = false)
    throws(BatchError)
  {
    guard rights.usesSchema else {
      throw denied("use the schema \(schema.quotedForMessage)", "USAGE")
    }
    guard rights.selects else { throw denied("read \(title.quotedForMessage)", "SELECT") }
    if deletes, !rights.deletes { throw denied("delete from \(title.quotedForMessage)", "DELETE") }
    for name in columns {
      guard try !requireColumn(named: name).isUpdatable else { continue }
      throw denied("set \(name.quotedForMessage) of \(title.quotedForMessage)", "UPDATE")
    }
  }

  private func denied(_ what: String, _ right: String) -> BatchError {
    BatchError(
      .accessDenied,
      "the role may not \(what)",
      remedy: "have it granted \(right)"
    ).about(.entity(name))
  }
}

package struct PostgresColumn: Sendable, Hashable {
  package enum Identity: String, Sendable {
    case always = "a"
    /// From a sequence, unless a value is given.
    case byDefault = "d"
  }

  package let name: String
  /// The declared type: `numeric(10,2)`, `text[]`.
  package let type: String
  /// The OID in `pg_type` of the type beneath the domain, or of the type itself if it is not a
  /// domain.
  package let baseType: UInt32
  /// The kind of that type, by the letters of `pg_type.typtype`: `b` for a base type, `e` for an
  /// enumeration.
  package let baseKind: String
  /// Whether the type is a domain, whose checks apply to each value.
  package let isDomain: Bool
  package let isOptional: Bool
  /// Whether the server computes the value, so that it cannot be set.
  package let isGenerated: Bool
  package let identity: Identity?
  package let hasDefault: Bool
  package let isOrderedByBytes: Bool
  package let isUpdatable: Bool
}

/// A query whose rows are exported; in parentheses, it stands wherever a table would.
struct PostgresQueryRows: Sendable {
  /// The query as a source of rows; parameters are settings.
  let sql: String
  /// A source without rows whose columns have the same names and types, so that the check of a condition sees nothing
  /// else of the query.
  let standIn: String
  /// The columns that it reads, by the OIDs of their tables.
  let reads: [Int64: Set<Int64>]
}

extension [PostgresColumn] {
  /// The column that a job means by a name.
  func column(named name: String) -> PostgresColumn? {
    first { $0.name.hasSameBytes(as: name) }
      ?? first { $0.name.hasSameBytes(as: name.lowercased()) }
  }
}
#endif
