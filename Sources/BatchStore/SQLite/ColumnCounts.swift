/// In how many rows of a table each column differs.
struct ColumnCounts {
  /// How many rows are reported for each column.
  private let samples: Int
  /// In how many rows each column differs.
  private(set) var columns: [Int]
  /// In how many rows some column does.
  private(set) var rows = 0
  /// Whether the row at hand is one of them.
  private var isCounted = false

  init(columns: Int, samples: Int) {
    self.columns = [Int](repeating: 0, count: columns)
    self.samples = samples
  }

  mutating func beginRow() { isCounted = false }

  /// Counts a column that differs in the row at hand; whether the row is one of the first.
  mutating func count(_ column: Int) -> Bool {
    if !isCounted { rows += 1 }
    isCounted = true
    columns[column] += 1
    return columns[column] <= samples
  }
}
