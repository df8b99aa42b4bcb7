public import BatchIdentifiers

/// A column that refers to rows of another table and has no index.
public struct UnindexedForeignKey: Hashable, Sendable, CustomStringConvertible {
  /// The referring table.
  public let table: String
  /// Its column, the first of the foreign key.
  public let column: String
  /// The referenced table.
  public let destination: String

  /// The cost of the missing index, in a sentence without a full stop.
  public var description: String {
    "\(table).\(column) refers to \(destination) and has no index: each row deleted from \(destination)"
      + " scans all of \(table)"
  }
}

extension Store {
  /// The foreign keys that are not the beginning of an index of their table.
  ///
  /// When SQLite deletes a row, it looks for rows that refer to it. Without an index, deleting many
  /// rows takes their number times the size of the referring table.
  ///
  /// - Throws: Errors of SQLite.
  /// - Complexity: O(*n*) in the number of tables.
  public func unindexedForeignKeys() async throws(BatchError) -> [UnindexedForeignKey] {
    try await connection(label: "batch.keys").perform { connection throws(BatchError) in
      let keys = try connection.prepare(
        """
        SELECT child.name, f."from", f."table"
        FROM sqlite_schema AS child, pragma_foreign_key_list(child.name) AS f
        WHERE child.type = 'table' AND f.seq = 0
          AND NOT EXISTS (
            SELECT 1 FROM pragma_index_list(child.name) AS i, pragma_index_info(i.name) AS c
            WHERE c.seqno = 0 AND lower(c.name) = lower(f."from") AND NOT i.partial)
          AND NOT EXISTS (
            SELECT 1 FROM pragma_table_info(child.name) AS t
            WHERE t.pk = 1 AND lower(t.name) = lower(f."from"))
        ORDER BY child.name, f."from"
        """
      )
      var found: [UnindexedForeignKey] = []
      while try keys.step() {
        found.append(
          UnindexedForeignKey(
            table: keys.text(at: 0),
            column: keys.text(at: 1),
            destination: keys.text(at: 2)
          )
        )
      }
      return found
    }
  }
}
