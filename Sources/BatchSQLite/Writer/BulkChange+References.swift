import BatchRuns
import BatchIdentifiers

extension BulkChange {
  /// The error of a row that a foreign key refuses, with the tables of the key, which SQLite does not name.
  ///
  /// For a row that is again as it was before the change.
  func namingReferences(
    _ error: BatchError,
    ofRow row: PrimaryKey,
    in connection: Connection
  ) -> BatchError {
    guard error.sqlite?.resultCode == .SQLITE_CONSTRAINT_FOREIGNKEY,
      // What this reads may fail too; the error itself counts more.
      let references = try? references(ofRow: row, in: connection), !references.isEmpty
    else { return error }
    var error = error
    error.message += ": " + references.joined(separator: ", ")
    return error
  }

  private func references(
    ofRow row: PrimaryKey,
    in connection: Connection
  ) throws(BatchError) -> [String] {
    let table = entity.table
    let set = Set(writtenColumns.map { $0.lowercased() })
    var found: [String] = []
    for key in try ReferencingKey.all(of: table, in: connection) {
      let isConcerned =
        writtenColumns.isEmpty
        ? key.keepsDeletedRows : key.targets.contains { set.contains($0.lowercased()) }
      guard isConcerned, try key.isUsed(byRow: row, of: self.key, in: connection) else { continue }
      found.append("rows of \(key.child) refer to it by \(key.columns.joined(separator: ", "))")
    }
    for key in try ReferencingKey.all(from: table, in: connection)
    where key.columns.contains(where: { set.contains($0.lowercased()) }) {
      found.append("\(key.columns.joined(separator: ", ")) must name a row of \(key.parent)")
    }
    return found
  }
}

/// A foreign key of any number of columns.
private struct ReferencingKey {
  let child: String
  let parent: String
  var columns: [String]
  /// The referenced columns.
  var targets: [String]
  /// Whether a referenced row cannot be deleted.
  let keepsDeletedRows: Bool

  /// The foreign keys that refer to a table.
  static func all(
    of parent: String,
    in connection: Connection
  ) throws(BatchError) -> [ReferencingKey] {
    try read("lower(f.\"table\") = lower(?)", parent, in: connection)
  }

  /// The foreign keys of a table.
  static func all(
    from child: String,
    in connection: Connection
  ) throws(BatchError) -> [ReferencingKey] {
    try read("child.name = ?", child, in: connection)
  }

  private static func read(
    _ condition: String,
    _ table: String,
    in connection: Connection
  ) throws(BatchError) -> [ReferencingKey] {
    // A key that names no columns refers to those of the primary key, in their order.
    let rows = try connection.prepare(
      """
      SELECT child.name, f."table", f.seq, f."from",
        coalesce(f."to", (SELECT name FROM pragma_table_info(f."table") WHERE pk = f.seq + 1)),
        f.on_delete IN ('NO ACTION', 'RESTRICT')
      FROM sqlite_schema AS child, pragma_foreign_key_list(child.name) AS f
      WHERE child.type = 'table' AND \(condition)
      ORDER BY child.name, f.id, f.seq
      """
    )
    try rows.bind(.text(table), at: 1)
    var keys: [ReferencingKey] = []
    while try rows.step() {
      if rows.integer(at: 2) == 0 {
        keys.append(
          ReferencingKey(
            child: rows.text(at: 0),
            parent: rows.text(at: 1),
            columns: [],
            targets: [],
            keepsDeletedRows: rows.integer(at: 5) != 0
          )
        )
      }
      keys[keys.count - 1].columns.append(rows.text(at: 3))
      if !rows.isNull(at: 4) { keys[keys.count - 1].targets.append(rows.text(at: 4)) }
    }
    return keys.filter { $0.columns.count == $0.targets.count }
  }

  /// Whether a row of the child refers to a row of the parent.
  func isUsed(
    byRow row: PrimaryKey,
    of key: EntityKey,
    in connection: Connection
  ) throws(BatchError) -> Bool {
    let pairs = zip(columns, targets).map { column, target in
      "c.\(SQLName.quoted(column)) = p.\(SQLName.quoted(target))"
    }
    let names = key.isRowID ? ["rowid"] : key.columns.map { SQLName.quoted($0) }
    let statement = try connection.prepare(
      """
      SELECT 1 FROM \(SQLName.quoted(child)) AS c, \(SQLName.quoted(parent)) AS p
      WHERE \(pairs.joined(separator: " AND "))
        AND \(names.map { "p.\($0) = ?" }.joined(separator: " AND ")) LIMIT 1
      """
    )
    try statement.bind(row)
    return try statement.step()
  }
}
