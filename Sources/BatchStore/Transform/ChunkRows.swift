package import BatchIdentifiers

/// The rows of a chunk as they were read: the declared columns, and which identifier each row has.
package struct ChunkRows: Sendable {
  /// The names of the columns, for errors.
  let columns: [String]
  /// The values, a row for each row that was found, in the order of the list.
  package internal(set) var values = ValueBlock(columns: 0, capacity: 0)
  /// The number of each row's identifier within the chunk, ascending.
  package internal(set) var numbers: [Int] = []
  /// The rowids of the rows, where those are the keys.
  var rowIDs: [Int64] = []
  /// The keys of the chunk.
  let keys: ChunkKeys

  /// No rows of a chunk.
  init(columns: [String], keys: ChunkKeys) {
    self.columns = columns
    self.keys = keys
  }

  /// How many rows were found.
  package var count: Int { values.count }

  /// The key of a row.
  package func key(of row: Int) -> PrimaryKey {
    rowIDs.isEmpty ? keys.key(at: numbers[row]) : .integer(rowIDs[row])
  }

  /// What is the same whenever a row is handled in a run, and never the same for two rows or runs.
  func idempotencyKey(of row: Int, run: String) -> String { "\(run):\(key(of: row))" }

  /// The keys that find some of the rows.
  func keys(ofRows rows: [Int]) -> ChunkKeys {
    keys.isRange
      ? .rowIDs(rows.map { rowIDs[$0] }) : keys.selecting(rows.map { numbers[$0] })
  }

  /// Some of the rows.
  func part(_ range: Range<Int>) -> ChunkRows {
    var part = self
    part.values = values.selecting(range)
    part.numbers = Array(numbers[range])
    if !rowIDs.isEmpty { part.rowIDs = Array(rowIDs[range]) }
    return part
  }

  /// Whether the same rows of the chunk have the same values.
  func isSame(as other: ChunkRows) -> Bool {
    numbers == other.numbers && values == other.values
  }
}
