/// The number of rows of a table in which each column differs.
struct ColumnCounts {
  /// The number of rows reported per column.
  private let samples: Int
  /// The number of rows in which each column differs.
  private(set) var columns: [Int]
  /// The number of rows in which some column differs.
  private(set) var rows = 0
  /// Whether the current row is one of them.
  private var isCounted = false

  init(columns: Int, samples: Int) {
    self.columns = [Int](repeating: 0, count: columns)
    self.samples = samples
  }

  mutating func beginRow() { isCounted = false }

  /// Counts a column that differs in the current row; returns whether the row is one of the first.
  mutating func count(_ column: Int) -> Bool {
    if !isCounted { rows += 1 }
    isCounted = true
    columns[column] += 1
    return columns[column] <= samples
  }
}
