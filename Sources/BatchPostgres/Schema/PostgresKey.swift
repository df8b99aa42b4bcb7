#if PostgreSQL
package import BatchIdentifiers

/// What identifies the rows of a table, and how its values become keys of identifiers.
///
/// An integer column is an integer key. All else is an encoded key, a component a column:
///
/// | type | component | order of the list |
/// | --- | --- | --- |
/// | `smallint`, `integer`, `bigint`, `oid` | INTEGER | by value |
/// | `uuid` | TEXT, 36 characters in lower case, which a list keeps in 16 bytes | by bytes |
/// | `text`, `varchar`, `name` | TEXT | by bytes (`COLLATE "C"`), whatever the collation |
/// | `bytea` | BLOB | by bytes |
/// | `numeric`, `real`, `double precision`, `boolean`, `char(n)`, dates and times, `interval`, `inet`, `cidr`, `macaddr`, `bit`, enumerations | TEXT, the text form | the server's |
///
/// The text form is exact: cast to the type again, it is the value that it was, since the settings on which it
/// depends (time zone, style of dates, digits of floating-point numbers) are the same in every transaction. Its order is
/// that of the type and not that of its text, so that an index serves it; a list of such keys need not be sorted.
/// Other types (arrays, JSON, geometry, composites) are no keys.
package struct PostgresKey: Sendable, Hashable {
  /// Where the key comes from, which says how far it can be trusted.
  package enum Origin: String, Sendable {
    case primaryKey
    /// A unique index over columns that admit no NULL, in a table without a primary key.
    case uniqueIndex
    /// Columns that nothing keeps unique: those that the job names, or those of a table whose children have rows of
    /// their own.
    case declared
  }

  /// How a value crosses from the server.
  package enum Form: Sendable, Hashable {
    case integer
    case uuid
    case text
    case blob
    /// The text form of any other type.
    case other
  }

  /// A column of the key.
  package struct Column: Sendable, Hashable {
    package let name: String
    /// The declared type, to which a text form is cast.
    package let type: String
    package let form: Form
    fileprivate let isOrderedByBytes: Bool
    fileprivate let isUnsigned: Bool
  }

  /// The columns, in the order of the key.
  package let columns: [Column]
  package let origin: Origin
  /// The index that finds rows by the key, if there is one.
  package let index: String?

  /// Whether keys are integers by themselves.
  package var isInteger: Bool { columns.count == 1 && columns[0].form == .integer }

  /// Whether the rows between two keys have keys between them, and no two have the same.
  var canBeRange: Bool { isInteger && !columns[0].isUnsigned && origin != .declared }
}

extension PostgresKey.Column {
  /// What is selected: a value whose binary form is the key's.
  var selection: String {
    let name = PostgresName.quoted(name)
    if isUnsigned { return "\(name)::bigint" }
    return form == .other ? "\(name)::text" : name
  }

  /// An array of keys in SQL, with elements that are compared with the column, by an index if there is one.
  func comparable(_ array: String) -> String {
    switch form {
    case .integer: isUnsigned ? "\(array)::pg_catalog.oid[]" : array
    case .text, .blob: array
    case .uuid, .other: "\(array)::\(type)[]"
    }
  }

  /// What stands behind `ORDER BY`, with the table's name: a bare name would be that of the column which is
  /// selected, and that has the type of the text form.
  func order(in table: PostgresTable) -> String {
    let name = PostgresName.qualified(table.name, name)
    return form == .text && !isOrderedByBytes ? "\(name) COLLATE \"C\"" : name
  }

  /// The column of a key that a column of a table is.
  ///
  /// - Throws: `BatchError` of code `unstableKey` for a type that is no key.
  init(_ column: PostgresColumn, of table: PostgresTable) throws(BatchError) {
    name = column.name
    type = column.type
    isOrderedByBytes = column.isOrderedByBytes
    isUnsigned = column.baseType == Self.oid
    if let form = Self.forms[column.baseType] {
      self.form = form
    } else if column.baseKind == "e" || Self.exactTexts.contains(column.baseType) {
      form = .other
    } else {
      throw BatchError(
        .unstableKey,
        "the column \(column.name.quotedForMessage) of \(table.title.quotedForMessage) is of the type"
          + " \(column.type), which is none of a key",
        advice: "name other columns in \(.key) that identify a row"
      ).about(.attribute(column.name))
    }
  }

  private static let oid: UInt32 = 26

  /// The forms of types by their OIDs, which are the same on every server.
  private static let forms: [UInt32: PostgresKey.Form] = [
    20: .integer, 21: .integer, 23: .integer, oid: .integer, 2950: .uuid, 25: .text, 1043: .text,
    19: .text, 17: .blob,
  ]

  /// The types whose text form is exact: `bool`, `float4`, `float8`, `bpchar`, `date`, `time`, `timetz`, `timestamp`,
  /// `timestamptz`, `interval`, `numeric`, `inet`, `cidr`, `macaddr`, `macaddr8`, `bit`, `varbit`.
  private static let exactTexts: Set<UInt32> = [
    16, 700, 701, 1042, 1082, 1083, 1266, 1114, 1184, 1186, 1700, 869, 650, 829, 774, 1560, 1562,
  ]
}

extension PostgresTable {
  /// The key by which the rows are identified: the columns that somebody names, the primary key, or the smallest unique
  /// index that admits no NULL.
  ///
  /// - Throws: `BatchError` of code `unstableKey` if there is none.
  package func requireKey(declared names: [String]? = nil) throws(BatchError) -> PostgresKey {
    if let names {
      var columns: [PostgresKey.Column] = []
      for name in names { columns.append(try .init(requireColumn(named: name), of: self)) }
      let exact = indexes.first { isUsable($0) && Set($0.columns) == Set(columns.map(\.name)) }
      return PostgresKey(
        columns: columns,
        origin: exact == nil || hasChildren ? .declared : .uniqueIndex,
        index: hasChildren ? nil : exact?.name
      )
    }
    let usable = indexes.filter { isUsable($0) }
    let best =
      usable.first(where: \.isPrimary) ?? usable.min { $0.columns.count < $1.columns.count }
    guard let best else {
      throw BatchError(
        .unstableKey,
        "\(kind == .view ? "view" : "table") \(title.quotedForMessage) has no primary key",
        advice: """
          declare a primary key or a unique index over NOT NULL columns, or name unique columns in \(.key)
          """
      ).about(.entity(name))
    }
    var columns: [PostgresKey.Column] = []
    for name in best.columns.compactMap(\.self) {
      columns.append(try .init(requireColumn(named: name), of: self))
    }
    return PostgresKey(
      columns: columns,
      origin: hasChildren ? .declared : best.isPrimary ? .primaryKey : .uniqueIndex,
      index: hasChildren ? nil : best.name
    )
  }

  /// The column of this name, which can be set in rows that a key identifies.
  ///
  /// - Throws: `BatchError` of code `unknownAttribute` for a column that the server computes, `unstableKey` for one of
  ///   the key.
  package func requireSettableColumn(
    named name: String,
    besides key: PostgresKey
  ) throws(BatchError) -> PostgresColumn {
    let column = try requireColumn(named: name)
    if column.isGenerated || column.identity == .always {
      throw BatchError(
        .unknownAttribute,
        "column \(column.name.quotedForMessage) is generated and cannot be set",
        remedy: column.isGenerated ? "set the columns it is computed from" : "leave it out"
      ).about(.attribute(name))
    }
    if key.columns.contains(where: { $0.name == column.name }) {
      throw BatchError(
        .unstableKey,
        "column \(column.name.quotedForMessage) identifies the rows and cannot be set",
        remedy: "a run could not find its place again: copy the rows instead"
      ).about(.attribute(name))
    }
    return column
  }

  /// Whether an index lets no two rows have the same key, at any moment.
  private func isUsable(_ index: Index) -> Bool {
    index.isUnique && index.isValid && index.isImmediate && !index.isPartial
      && index.columns.allSatisfy { name in
        columns.contains { $0.name == name && !$0.isOptional }
      }
  }
}
#endif
