import BatchJobs

struct ComparisonTally: Sendable {
  struct Table: Sendable {
    var rows = 0
    var counts: [StoreDifference.Kind: Int] = [:]
    /// The number of rows in which each column differs.
    private(set) var columns: [Int] = []
    /// The number of rows that differ where they may: whole rows, and by column.
    var freeRows = 0
    private(set) var freeColumns: [Int] = []

    var different: Int { counts.values.reduce(0, +) }
    /// Those that may be the same rows under other rowids: as many are gone as have appeared.
    var moved: Int {
      let pairs = min(counts[.added, default: 0], counts[.removed, default: 0])
      return counts[.changed, default: 0] + 2 * pairs
    }

    mutating func take(_ counted: ColumnCounts, freely isFree: Bool) {
      if isFree {
        freeRows += counted.rows
      } else {
        columns = counted.columns
        counts[.changed] = counted.rows
      }
    }

    mutating func take(free counted: [Int]) { freeColumns = counted }

    fileprivate mutating func add(_ other: Table) {
      rows += other.rows
      freeRows += other.freeRows
      counts.merge(other.counts, uniquingKeysWith: +)
      Self.add(other.columns, to: &columns)
      Self.add(other.freeColumns, to: &freeColumns)
    }

    private static func add(_ others: [Int], to counts: inout [Int]) {
      if counts.isEmpty {
        counts = others
      } else {
        for (index, count) in others.enumerated() { counts[index] += count }
      }
    }
  }

  /// The number of rows that runs have set, deleted and copied, and that are as they should be.
  var set = 0
  var deleted = 0
  var copied = 0
  /// The number of rows that runs have found, and that are in one of the two; a row counts for each
  /// run.
  var found = 0
  var tables: [Int: Table] = [:]
  /// The first differences, each with its part and its index there.
  private(set) var differences: [(part: Int, place: Int, difference: StoreDifference)] = []

  var rows: Int { tables.values.reduce(0) { $0 + $1.rows } }

  var counts: [StoreDifference.Kind: Int] {
    tables.values.reduce(into: [:]) { $0.merge($1.counts, uniquingKeysWith: +) }
  }

  mutating func append(_ difference: StoreDifference, part: Int) {
    differences.append((part, differences.count, difference))
  }

  /// Adds another worker's findings in the same tables, and keeps only the first differences.
  mutating func add(_ other: ComparisonTally, limit: Int) {
    set += other.set
    deleted += other.deleted
    copied += other.copied
    found += other.found
    for (number, table) in other.tables { tables[number, default: Table()].add(table) }
    differences += other.differences
    // One worker compares a part, and finds its differences in order.
    differences.sort { ($0.part, $0.place) < ($1.part, $1.place) }
    differences = Array(differences.prefix(limit))
  }
}
