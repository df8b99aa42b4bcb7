import BatchEngine
package import BatchIdentifiers

/// Keys of one chunk, with the rowids of their rows: statements find rows as they lie in the table,
/// many at a time, instead of each by its key.
///
/// A rowid is no identifier: VACUUM gives rows other ones. So this is valid only in the transaction
/// that has looked for the rows, and for as long as no other connection commits.
package struct LocatedKeys: Sendable {
  let identifiers: ChunkKeys
  private let rowIDs: [Int64]
  /// The number of the identifier of each row, ascending; nil if each identifier has a row.
  private let numbers: [Int]?
  /// The rowids in the form that statements need.
  let rows: ChunkKeys

  init(_ identifiers: ChunkKeys, rowIDs: [Int64], numbers: [Int]? = nil) {
    self.identifiers = identifiers
    self.rowIDs = rowIDs
    self.numbers = numbers
    rows = .rowIDs(rowIDs)
  }

  /// Some of the keys, by ascending index.
  func selecting(_ indices: some RandomAccessCollection<Int>) -> ChunkKeys {
    let part = identifiers.selecting(Array(indices))
    guard let numbers else {
      return .located(LocatedKeys(part, rowIDs: indices.map { rowIDs[$0] }))
    }
    var selected: (rowIDs: [Int64], numbers: [Int]) = ([], [])
    var row = 0
    for (number, index) in indices.enumerated() {
      while row < numbers.count, numbers[row] < index { row += 1 }
      guard row < numbers.count, numbers[row] == index else { continue }
      selected.rowIDs.append(rowIDs[row])
      selected.numbers.append(number)
    }
    return ChunkKeys(part, rowIDs: selected.rowIDs, numbers: selected.numbers)
  }

  /// Binds the rowids for each execution of a statement, and tells `body` which identifiers it
  /// concerns: those without a row belong to the execution before them.
  func forEachBinding(
    of statement: borrowing Statement,
    key: EntityKey,
    firstValue: Int,
    _ body: (RowNumbers) throws(BatchError) -> Void
  ) throws(BatchError) {
    var start = 0
    var done = 0
    try rows.forEachBinding(of: statement, key: key, firstValue: firstValue) {
      found throws(BatchError) in
      done += found.all.count
      let next = done < rowIDs.count ? numbers?[done] ?? done : identifiers.identifierCount
      try body(found.numbered(by: numbers, in: start..<next))
      start = next
    }
  }
}

extension ChunkKeys {
  /// Keys with the rowids of the rows that some of them have; without rows, only the keys.
  fileprivate init(_ identifiers: ChunkKeys, rowIDs: [Int64], numbers: [Int]) {
    self =
      rowIDs.isEmpty
      ? identifiers
      : .located(
        LocatedKeys(
          identifiers,
          rowIDs: rowIDs,
          numbers: numbers.count < identifiers.identifierCount ? numbers : nil
        )
      )
  }

  /// A lookup of a rowid by its key takes about as long as reading this many rows one after another.
  private static let rowsPerLookup = 16

  /// The keys with the rowids of their rows, if the table has rowids and they are not the keys
  /// themselves.
  ///
  /// Rows of neighbouring keys mostly lie one after another, since a list is in that order. So the
  /// rows between those of the first and the last key are read, and the others are looked up.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - entity: The table.
  ///   - connection: The connection, in a transaction if the result is used in that.
  /// - Returns: The keys, which may be any others if the table has no rowids to use.
  /// - Throws: Errors of SQLite.
  package func located(
    by key: EntityKey,
    in entity: Entity,
    _ connection: Connection
  ) throws(BatchError) -> ChunkKeys {
    if case .runs(let runs) = self {
      guard isScattered, try Self.areClose(runs, key, entity, connection) else { return self }
      return .filtered(runs.flatMap { Array($0) })
    }
    guard let name = key.rowIDName, identifierCount > 1, !isRange else { return self }
    let table = SQLName.quoted(entity.table)
    let (rowID, count) = (SQLName.quoted(name), identifierCount)
    let lookup = try connection.prepare(
      "SELECT \(rowID) FROM \(table) WHERE \(condition(key: key))"
    )
    var rowIDs = [Int64?](repeating: nil, count: count)
    func lookUp(_ numbers: [Int]) throws(BatchError) {
      try selecting(numbers).forEachBinding(of: lookup, key: key) { found throws(BatchError) in
        if try lookup.step() { rowIDs[numbers[found.all.lowerBound]] = lookup.integer(at: 0) }
      }
    }
    try lookUp([0, count - 1])
    if let first = rowIDs[0], let last = rowIDs[count - 1], first < last,
      UInt64(last.subtractingReportingOverflow(first).partialValue.magnitude)
        < UInt64(count * Self.rowsPerLookup)
    {
      let columns = SQLName.list(key.columns)
      let scan = try connection.prepare(
        """
        SELECT \(columns), \(rowID) FROM \(table) NOT INDEXED \
        WHERE \(rowID) BETWEEN ?1 AND ?2 ORDER BY \(rowID)
        """
      )
      try scan.bind(first, at: 1)
      try scan.bind(last, at: 2)
      var matcher = KeyMatcher(self)
      while try scan.step() {
        guard let number = matcher.number(of: scan, key.columns.count) else { continue }
        rowIDs[number] = scan.integer(at: key.columns.count)
      }
      scan.reset()
    }
    try lookUp(rowIDs.indices.filter { rowIDs[$0] == nil })
    let numbers = rowIDs.indices.filter { rowIDs[$0] != nil }
    return ChunkKeys(self, rowIDs: rowIDs.compactMap(\.self), numbers: numbers)
  }
}

extension ChunkKeys {
  /// Whether a worker can find rows of the keys in a way that makes statements about them faster.
  func canBeLocated(by key: EntityKey) -> Bool {
    isRange ? isScattered : key.rowIDName != nil
  }

  /// Whether the keys are ascending rowids with many gaps between.
  private var isScattered: Bool {
    guard case .runs(let runs) = self, runs.count > Self.rowsPerLookup else { return false }
    return zip(runs, runs.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound }
  }

  /// Whether there are few other rows between those of some rowids, however far apart these are.
  private static func areClose(
    _ runs: [ClosedRange<Int64>],
    _ key: EntityKey,
    _ entity: Entity,
    _ connection: Connection
  ) throws(BatchError) -> Bool {
    guard entity.kind == .table, key.isRowID, let first = runs.first, let last = runs.last else {
      return false
    }
    let limit = ChunkKeys.runs(runs).identifierCount + rowsPerLookup * runs.count
    let rowID = SQLName.quoted(key.columns[0])
    let counting = try connection.prepare(
      """
      SELECT count(*) FROM (SELECT 1 FROM \(SQLName.quoted(entity.table)) NOT INDEXED \
      WHERE \(rowID) BETWEEN ?1 AND ?2 LIMIT ?3)
      """
    )
    try counting.bind(first.lowerBound, at: 1)
    try counting.bind(last.upperBound, at: 2)
    try counting.bind(Int64(limit), at: 3)
    defer { counting.reset() }
    guard try counting.step() else { return false }
    return counting.integer(at: 0) < Int64(limit)
  }
}

/// Finds the keys of rows among those of a chunk, as rows come in nearly the same order.
private struct KeyMatcher {
  private let keys: ChunkKeys
  private var next = 0
  private var encoder = EncodedKey.Encoder()
  /// The number of each key; empty until needed.
  private var numbers: [PrimaryKey: Int] = [:]

  init(_ keys: ChunkKeys) { self.keys = keys }

  /// The number of the key in the first columns of a row; nil if it is not one of the chunk.
  mutating func number(of row: borrowing Statement, _ columnCount: Int) -> Int? {
    let key: PrimaryKey?
    switch keys {
    case .integers(let integers):
      guard row.isInteger(at: 0) else { return nil }
      let integer = row.integer(at: 0)
      let isNext = next < integers.count && integers[next] == integer
      key = isNext ? nil : .integer(integer)
    case .encoded(let encoded):
      encoder.removeAll()
      for column in 0..<columnCount { row.appendKeyComponent(at: column, to: &encoder) }
      let isNext = next < encoded.count && encoded.isKey(encoder.bytes, at: next)
      key = isNext ? nil : .encoded(encoder.key)
    case .runs, .filtered, .located: return nil
    }
    var number: Int? = next
    if let key {
      if numbers.isEmpty {
        for number in 0..<keys.identifierCount { numbers[keys.key(at: number)] = number }
      }
      number = numbers[key]
    }
    if let number { next = number + 1 }
    return number
  }
}
