#if PostgreSQL
package import BatchIdentifiers

/// A table or view as the catalog has it, with all that a job may meet there.
package struct PostgresTable: Sendable {
  /// What the rows are kept in, by the letters of `pg_class.relkind`.
  package enum Kind: String, Sendable {
    case table = "r"
    case partitionedTable = "p"
    case view = "v"
    case materializedView = "m"
    case foreignTable = "f"
  }

  /// What the role of the session may do.
  package struct Rights: Sendable, Hashable {
    /// Whether it may use the schema.
    package var usesSchema = false
    /// Whether it may read every column, or some.
    package var selects = false
    package var updates = false
    package var inserts = false
    package var deletes = false
  }

  /// What is done when rows are written.
  package struct Trigger: Sendable, Hashable {
    package let name: String
    package let function: String
    /// `INSERT`, `UPDATE`, `DELETE`, `TRUNCATE`.
    package let events: [String]
    /// The columns whose update it is about; empty for all.
    package let columns: [String]
    /// `BEFORE`, `AFTER`, `INSTEAD OF`.
    package let time: String
    package let isForEachRow: Bool
    /// Whether it fires in ordinary sessions.
    package let isEnabled: Bool
    package let definition: String
  }

  /// Columns that refer to the rows of a table.
  package struct ForeignKey: Sendable, Hashable {
    package let name: String
    /// The table that has the columns, and those.
    package let table: String
    package let columns: [String]
    /// The table that is referred to, and the columns there.
    package let target: String
    package let targetColumns: [String]
    /// What is done when the row there is deleted: `CASCADE`, `SET NULL`, ….
    package let onDelete: String
    /// What is done when its key is changed.
    package let onUpdate: String
    /// Whether it is looked at in the end of the transaction.
    package let isDeferred: Bool
  }

  package struct Index: Sendable, Hashable {
    package let name: String
    /// The columns of the key; nil for an expression.
    package let columns: [String?]
    /// Which of them are in descending order.
    package let isDescending: [Bool]
    package let isPrimary: Bool
    package let isUnique: Bool
    /// Whether it finds rows, of which one that is being made or whose making failed finds none.
    package let isValid: Bool
    /// Whether it holds at once, and not at the end of the transaction.
    package let isImmediate: Bool
    /// Whether it leaves rows out.
    package let isPartial: Bool
    /// Whether a constraint of the table has it.
    package let isOfConstraint: Bool
    package let definition: String
  }

  /// What identifies it in the catalog.
  package let oid: Int64
  package let schema: String
  package let name: String
  /// Whether its name alone finds it.
  package let isVisible: Bool
  package let kind: Kind
  package let columns: [PostgresColumn]
  package let indexes: [Index]
  package let triggers: [Trigger]
  /// The rules of the table, which rewrite statements.
  package let rules: [String]
  /// The foreign keys of its own columns.
  package let references: [ForeignKey]
  /// The foreign keys of this and other tables that refer to its rows.
  package let referrers: [ForeignKey]
  /// How many tables the rows are in, if it is partitioned.
  package let partitionCount: Int
  /// Whether the rows of other tables are among its own, by inheritance, so that no index keeps a key unique.
  package let hasChildren: Bool
  /// Whether policies decide which rows the role sees and may write.
  package let hasRowSecurity: Bool
  package let rights: Rights
  /// How many rows there were when the table, or its partitions, were last analyzed; nil if they never were, and for a view.
  package let estimatedCount: Int?

  /// The table in SQL.
  package var sql: String { PostgresName.qualified(schema, name) }

  /// The table as a job names it.
  package var written: String {
    isVisible ? WrittenName.text(name) : "\(WrittenName.text(schema)).\(WrittenName.text(name))"
  }

  /// The table as messages name it.
  package var title: String { schema == "public" ? name : "\(schema).\(name)" }

  /// The column of this name.
  ///
  /// - Throws: `BatchError` of code `unknownAttribute` with the nearest name there is.
  package func requireColumn(named name: String) throws(BatchError) -> PostgresColumn {
    if let column = columns.first(where: { $0.name.hasSameBytes(as: name) })
      ?? columns.first(where: { $0.name.hasSameBytes(as: name.lowercased()) })
    {
      return column
    }
    throw BatchError(
      .unknownAttribute,
      "entity \(title.quotedForMessage) has no attribute \(name.quotedForMessage)",
      remedy: remedyForUnknownName(name, among: columns.map(\.name), kind: "attributes")
    ).about(.attribute(name))
  }

  /// Refuses what the role may not do.
  ///
  /// - Parameters:
  ///   - columns: The columns that are to be set.
  ///   - deletes: Whether rows are to be deleted.
  /// - Throws: `BatchError` of code `accessDenied` that says what to grant.
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

/// A column of a table.
package struct PostgresColumn: Sendable, Hashable {
  /// Where values come from that nobody gives.
  package enum Identity: String, Sendable {
    /// From a sequence, always.
    case always = "a"
    /// From a sequence, unless one is given.
    case byDefault = "d"
  }

  package let name: String
  /// The type as it was declared: `numeric(10,2)`, `text[]`.
  package let type: String
  /// The type of which it is a domain, and otherwise its own, by its OID in `pg_type`.
  package let baseType: UInt32
  /// The kind of that type, by the letters of `pg_type.typtype`: `b` a base type, `e` an enumeration.
  package let baseKind: String
  /// Whether the type is a domain, whose conditions hold for each value.
  package let isDomain: Bool
  package let isOptional: Bool
  /// Whether the server computes the value, so that it cannot be set.
  package let isGenerated: Bool
  package let identity: Identity?
  package let hasDefault: Bool
  /// Whether texts are ordered by their bytes.
  package let isOrderedByBytes: Bool
  /// Whether the role may set it.
  package let isUpdatable: Bool
}
#endif
