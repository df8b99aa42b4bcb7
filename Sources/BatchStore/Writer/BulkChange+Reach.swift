package import BatchIdentifiers

extension BulkChange {
  /// Whether changing a row may reach other rows of the table, or decide whether they match: by a
  /// trigger, or by a foreign key.
  ///
  /// One statement for many rows then differs from one for each: it looks at `where` before the first
  /// row is changed, and at foreign keys after the last.
  ///
  /// - Parameters:
  ///   - enforcesForeignKeys: Whether foreign keys are enforced.
  ///   - connection: A connection to the database, to compile statements; nothing is run.
  /// - Returns: Whether a trigger writes a table that the change reads, which is at least its own, or
  ///   an enforced foreign key refers to a column that is set.
  /// - Throws: What SQLite says.
  package func reachesOtherRows(
    enforcesForeignKeys: Bool,
    in connection: Connection
  ) throws(BatchError) -> Bool {
    let keys = ChunkKeys.shape(of: key)
    var accesses = try connection.accesses(of: changeSQL(for: keys))
    if let sql = archiveSQL(for: keys) {
      accesses.writtenByTriggers.formUnion(try connection.accesses(of: sql).writtenByTriggers)
    }
    // A change that finds its row by the rowid alone need not read a column.
    accesses.read.insert(entity.table)
    let written = accesses.writtenByTriggers
    if !accesses.read.isDisjoint(with: written) { return true }
    guard enforcesForeignKeys else { return false }
    // What triggers write may come back by the actions of foreign keys.
    if !written.isEmpty { return true }
    return try isReferredTo(in: connection)
  }

  private func isReferredTo(in connection: Connection) throws(BatchError) -> Bool {
    // One that names no column refers to the primary key, which identifies rows and is never set.
    let referredTo = try connection.texts(
      """
      SELECT DISTINCT coalesce(f."to", '') FROM sqlite_schema s, pragma_foreign_key_list(s.name) f
      WHERE s.type = 'table' AND lower(f."table") = lower(?)
      """,
      .text(entity.table)
    )
    // ON CONFLICT REPLACE deletes rows that are in the way, whatever column is set.
    let replaces = try connection.value(
      "SELECT 1 FROM sqlite_schema WHERE lower(name) = lower(?) AND sql LIKE '%REPLACE%'",
      .text(entity.table)
    )
    if replaces != nil { return !referredTo.isEmpty }
    let columns: [String]
    switch action {
    case .update(let assignments): columns = assignments.map(\.column)
    case .assign(let assignments): columns = assignments.map(\.column)
    case .delete: return !referredTo.isEmpty
    }
    return referredTo.contains { name in columns.contains { SQLName.equal($0, name) } }
  }
}
