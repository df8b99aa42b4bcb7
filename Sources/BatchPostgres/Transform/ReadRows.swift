#if PostgreSQL
import BatchEngine
package import BatchIdentifiers

/// The rows of a chunk as they were read: their columns, and the identifier of each row.
package struct ReadRows: Sendable {
  /// The columns that were read.
  package let columns: [PostgresColumn]
  /// The values of the rows found, in the order of the chunk.
  package internal(set) var values: RowValues
  /// The number of each row's identifier in the chunk, ascending.
  package internal(set) var numbers: [Int] = []
  /// The version of each row, which differs once the row has changed.
  var versions: [Int64] = []
  /// The numbers of the identifiers whose rows no longer satisfy `where`, ascending.
  var notMatching: [Int] = []
  /// The keys of the chunk.
  package internal(set) var keys: RowKeys

  init(of columns: [PostgresColumn], keys: RowKeys) {
    self.columns = columns
    self.keys = keys
    values = RowValues(columns: columns.count)
  }

  /// The number of rows found.
  package var count: Int { values.count }

  /// The key of a row.
  package func key(of row: Int) -> PrimaryKey { keys.key(at: numbers[row]) }

  /// The identifiers without a row to change, by their numbers.
  var passedOver: PassedOver {
    var passedOver = PassedOver()
    if count == keys.count { return passedOver }
    for number in notMatching { passedOver.noLongerMatching.insert(number) }
    passedOver.vanished = RangeSet(0..<keys.count)
    passedOver.vanished.subtract(passedOver.noLongerMatching)
    passedOver.vanished.subtract(RangeSet(numbers, within: 0..<keys.count))
    return passedOver
  }

  /// The first rows, as a chunk that ends before the next row.
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

  /// Some of the rows, in the same order, as rows of the same chunk.
  func selecting(_ rows: [Int]) throws(BatchError) -> ReadRows {
    var part = ReadRows(of: columns, keys: keys)
    for row in rows { try part.values.append(row: row, of: values) }
    part.numbers = rows.map { numbers[$0] }
    part.versions = rows.map { versions[$0] }
    return part
  }

  /// The place of each row among other rows of the same chunk; nil if it is missing there or has other values.
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

/// A computation of the new values of rows.
///
/// It may be called again with the same rows: after a crash, or after others have changed some of them.
package typealias RowComputation = @Sendable (ReadRows) throws(BatchError) -> ComputedRows

/// The computed values of rows.
package struct ComputedRows: Sendable {
  /// The values of the written columns, for as many of the first rows as were reached.
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
