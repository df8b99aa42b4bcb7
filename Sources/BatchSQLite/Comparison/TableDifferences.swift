/// The number of unexpected differences in a table.
package struct TableDifferences: Sendable, Hashable, Encodable {
  package struct Column: Sendable, Hashable, Encodable {
    package let name: String
    /// The number of rows in both databases that have different values there.
    package let rows: Int
  }

  package let table: String
  package let changed: Int
  /// The number of rows only in the database.
  package let added: Int
  /// The number of rows only in the other file.
  package let removed: Int
  package let columns: [Column]

  /// The differences in a compared table; nil if nothing differs.
  init?(_ table: ComparedTable, _ tally: ComparisonTally.Table) {
    guard tally.different > 0 else { return nil }
    self.table = table.name
    changed = tally.counts[.changed, default: 0]
    added = tally.counts[.added, default: 0]
    removed = tally.counts[.removed, default: 0]
    columns = zip(table.columns, tally.columns).filter { $0.1 > 0 }
      .map { Column(name: $0, rows: $1) }
  }
}
