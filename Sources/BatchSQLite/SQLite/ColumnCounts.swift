/// Counts the rows of a table in which each column differs.
struct ColumnCounts {
  private let samples: Int
  private(set) var columns: [Int]
  private(set) var rows = 0
  private var isCounted = false

  init(columns: Int, samples: Int) {
    self.columns = [Int](repeating: 0, count: columns)
    self.samples = samples
  }

  mutating func beginRow() { isCounted = false }

  /// Counts a column that differs in the current row; returns whether to report the row.
  mutating func count(_ column: Int) -> Bool {
    if !isCounted { rows += 1 }
    isCounted = true
    columns[column] += 1
    return columns[column] <= samples
  }
}
