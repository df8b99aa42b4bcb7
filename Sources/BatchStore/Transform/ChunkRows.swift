import BatchEngine
package import BatchIdentifiers

/// The rows of a chunk as read: the declared columns, and each row's identifier.
package struct ChunkRows: Sendable {
  /// The names of the columns, for errors.
  let columns: [String]
  /// The values, a row for each row found, in list order.
  package internal(set) var values = ValueBlock(columns: 0, capacity: 0)
  /// The number of each row's identifier within the chunk, ascending.
  package internal(set) var numbers: [Int] = []
  /// The numbers of identifiers whose rows no longer satisfy `where`, ascending.
  var notMatching: [Int] = []
  /// The rowids of the rows, if those are the keys or find the rows.
  var rowIDs: [Int64] = []
  /// The keys of the chunk.
  var keys: ChunkKeys
  /// Whether the range of the keys finds the rows.
  var isRangeOfKeys = false

  /// The position of the chunk's first identifier in the list.
  let first: Int

  /// Makes a chunk without rows.
  init(columns: [String], keys: ChunkKeys, at first: Int = 0) {
    self.columns = columns
    self.keys = keys
    self.first = first
  }

  /// Rows that were read from elsewhere than SQLite.
  ///
  /// - Parameters:
  ///   - values: The values, a row for each row.
  ///   - columns: The names of the columns.
  ///   - keys: The keys of the chunk, in the order of the list.
  ///   - numbers: The number of each row's key, ascending.
  package init(
    _ values: ValueBlock,
    of columns: [String],
    keys: ChunkKeys,
    numbers: [Int]
  ) {
    self.init(columns: columns, keys: keys)
    self.values = values
    self.numbers = numbers
  }

  /// The number of rows found.
  package var count: Int { values.count }

  /// The identifiers of the chunk whose rows need no change, by number.
  var passedOver: PassedOver {
    var passedOver = PassedOver()
    if count == keys.identifierCount { return passedOver }
    passedOver.vanished = RangeSet(0..<keys.identifierCount)
    passedOver.vanished.subtract(RangeSet(ascending: numbers))
    passedOver.noLongerMatching = RangeSet(ascending: notMatching)
    passedOver.vanished.subtract(passedOver.noLongerMatching)
    return passedOver
  }

  /// The key of a row.
  package func key(of row: Int) -> PrimaryKey {
    keys.isRange ? .integer(rowIDs[row]) : keys.key(at: numbers[row])
  }

  /// The position of a row's identifier in the list.
  func position(of row: Int) -> Int { first + numbers[row] }

  /// A key that is the same whenever a run handles the row, and unique to row and run.
  package func idempotencyKey(of row: Int, run: String) -> String { "\(run):\(key(of: row))" }

  /// The keys of some of the rows.
  func keys(ofRows rows: [Int]) -> ChunkKeys {
    let rowIDs = self.rowIDs.isEmpty ? nil : rows.map { self.rowIDs[$0] }
    if let rowIDs, keys.isRange { return .rowIDs(rowIDs) }
    let keys = keys.selecting(rows.map { numbers[$0] })
    if isRangeOfKeys, keys.identifierCount > 1 { return .located(LocatedKeys(range: keys)) }
    return rowIDs.map { .located(LocatedKeys(keys, rowIDs: $0)) } ?? keys
  }

  /// The first rows, as a chunk that ends before the next one.
  func prefix(_ count: Int) -> ChunkRows {
    let end = numbers[count]
    var part = self
    part.values = values.selecting(0..<count)
    part.keys = keys.part(0..<end)
    part.numbers.removeSubrange(count...)
    part.notMatching.removeAll { $0 >= end }
    if !rowIDs.isEmpty { part.rowIDs.removeSubrange(count...) }
    return part
  }

  /// Some of the rows, in the same order.
  func selecting(_ selected: [Int]) -> ChunkRows {
    var part = self
    part.values = values.selecting(selected)
    part.numbers = selected.map { numbers[$0] }
    if !rowIDs.isEmpty { part.rowIDs = selected.map { rowIDs[$0] } }
    return part
  }

  /// Some of the rows, as a chunk of some of the keys.
  func selecting(_ selected: [Int], of keyNumbers: Range<Int>) -> ChunkRows {
    var part = ChunkRows(
      columns: columns,
      keys: keys.part(keyNumbers),
      at: first + keyNumbers.lowerBound
    )
    part.isRangeOfKeys = isRangeOfKeys
    part.values = values.selecting(selected)
    part.numbers = selected.map { numbers[$0] - keyNumbers.lowerBound }
    if !rowIDs.isEmpty { part.rowIDs = selected.map { rowIDs[$0] } }
    return part
  }

  /// The index of each row among others of the same chunk; nil if it is missing or has other
  /// values.
  func places(in others: ChunkRows) -> [Int?] {
    var place = 0
    return (0..<count).map { row in
      while place < others.count, others.numbers[place] < numbers[row] { place += 1 }
      guard place < others.count, others.numbers[place] == numbers[row],
        values.isSame(row, as: others.values, place)
      else { return nil }
      return place
    }
  }

  /// Whether the same rows of the chunk have the same values.
  func isSame(as other: ChunkRows) -> Bool {
    numbers == other.numbers && rowIDs == other.rowIDs && values == other.values
  }
}

extension RangeSet<Int> {
  /// Makes a set of ascending numbers.
  init(ascending numbers: some Sequence<Int>) {
    self.init()
    // A run at a time: an insertion costs far more than a comparison.
    var run = 0..<0
    for number in numbers {
      if number != run.upperBound || run.isEmpty {
        insert(contentsOf: run)
        run = number..<number
      }
      run = run.lowerBound..<(number + 1)
    }
    insert(contentsOf: run)
  }
}
