#if PostgreSQL
import BatchEngine
package import BatchIdentifiers

/// The rows of a chunk as they were read: the columns, and which identifier each row has.
package struct ReadRows: Sendable {
  /// What was read of each row.
  package let columns: [PostgresColumn]
  /// The values, a row for each row that was found, in the order of the chunk.
  package internal(set) var values: RowValues
  /// The number of each row's identifier in the chunk, ascending.
  package internal(set) var numbers: [Int] = []
  /// What is not the same when a row has changed, one for each.
  var versions: [Int64] = []
  /// The numbers of identifiers whose rows do not satisfy `where` any more, ascending.
  var notMatching: [Int] = []
  /// The keys of the chunk.
  package internal(set) var keys: RowKeys

  init(of columns: [PostgresColumn], keys: RowKeys) {
    self.columns = columns
    self.keys = keys
    values = RowValues(columns: columns.count)
  }

  /// How many rows were found.
  package var count: Int { values.count }

  /// The key of a row.
  package func key(of row: Int) -> PrimaryKey { keys.key(at: numbers[row]) }

  /// The identifiers without a row that is to be changed, by their numbers.
  var passedOver: PassedOver {
    var passedOver = PassedOver()
    if count == keys.count { return passedOver }
    for number in notMatching { passedOver.noLongerMatching.insert(number) }
    passedOver.vanished = RangeSet(0..<keys.count)
    passedOver.vanished.subtract(passedOver.noLongerMatching)
    passedOver.vanished.subtract(RangeSet(numbers, within: 0..<keys.count))
    return passedOver
  }

  /// The first rows, as those of a chunk that ends before the next one.
  func prefix(_ length: Int) -> ReadRows {
    guard length < count else { return self }
    let end = numbers[length]
    var part = self
    part.values = values.prefix(length)
    part.numbers.removeSubrange(length...)
    part.versions.removeSubrange(length...)
    part.notMatching.removeAll { $0 >= end }
    part.keys = keys.part(0..<end)
    return part
  }

  /// Some of the rows, in the same order, as those of the same chunk.
  func selecting(_ rows: [Int]) throws(BatchError) -> ReadRows {
    var part = ReadRows(of: columns, keys: keys)
    for row in rows { try part.values.append(row: row, of: values) }
    part.numbers = rows.map { numbers[$0] }
    part.versions = rows.map { versions[$0] }
    return part
  }

  /// Where each row is among others of the same chunk; nil if it is not there, or has other values.
  func places(in others: ReadRows) -> [Int?] {
    var place = 0
    return (0..<count).map { row in
      while place < others.count, others.numbers[place] < numbers[row] { place += 1 }
      guard place < others.count, others.numbers[place] == numbers[row],
        values.isSame(row, as: others.values, place)
      else { return nil }
      return place
    }
  }
}

/// What computes the new values of rows.
///
/// It may be called with the same rows again: after a crash, and where others have changed some of them meanwhile.
package typealias RowComputation = @Sendable (ReadRows) throws(BatchError) -> ComputedRows

/// What was computed of rows.
package struct ComputedRows: Sendable {
  /// The values of the columns that are written, a row for each of the first rows that was reached.
  package var values: RowValues
  /// The rows that failed, ascending.
  package var failures: [(row: Int, error: BatchError)] = []
  /// The rows that cannot be done now, ascending.
  package var postponed: [(row: Int, error: BatchError)] = []

  package init(_ values: RowValues) {
    self.values = values
  }
}
#endif
