/// What was found by comparing rows.
struct ComparisonTally: Sendable {
  /// What was found in a table.
  struct Table: Sendable {
    /// How many rows it has, those that one database alone has included.
    var rows = 0
    /// How many rows differ otherwise than expected, by kind.
    var counts: [StoreDifference.Kind: Int] = [:]
    /// In how many rows each column differs.
    private(set) var columns: [Int] = []

    /// How many rows differ otherwise than expected.
    var different: Int { counts.values.reduce(0, +) }

    /// Takes over what was counted of the columns.
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

  /// How many rows differ as expected.
  var changed = 0
  var deleted = 0
  var copied = 0
  /// What was found in each table, by its number.
  var tables: [Int: Table] = [:]
  /// The first differences, each with its part and its place there.
  private(set) var differences: [(part: Int, place: Int, difference: StoreDifference)] = []

  /// How many rows there are, those that one database alone has included.
  var rows: Int { tables.values.reduce(0) { $0 + $1.rows } }

  /// How many rows differ otherwise than expected, by kind.
  var counts: [StoreDifference.Kind: Int] {
    tables.values.reduce(into: [:]) { $0.merge($1.counts, uniquingKeysWith: +) }
  }

  /// Adds a difference that is told.
  mutating func append(_ difference: StoreDifference, part: Int) {
    differences.append((part, differences.count, difference))
  }

  /// Adds what another has found of the same tables, and keeps the first differences only.
  mutating func add(_ other: ComparisonTally, limit: Int) {
    changed += other.changed
    deleted += other.deleted
    copied += other.copied
    for (number, table) in other.tables { tables[number, default: Table()].add(table) }
    differences += other.differences
    // A part is compared by one, which finds its differences in their order.
    differences.sort { ($0.part, $0.place) < ($1.part, $1.place) }
    differences = Array(differences.prefix(limit))
  }
}
