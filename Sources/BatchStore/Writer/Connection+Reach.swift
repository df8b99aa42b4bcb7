package import BatchIdentifiers

extension Connection {
  /// Whether changing a row of a table may change others of it: by a trigger, or by a foreign key.
  ///
  /// One statement for many rows then differs from one for each: it looks at `where` before the first
  /// row is changed, and at foreign keys after the last.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - columns: The columns that are set; nil if rows are deleted.
  ///   - foreignKeys: Whether foreign keys count.
  /// - Returns: Whether there is such a trigger, or a foreign key that refers to one of the columns.
  /// - Throws: What SQLite says.
  package func changesReachOtherRows(
    of table: String,
    setting columns: [String]?,
    foreignKeys: Bool = true
  ) throws(BatchError) -> Bool {
    let trigger = try value(
      "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = lower(?) LIMIT 1",
      .text(table)
    )
    if trigger != nil { return true }
    guard foreignKeys else { return false }
    // One that names no column refers to the primary key, which identifies rows and is never set.
    let referredTo = try texts(
      """
      SELECT DISTINCT coalesce(f."to", '') FROM sqlite_schema s, pragma_foreign_key_list(s.name) f
      WHERE s.type = 'table' AND lower(f."table") = lower(?)
      """,
      .text(table)
    )
    guard let columns else { return !referredTo.isEmpty }
    return referredTo.contains { name in columns.contains { SQLName.equal($0, name) } }
  }
}
