/// The number of differences in a table that no job explains.
package struct TableDifferences: Sendable, Hashable, Encodable {
  package struct Column: Sendable, Hashable, Encodable {
    package let name: String
    /// The number of rows in both databases that have other values there than they should.
    package let rows: Int

    package init(name: String, rows: Int) {
      self.name = name
      self.rows = rows
    }
  }

  package let table: String
  package let changed: Int
  /// The number of rows only in the database.
  package let added: Int
  /// The number of rows only in the other file.
  package let removed: Int
  /// The number of rows that are not in the state that their run recorded.
  package let outcome: Int
  package let columns: [Column]

  /// Returns nil if nothing differs.
  package init?(
    _ table: String,
    _ counts: [StoreDifference.Kind: Int],
    _ columns: [Column]
  ) {
    guard counts.values.contains(where: { $0 > 0 }) else { return nil }
    self.table = table
    changed = counts[.changed, default: 0]
    added = counts[.added, default: 0]
    removed = counts[.removed, default: 0]
    outcome = counts[.outcome, default: 0]
    self.columns = columns
  }
}
