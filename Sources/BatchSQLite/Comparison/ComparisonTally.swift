/// The findings of a comparison.
struct ComparisonTally: Sendable {
  /// The findings in a table.
  struct Table: Sendable {
    /// The number of rows, including those in only one of the databases.
    var rows = 0
    /// The number of unexpectedly different rows, by kind.
    var counts: [StoreDifference.Kind: Int] = [:]
    /// The number of rows in which each column differs.
    private(set) var columns: [Int] = []

    /// The number of unexpectedly different rows.
    var different: Int { counts.values.reduce(0, +) }

    /// Adopts the counts of the columns.
    mutating func take(_ counted: ColumnCounts) {
      columns = counted.columns
      counts[.changed] = counted.rows
    }

    fileprivate mutating func add(_ other: Table) {
      rows += other.rows
      counts.merge(other.counts, uniquingKeysWith: +)
      if columns.isEmpty {
        columns = other.columns
      } else {
        for (index, count) in other.columns.enumerated() { columns[index] += count }
      }
    }
  }

  /// The number of rows that differ as expected.
  var changed = 0
  var deleted = 0
  var copied = 0
  /// The findings in each table, by its number.
  var tables: [Int: Table] = [:]
  /// The first differences, each with its part and its place there.
  private(set) var differences: [(part: Int, place: Int, difference: StoreDifference)] = []

  /// The number of rows, including those in only one of the databases.
  var rows: Int { tables.values.reduce(0) { $0 + $1.rows } }

  /// The number of unexpectedly different rows, by kind.
  var counts: [StoreDifference.Kind: Int] {
    tables.values.reduce(into: [:]) { $0.merge($1.counts, uniquingKeysWith: +) }
  }

  /// Adds a difference to report.
  mutating func append(_ difference: StoreDifference, part: Int) {
    differences.append((part, differences.count, difference))
  }

  /// Adds another worker's findings in the same tables, and keeps only the first differences.
  mutating func add(_ other: ComparisonTally, limit: Int) {
    changed += other.changed
    deleted += other.deleted
    copied += other.copied
    for (number, table) in other.tables { tables[number, default: Table()].add(table) }
    differences += other.differences
    // One worker compares a part, and finds its differences in order.
    differences.sort { ($0.part, $0.place) < ($1.part, $1.place) }
    differences = Array(differences.prefix(limit))
  }
}
