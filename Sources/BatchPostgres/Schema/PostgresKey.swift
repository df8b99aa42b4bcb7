#if PostgreSQL
package import BatchIdentifiers

/// The columns that identify the rows of a table, and how their values become keys of identifiers.
///
/// A single integer column is an integer key. Any other key is encoded, with one component for each
/// column:
///
/// | type | component | order of the list |
/// | --- | --- | --- |
/// | `smallint`, `integer`, `bigint`, `oid` | INTEGER | by value |
/// | `uuid` | TEXT, 36 characters in lower case, which a list packs into 16 bytes | by bytes |
/// | `text`, `varchar`, `name` | TEXT | by bytes (`COLLATE "C"`), whatever the collation |
/// | `bytea` | BLOB | by bytes |
/// | `numeric`, `real`, `double precision`, `boolean`, `char(n)`, dates and times, `interval`, `inet`, `cidr`, `macaddr`, `bit`, enumerations | TEXT, the text form | the server's |
///
/// The text form is exact: cast back to its type, it yields the original value, whatever the
/// session's time zone, date style and other settings. The list follows the order of the type, not
/// of the text, so that an index can provide it; a list of such keys need not be sorted. Other
/// types (arrays, JSON, geometry, composites) cannot be keys.
package struct PostgresKey: Sendable, Hashable {
  /// The origin of a key, which determines how far it can be trusted.
  package enum Origin: String, Sendable {
    case primaryKey
    /// A unique index over `NOT NULL` columns, in a table without a primary key.
    case uniqueIndex
    /// Columns without a unique constraint: those named by the job, or those of a table whose
    /// children contain rows.
    case declared
  }

  /// The form in which the server sends a value.
  package enum Form: Sendable, Hashable {
    case integer
    case uuid
    case text
    case blob
    /// A type whose text form depends on settings and is made from the binary form.
    case binary(BinaryText)
    case other
  }

  package struct Column: Sendable, Hashable {
    package let name: String
    /// The declared type, to which a text form is cast.
    package let type: String
    package let form: Form
    fileprivate let isOrderedByBytes: Bool
    fileprivate let isUnsigned: Bool
    fileprivate var isEnumeration = false
  }

  package let columns: [Column]
  package let origin: Origin
  /// The index that finds rows by key, if there is one.
  package let index: String?

  package var isInteger: Bool { columns.count == 1 && columns[0].form == .integer }

  /// The key of the records that a load reads: their numbers, by which no row is found.
  static let record = PostgresKey(
    columns: [
      Column(
        name: "record",
        type: "bigint",
        form: .integer,
        isOrderedByBytes: false,
        isUnsigned: false
      )
    ],
    origin: .primaryKey,
    index: nil
  )

  /// Whether two bounds select rows by key, with each key at most once.
  var canBeRange: Bool { isInteger && !columns[0].isUnsigned && origin != .declared }
}

extension PostgresKey.Column {
  /// The SQL that selects the value in the key's binary form.
  var selection: String { selection(of: PostgresName.quoted(name)) }

  /// The SQL that turns a value of the column's type into the key's binary form.
  func selection(of name: String) -> String {
    if isUnsigned { return "\(name)::bigint" }
    return switch form {
    case .other where isEnumeration: PostgresColumn.output(of: name)
    case .other: "\(name)::pg_catalog.text"
    case .binary(let type): "\(name)::pg_catalog.\(type.typeName)"
    case .integer, .uuid, .text, .blob: name
    }
  }

  /// An array of keys in SQL whose elements can be compared with the column, by an index if there
  /// is one.
  func comparable(_ array: String) -> String {
    switch form {
    case .integer: isUnsigned ? "\(array)::pg_catalog.oid[]" : array
    case .text, .blob: array
    case .uuid, .binary, .other: "\(array)::\(type)[]"
    }
  }

  /// The term of `ORDER BY`, with the table's name, because the bare name would refer to the
  /// selected column, which has the type of the text form.
  func order(in table: PostgresTable) -> String {
    let name = PostgresName.qualified(table.name, name)
    return form == .text && !isOrderedByBytes ? "\(name) COLLATE \"C\"" : name
  }

  /// - Throws: `BatchError` of code `unstableKey` for a type that cannot be a key.
  init(_ column: PostgresColumn, of table: PostgresTable) throws(BatchError) {
    name = column.name
    type = column.type
    isOrderedByBytes = column.isOrderedByBytes
    isUnsigned = column.baseType == Self.oid
    isEnumeration = column.baseKind == "e"
    if let form = Self.forms[column.baseType] {
      self.form = form
    } else if let type = BinaryText(rawValue: column.baseType) {
      form = .binary(type)
    } else if column.baseKind == "e" || Self.exactTexts.contains(column.baseType) {
      form = .other
    } else {
      throw BatchError(
        .unstableKey,
        "the column \(column.name.quotedForMessage) of \(table.title.quotedForMessage) has the type"
          + " \(column.type), which cannot be a key",
        advice: "name other columns in \(.key) that identify a row"
      ).about(.attribute(column.name))
    }
  }

  private static let oid: UInt32 = 26

  /// The forms of types by OID; these OIDs are the same on every server.
  private static let forms: [UInt32: PostgresKey.Form] = [
    20: .integer, 21: .integer, 23: .integer, oid: .integer, 2950: .uuid, 25: .text, 1043: .text,
    19: .text, 17: .blob,
  ]

  /// The types whose text form is exact: `bool`, `bpchar`, `time`, `timetz`, `numeric`, `inet`,
  /// `cidr`, `macaddr`, `macaddr8`, `bit`, `varbit`.
  private static let exactTexts: Set<UInt32> = [
    16, 1042, 1083, 1266, 1700, 869, 650, 829, 774, 1560, 1562,
  ]
}

extension PostgresTable {
  /// The key of the rows: the declared columns, the primary key, or the smallest unique index over
  /// `NOT NULL` columns.
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

  /// - Throws: `BatchError` of code `unknownAttribute` for a generated column, `unstableKey` for a
  ///   column of `key`.
  package func requireSettableColumn(
    named name: String,
    besides key: PostgresKey? = nil
  ) throws(BatchError) -> PostgresColumn {
    let column = try requireColumn(named: name)
    if column.isGenerated || column.identity == .always {
      throw BatchError(
        .unknownAttribute,
        "column \(column.name.quotedForMessage) is generated and cannot be set",
        remedy: column.isGenerated ? "set the columns it is computed from" : "leave it out"
      ).about(.attribute(name))
    }
    if key?.columns.contains(where: { $0.name == column.name }) == true {
      throw BatchError(
        .unstableKey,
        "column \(column.name.quotedForMessage) identifies the rows and cannot be set",
        remedy: "a run could not find its place again: copy the rows instead"
      ).about(.attribute(name))
    }
    return column
  }

  /// Whether an index ensures at every moment that no two rows have the same key.
  private func isUsable(_ index: Index) -> Bool {
    index.isUnique && index.isValid && index.isImmediate && !index.isPartial
      && index.columns.allSatisfy { name in
        columns.contains { $0.name == name && !$0.isOptional }
      }
  }
}
#endif
