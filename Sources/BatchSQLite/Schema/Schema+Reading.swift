import BatchRuns
package import BatchIdentifiers

extension Schema {
  /// Reads the entities of the main database, or only the entity of `table`, whose key is
  /// `preferred` if it may have several.
  package init(
    reading connection: Connection,
    only table: String? = nil,
    preferring preferred: [String]? = nil
  ) throws(BatchError) {
    var entities: [Entity] = []
    let uniqueKeys = try UniqueKey.read(of: table, in: connection)
    let tables = try connection.prepare(
      """
      SELECT name, type, wr, strict FROM pragma_table_list
      WHERE schema = 'main' AND type IN ('table', 'view', 'virtual')
        AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE '\\_batch\\_%' ESCAPE '\\'
        AND (?1 IS NULL OR name = ?1 COLLATE NOCASE)
      ORDER BY name
      """
    )
    try tables.bind(table.map(SQLValue.text) ?? .null, at: 1)
    while try tables.step() {
      let name = tables.text(at: 0)
      guard let kind = Entity.Kind(rawValue: tables.text(at: 1)) else { continue }
      let unreadable = kind == .table ? nil : try reasonNotToRead(name, in: connection)
      let columns =
        unreadable == nil
        ? try Column.read(of: name, isStrict: tables.integer(at: 3) != 0, in: connection) : []
      let key: EntityKey? =
        switch kind {
        case .table:
          try tableKey(
            name,
            columns,
            hasRowID: tables.integer(at: 2) == 0,
            preferring: preferred,
            in: connection
          )
        case .view: try viewKey(name, columns, preferring: preferred, in: connection)
        case .virtualTable: try virtualTableKey(name, columns, in: connection)
        case .query, .model: nil
        }
      entities.append(
        Entity(
          name: name,
          table: name,
          kind: kind,
          key: key,
          attributes: columns.filter { !$0.isHidden }.map(\.attribute),
          foreignKeys: kind == .table ? try ForeignKey.read(of: name, in: connection) : [],
          uniqueKeys: uniqueKeys[name] ?? [],
          unreadable: unreadable
        )
      )
    }
    self.init(entities: entities)
  }
}

/// Why a view or virtual table cannot be read; nil if it can.
///
/// A table of a view, a module or a function may be missing. This must not prevent reading the rest
/// of the database.
private func reasonNotToRead(
  _ table: String,
  in connection: Connection
) throws(BatchError) -> Entity.Unreadable? {
  do throws(BatchError) {
    _ = try connection.prepare("SELECT * FROM \(SQLName.quoted(table))")
    return nil
  } catch {
    guard [.invalidSQL, .damagedVirtualTable].contains(error.code) else { throw error }
    return Entity.Unreadable(message: error.message, advice: error.advice)
  }
}

private struct Column {
  let name: String
  let type: String
  let isNotNull: Bool
  let defaultText: String?
  /// The position in the primary key, from 1; 0 if the column is not in it.
  let keyPosition: Int
  let isHidden: Bool
  let isGenerated: Bool
  let isStrict: Bool

  var attribute: Attribute {
    var attribute = Attribute(
      name: name,
      column: name,
      type: type,
      isOptional: !isNotNull,
      isGenerated: isGenerated,
      hasDefault: defaultText != nil || !isNotNull
    )
    attribute.isStrict = isStrict
    attribute.defaultValue = defaultText.flatMap { SQLValue(literal: $0) }
      .flatMap { attribute.stored($0) }
    return attribute
  }

  /// Whether the declared type gives INTEGER affinity: https://www.sqlite.org/datatype3.html §3.1.
  var hasIntegerAffinity: Bool { type.uppercased().contains("INT") }

  /// Whether the column stores text unchanged, because it has TEXT affinity, or BLOB affinity,
  /// which converts nothing.
  var keepsText: Bool {
    if hasIntegerAffinity { return false }
    return type.isEmpty || isStrict && type.uppercased() == "ANY"
      || ["CHAR", "CLOB", "TEXT", "BLOB"].contains { type.uppercased().contains($0) }
  }

  static func read(
    of table: String,
    isStrict: Bool = false,
    in connection: Connection
  ) throws(BatchError) -> [Column] {
    let info = try connection.prepare(
      """
      SELECT name, type, "notnull", dflt_value, pk, hidden
      FROM pragma_table_xinfo(?, 'main')
      """
    )
    try info.bind(.text(table), at: 1)
    var columns: [Column] = []
    while try info.step() {
      columns.append(
        Column(
          name: info.text(at: 0),
          type: info.text(at: 1),
          isNotNull: info.integer(at: 2) != 0,
          defaultText: info.isNull(at: 3) ? nil : info.text(at: 3),
          keyPosition: Int(info.integer(at: 4)),
          isHidden: info.integer(at: 5) == 1,
          isGenerated: info.integer(at: 5) >= 2,
          isStrict: isStrict
        )
      )
    }
    return columns
  }
}

private func key(
  _ columns: [Column],
  origin: EntityKey.Origin
) -> EntityKey {
  EntityKey(
    columns: columns.map(\.name),
    origin: origin,
    prefersIntegers: columns.count == 1 && columns[0].hasIntegerAffinity
  )
}

private func tableKey(
  _ table: String,
  _ columns: [Column],
  hasRowID: Bool,
  preferring preferred: [String]?,
  in connection: Connection
) throws(BatchError) -> EntityKey? {
  let declared = columns.filter { $0.keyPosition > 0 }.sorted { $0.keyPosition < $1.keyPosition }
  let unique =
    declared.isEmpty || preferred != nil
    ? try uniqueKeys(of: table, columns, hasRowID: hasRowID, in: connection) : []
  if let key = unique.first(where: { $0.columns == preferred }),
    declared.map(\.name) != preferred
  {
    return key
  }
  if !declared.isEmpty {
    // An INTEGER PRIMARY KEY is the rowid itself unless SQLite keeps an index for it, as for
    // INTEGER PRIMARY KEY DESC: https://www.sqlite.org/lang_createtable.html#rowid.
    let indexed = try connection.value(
      "SELECT count(*) FROM pragma_index_list(?, 'main') WHERE origin = 'pk'",
      .text(table)
    )
    let isRowID = hasRowID && indexed == .integer(0)
    if isRowID { return key(declared, origin: .rowID) }
    var found = key(declared, origin: .primaryKey)
    let index = try connection.texts(
      "SELECT name FROM pragma_index_list(?, 'main') WHERE origin = 'pk'",
      .text(table)
    )
    if let index = index.first {
      found.collations = try collations(ofIndex: index, of: table, in: connection)
    }
    found.keepsText = keepsText(declared, found, of: table, in: connection)
    if hasRowID {
      found.rowIDName = RowIDName.free(beside: columns)
    } else if let index = index.first, found.collations.isEmpty,
      try connection.value(
        "SELECT 1 FROM pragma_index_xinfo(?, 'main') WHERE key AND \"desc\"",
        .text(index)
      ) == nil
    {
      found.clusteredIndex = index
    }
    return found
  }
  return unique.first
}

/// The keys formed by unique indexes over columns without NULLs, the oldest first.
private func uniqueKeys(
  of table: String,
  _ columns: [Column],
  hasRowID: Bool,
  in connection: Connection
) throws(BatchError) -> [EntityKey] {
  let indexes = try connection.prepare(
    """
    SELECT name FROM pragma_index_list(?, 'main') WHERE "unique" AND NOT partial
    ORDER BY seq DESC
    """
  )
  var keys: [EntityKey] = []
  try indexes.bind(.text(table), at: 1)
  while try indexes.step() {
    let names = try connection.prepare(
      "SELECT name FROM pragma_index_info(?, 'main') ORDER BY seqno"
    )
    try names.bind(.text(indexes.text(at: 0)), at: 1)
    var unique: [Column?] = []
    while try names.step() {
      let name = names.text(at: 0)
      unique.append(names.isNull(at: 0) ? nil : columns.first { $0.name == name })
    }
    let found = unique.compactMap { $0 }
    if found.count == unique.count, found.allSatisfy(\.isNotNull) {
      var key = key(found, origin: .uniqueIndex)
      key.collations = try collations(ofIndex: indexes.text(at: 0), of: table, in: connection)
      key.keepsText = keepsText(found, key, of: table, in: connection)
      if hasRowID { key.rowIDName = RowIDName.free(beside: columns) }
      keys.append(key)
    }
  }
  return keys
}

/// The names of a table's rowid; a column of the same name hides one.
enum RowIDName {
  static let all = ["rowid", "_rowid_", "oid"]

  fileprivate static func free(beside columns: [Column]) -> String? {
    all.first { name in !columns.contains { SQLName.equal($0.name, name) } }
  }
}

private func keepsText(
  _ columns: [Column],
  _ key: EntityKey,
  of table: String,
  in connection: Connection
) -> Bool {
  columns.count == 1 && columns[0].keepsText && key.collations.isEmpty
    && connection.collation(ofColumn: columns[0].name, of: table) == "BINARY"
}

/// The collations of an index's columns that differ from the columns' own.
private func collations(
  ofIndex index: String,
  of table: String,
  in connection: Connection
) throws(BatchError) -> [String: String] {
  let columns = try connection.prepare(
    "SELECT name, coll FROM pragma_index_xinfo(?, 'main') WHERE key AND name IS NOT NULL"
  )
  try columns.bind(.text(index), at: 1)
  var collations: [String: String] = [:]
  while try columns.step() {
    let (column, collation) = (columns.text(at: 0), columns.text(at: 1))
    if connection.collation(ofColumn: column, of: table).map({ SQLName.equal($0, collation) })
      != true
    {
      collations[column] = collation
    }
  }
  return collations
}

/// The primary keys that a view shows, or the whole row if it shows none; limited to the preferred
/// columns if it has all of them.
private func viewKey(
  _ view: String,
  _ columns: [Column],
  preferring preferred: [String]?,
  in connection: Connection
) throws(BatchError) -> EntityKey? {
  guard !columns.isEmpty else { return nil }
  let old = (preferred ?? []).compactMap { name in columns.first { $0.name == name } }
  let row = old.isEmpty || old.count < preferred?.count ?? 0 ? columns : old
  let statement = try connection.prepare("SELECT * FROM \(SQLName.quoted(view))")
  var shown: [(table: String, column: String, index: Int)] = []
  for index in 0..<min(statement.columnCount, columns.count) {
    if let origin = statement.columnOrigin(at: index) {
      shown.append((origin.table, origin.column, index))
    }
  }
  var chosen: [Int] = []
  for table in Set(shown.map(\.table)).sorted() {
    let base = try Column.read(of: table, in: connection).filter { $0.keyPosition > 0 }
    let indexes = base.compactMap { column in
      shown.first { $0.table == table && $0.column == column.name }?.index
    }
    // A table whose key is hidden or partly shown may contribute several rows for each remaining
    // key.
    guard !base.isEmpty, indexes.count == base.count else {
      return key(row, origin: .wholeRow)
    }
    chosen += indexes
  }
  guard !chosen.isEmpty else { return key(row, origin: .wholeRow) }
  return key(chosen.sorted().map { columns[$0] }, origin: .viewOrigin)
}

private func virtualTableKey(
  _ table: String,
  _ columns: [Column],
  in connection: Connection
) throws(BatchError) -> EntityKey? {
  let declared = columns.filter { $0.keyPosition > 0 }.sorted { $0.keyPosition < $1.keyPosition }
  if !declared.isEmpty { return key(declared, origin: .primaryKey) }
  do {
    _ = try connection.prepare("SELECT rowid FROM \(SQLName.quoted(table))")
    return EntityKey(columns: ["rowid"], origin: .rowID, prefersIntegers: true)
  } catch {
    // Its module is not loaded, or it has no rowid, so it is listed but cannot be read by key.
    return nil
  }
}
