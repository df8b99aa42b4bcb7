package import BatchIdentifiers

/// Rows for a handler: the columns that it reads, and the identifier of each row.
package struct ChunkRows: Sendable {
  package let columns: [String]
  package let values: ValueBlock
  /// The number of each row's identifier within the chunk, ascending.
  private let numbers: [Int]
  /// The position of the chunk's first identifier in the list.
  private let first: Int
  private let key: @Sendable (_ number: Int) -> PrimaryKey

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

  package var count: Int { values.count }

  package func key(of row: Int) -> PrimaryKey { key(numbers[row]) }

  package func position(of row: Int) -> Int { first + numbers[row] }

  /// A text that is the same each time a run handles the row, and differs for other rows and runs.
  package func idempotencyKey(of row: Int, run: String) -> String { "\(run):\(key(of: row))" }

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
