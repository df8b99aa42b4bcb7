import BatchRuns
package import BatchIdentifiers

extension BulkChange {
  /// What changing a row may affect besides the row.
  package enum Reach: Sendable {
    /// No other row that matters to the change.
    case nothing
    /// Rows of the same table, by triggers; SQLite reports all of them to a ``RowWatch``.
    case sameTable
    /// Other rows, or what determines whether they match.
    case anything
  }

  /// What changing a row may affect besides the row, through a trigger or a foreign key.
  ///
  /// If it affects anything, one statement for many rows differs from one statement for each row:
  /// it checks `where` before the first change, and foreign keys after the last.
  ///
  /// - Returns: Something if a trigger writes a table that the change reads, including its own
  ///   table, or if an enforced foreign key refers to a column that is set.
  package func reach(
    enforcesForeignKeys: Bool,
    in connection: Connection
  ) throws(BatchError) -> Reach {
    let keys = ChunkKeys.shape(of: key)
    let accesses = try connection.accesses(of: changeSQL(for: keys))
    var written = accesses.writtenByTriggers
    if archiveCreation == nil, let sql = archiveSQL(for: keys) {
      written.formUnion(try connection.accesses(of: sql).writtenByTriggers)
    }
    // A change that finds its row by rowid alone may read no column.
    let common = written.tables.intersection(accesses.read.keys).union(
      written.tables.intersection([entity.table])
    )
    if !common.isEmpty {
      let isOwn = common == [entity.table] && key.isRowID && !enforcesForeignKeys
      let isWatched = isOwn ? try !replaces(in: connection) : false
      return isWatched ? .sameTable : .anything
    }
    guard enforcesForeignKeys else { return .nothing }
    // Foreign-key actions may lead from what triggers write back to the table.
    if !written.isEmpty { return .anything }
    return try isReferredTo(in: connection) ? .anything : .nothing
  }

  /// Whether ON CONFLICT REPLACE may delete conflicting rows, whichever column is set.
  package func replaces(in connection: Connection) throws(BatchError) -> Bool {
    let sql = """
      SELECT 1 FROM sqlite_schema
      WHERE (lower(name) = lower(?1) OR type = 'trigger' AND lower(tbl_name) = lower(?1))
        AND sql LIKE '%REPLACE%'
      """
    return try connection.value(sql, .text(entity.table)) != nil
  }

  /// The same change, except that a conflict fails the row.
  ///
  /// The table's own conflict clauses would replace or skip rows without reporting it.
  ///
  /// Applies only to tables with such clauses, since the clause of a statement overrides those in
  /// triggers.
  package func failingOnConflict(in connection: Connection) throws(BatchError) -> BulkChange {
    var change = self
    change.abortsOnConflict = try !connection.conflictClauses(of: entity.table).isEmpty
    return change
  }

  private func isReferredTo(in connection: Connection) throws(BatchError) -> Bool {
    // A foreign key that names no column refers to the primary key, which is never set.
    let referredTo = try connection.texts(
      """
      SELECT DISTINCT coalesce(f."to", '') FROM sqlite_schema s, pragma_foreign_key_list(s.name) f
      WHERE s.type = 'table' AND lower(f."table") = lower(?)
      """,
      .text(entity.table)
    )
    if try replaces(in: connection) { return !referredTo.isEmpty }
    let columns: [String]
    switch action {
    case .update(let assignments): columns = assignments.map(\.column)
    case .assign(let assignments): columns = assignments.map(\.column)
    case .delete: return !referredTo.isEmpty
    }
    return referredTo.contains { name in columns.contains { SQLName.equal($0, name) } }
  }
}

extension Connection {
  /// The conflict clauses of a table's constraints: `replace`, `ignore`, `fail` or `rollback`.
  ///
  /// Excludes `abort`, the default.
  func conflictClauses(of table: String) throws(BatchError) -> Set<String> {
    let sql = "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND lower(name) = lower(?)"
    guard case .text(let definition)? = try value(sql, .text(table)) else { return [] }
    let words = SQLWords(definition).all
    let clauses = words.indices.dropLast(2).filter {
      words[$0] == "on" && words[$0 + 1] == "conflict"
    }
    return Set(clauses.map { words[$0 + 2] }).subtracting(["abort"])
  }
}
