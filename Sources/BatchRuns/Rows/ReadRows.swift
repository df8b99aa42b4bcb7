package import BatchIdentifiers

/// The keys of a chunk, in the order of the list.
package protocol ChunkKeyList: Sendable {
  var count: Int { get }

  func key(at number: Int) -> PrimaryKey

  func part(_ numbers: Range<Int>) -> Self

  /// Returns single keys, for many rows.
  var lookup: @Sendable (_ number: Int) -> PrimaryKey { get }
}

/// The rows of a chunk as read from a store: some columns, and the identifier of each row.
package struct ReadRows<Keys: ChunkKeyList>: Sendable {
  package let columns: [String]
  /// One row per row found, in the order of the list.
  package var values: ValueBlock
  /// The number of each row's identifier within the chunk, ascending.
  package var numbers: [Int] = []
  /// The numbers of the identifiers whose rows no longer satisfy `where`, ascending.
  package var notMatching: [Int] = []
  /// What identifies each row to the store besides its key: a rowid or a version; may be empty.
  package var marks: [Int64] = []
  package var keys: Keys
  /// The position of the chunk's first identifier in the list.
  package let first: Int

  package init(columns: [String], keys: Keys, at first: Int = 0) {
    self.columns = columns
    self.keys = keys
    self.first = first
    values = ValueBlock(columns: columns.count, capacity: 0)
  }

  package var count: Int { values.count }

  package var handled: ChunkRows {
    ChunkRows(values, of: columns, numbers: numbers, at: first, key: keys.lookup)
  }

  package func key(of row: Int) -> PrimaryKey { keys.key(at: numbers[row]) }

  /// The identifiers, by number, whose rows were not found or no longer match.
  package var passedOver: PassedOver {
    var passedOver = PassedOver()
    if count == keys.count { return passedOver }
    passedOver.vanished = RangeSet(0..<keys.count)
    passedOver.vanished.subtract(RangeSet(ascending: numbers))
    passedOver.noLongerMatching = RangeSet(ascending: notMatching)
    passedOver.vanished.subtract(passedOver.noLongerMatching)
    return passedOver
  }

  /// The first rows, as a chunk that ends before the next row.
  package func prefix(_ count: Int) -> ReadRows {
    guard count < self.count else { return self }
    let end = numbers[count]
    var part = self
    part.values = values.selecting(0..<count)
    part.keys = keys.part(0..<end)
    part.numbers.removeSubrange(count...)
    part.notMatching.removeAll { $0 >= end }
    if !marks.isEmpty { part.marks.removeSubrange(count...) }
    return part
  }

  package func selecting(_ selected: [Int]) -> ReadRows {
    var part = self
    part.values = values.selecting(selected)
    part.numbers = selected.map { numbers[$0] }
    if !marks.isEmpty { part.marks = selected.map { marks[$0] } }
    return part
  }

  /// Some of the rows, as a chunk with some of the keys.
  package func selecting(_ selected: [Int], of keyNumbers: Range<Int>) -> ReadRows {
    var part = ReadRows(
      columns: columns,
      keys: keys.part(keyNumbers),
      at: first + keyNumbers.lowerBound
    )
    part.values = values.selecting(selected)
    part.numbers = selected.map { numbers[$0] - keyNumbers.lowerBound }
    if !marks.isEmpty { part.marks = selected.map { marks[$0] } }
    return part
  }

  /// The index of each row among others of the same chunk; nil if it is missing or has changed.
  package func places(in others: ReadRows) -> [Int?] {
    var place = 0
    return (0..<count).map { row in
      while place < others.count, others.numbers[place] < numbers[row] { place += 1 }
      guard place < others.count, others.numbers[place] == numbers[row],
        values.isSame(row, as: others.values, place)
      else { return nil }
      return place
    }
  }

  /// Whether both have the same rows with the same values.
  package func isSame(as other: ReadRows) -> Bool {
    numbers == other.numbers && marks == other.marks && values == other.values
  }
}

extension RangeSet<Int> {
  package init(ascending numbers: some Sequence<Int>) {
    self.init()
    // Inserts whole runs, since an insertion costs far more than a comparison.
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
