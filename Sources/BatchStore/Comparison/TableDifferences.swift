/// How much of a table differs otherwise than expected.
package struct TableDifferences: Sendable, Hashable, Encodable {
  /// In how many rows a column differs.
  package struct Column: Sendable, Hashable, Encodable {
    /// The column.
    package let name: String
    /// The rows that both databases have, with other values there.
    package let rows: Int
  }

  /// The table.
  package let table: String
  /// How many rows have other values.
  package let changed: Int
  /// How many rows the database alone has.
  package let added: Int
  /// How many rows the other file alone has.
  package let removed: Int
  /// The columns that differ, in their order in the table.
  package let columns: [Column]

  /// Those of a table that was compared; nil if nothing differs.
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
