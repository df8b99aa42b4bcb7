package import BatchIdentifiers

/// Rows for a handler: the columns that it reads, and each row's identifier.
package struct ChunkRows: Sendable {
  /// The names of the columns.
  package let columns: [String]
  /// The values, a row for each row.
  package let values: ValueBlock
  /// The number of each row's identifier among those of its chunk, ascending.
  private let numbers: [Int]
  /// The position of the chunk's first identifier in the list.
  private let first: Int
  /// The key of a number.
  private let key: @Sendable (_ number: Int) -> PrimaryKey

  /// Makes rows of a chunk.
  package init(
    _ values: ValueBlock,
    of columns: [String],
    numbers: [Int],
    at first: Int = 0,
    key: @escaping @Sendable (_ number: Int) -> PrimaryKey
  ) {
    self.columns = columns
    self.values = values
    self.numbers = numbers
    self.first = first
    self.key = key
  }

  /// The number of rows.
  package var count: Int { values.count }

  /// The key of a row.
  package func key(of row: Int) -> PrimaryKey { key(numbers[row]) }

  /// The position of a row's identifier in the list.
  package func position(of row: Int) -> Int { first + numbers[row] }

  /// A key that is the same whenever a run handles the row, and unique to row and run.
  package func idempotencyKey(of row: Int, run: String) -> String { "\(run):\(key(of: row))" }

  /// Some of the rows, in the same order.
  package func selecting(_ selected: [Int]) -> ChunkRows {
    ChunkRows(
      values.selecting(selected),
      of: columns,
      numbers: selected.map { numbers[$0] },
      at: first,
      key: key
    )
  }
}
