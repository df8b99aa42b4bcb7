/// What was found by comparing rows.
struct ComparisonTally: Sendable {
  /// How many rows there are, those that one database alone has included.
  private(set) var rows = 0
  /// How many rows differ as expected.
  var changed = 0
  var deleted = 0
  var copied = 0
  /// How many rows differ otherwise, by kind.
  var counts: [StoreDifference.Kind: Int] = [:]
  /// How many rows a table has, and how many of them differ, by the number of the table.
  private(set) var tables: [Int: (rows: Int, different: Int)] = [:]
  /// The first differences, each with its part and its place there.
  private(set) var differences: [(part: Int, place: Int, difference: StoreDifference)] = []

  /// Adds a part of a table.
  mutating func add(rows: Int, different: Int, ofTable table: Int) {
    self.rows += rows
    let sum = tables[table] ?? (0, 0)
    tables[table] = (sum.rows + rows, sum.different + different)
  }

  /// Adds a difference that is told.
  mutating func append(_ difference: StoreDifference, part: Int) {
    differences.append((part, differences.count, difference))
  }

  /// Adds what another has found of the same tables, and keeps the first differences only.
  mutating func add(_ other: ComparisonTally, limit: Int) {
    rows += other.rows
    changed += other.changed
    deleted += other.deleted
    copied += other.copied
    counts.merge(other.counts, uniquingKeysWith: +)
    tables.merge(other.tables) { ($0.rows + $1.rows, $0.different + $1.different) }
    differences += other.differences
    // A part is compared by one, which finds its differences in their order.
    differences.sort { ($0.part, $0.place) < ($1.part, $1.place) }
    differences = Array(differences.prefix(limit))
  }
}
