import BatchRuns
package import BatchIdentifiers

/// Keys of one chunk with the locations of their rows, so that statements find many rows at a time
/// as they lie in the table, instead of one by one.
///
/// In a table with rowids, the locations are the rowids. A rowid is not an identifier, since VACUUM
/// may change it. In a table without rowids, rows lie in key order, so the location is the range of
/// the keys. Both are valid only in the transaction that looked for the rows, and until another
/// connection commits.
package struct LocatedKeys: Sendable {
  private enum Place {
    /// By their rowids.
    case rows([Int64])
    /// Among the rows between two rowids, by their keys.
    case between(ClosedRange<Int64>)
    /// Among the rows between the first and the last key.
    case keys
  }

  let identifiers: ChunkKeys
  private let place: Place
  /// The number of the identifier of each row, ascending; nil if each identifier has a row.
  private let numbers: [Int]?
  /// The rowids in the form that statements need; in a range, the numbers of the keys.
  private(set) var rows: ChunkKeys
  /// How many rows between the first and the last key may have other keys; if there are more, the
  /// statement fails.
  private var missLimit = Int.max

  private init(_ identifiers: ChunkKeys, _ place: Place, numbers: [Int]? = nil) {
    self.identifiers = identifiers
    self.place = place
    self.numbers = numbers
    if case .rows(let rowIDs) = place {
      rows = .rowIDs(rowIDs)
    } else {
      rows = .runs([0...Int64(max(identifiers.identifierCount, 1) - 1)])
    }
  }

  init(_ identifiers: ChunkKeys, rowIDs: [Int64], numbers: [Int]? = nil) {
    self.init(identifiers, .rows(rowIDs), numbers: numbers)
  }

  /// Keys in the order of their table; each of them has a row.
  init(range identifiers: ChunkKeys) {
    self.init(identifiers, .keys)
  }

  init(_ identifiers: ChunkKeys, between rowIDs: ClosedRange<Int64>) {
    self.init(identifiers, .between(rowIDs))
  }

  var isRangeOfKeys: Bool {
    if case .keys = place { true } else { false }
  }

  var isRangeOfRows: Bool {
    if case .between = place { true } else { false }
  }

  /// The same range, in which a statement fails once looking up each row by its key would be
  /// faster.
  var limited: LocatedKeys {
    var keys = self
    keys.missLimit = identifiers.identifierCount * ChunkKeys.rowsPerLookup
    return keys
  }

  /// The same keys, in a form that finds their rows without an SQL function.
  var unfiltered: ChunkKeys {
    switch place {
    case .between, .keys: return identifiers
    case .rows:
      var keys = self
      keys.rows = rows.unfiltered
      return .located(keys)
    }
  }

  func selecting(_ indices: some RandomAccessCollection<Int>) -> ChunkKeys {
    let part = identifiers.selecting(Array(indices))
    let rowIDs: [Int64]
    switch place {
    case .rows(let all): rowIDs = all
    case .between: return part
    case .keys: return .located(LocatedKeys(range: part))
    }
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

  /// Binds the rowids for each execution of a statement, and passes the affected identifiers to
  /// `body`; identifiers without a row belong to the execution before them.
  func forEachBinding(
    of statement: borrowing Statement,
    key: EntityKey,
    firstValue: Int,
    _ body: (RowNumbers) throws(BatchError) -> Void
  ) throws(BatchError) {
    let rowIDs: [Int64]
    switch place {
    case .rows(let all): rowIDs = all
    case .between, .keys:
      try bindRange(to: statement, key: key)
      statement.findValues(by: .run(first: 0), from: firstValue)
      try body(
        RowNumbers(0..<identifiers.identifierCount, first: 0, keys: nil, isSingle: false)
      )
      statement.reset()
      return
    }
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

  func condition(_ key: EntityKey, _ rowID: String) -> String {
    switch place {
    case .rows: rows.condition(onRowID: rowID)
    case .between: "\(rowID) BETWEEN @first AND @last AND \(Self.findSQL(key)) IS NOT NULL"
    case .keys: "\(Self.bounds(of: key)) AND \(rowID) IS NOT NULL"
    }
  }

  /// The condition that a key lies in the range that ``bindRange(to:key:)`` binds.
  static func bounds(of key: EntityKey) -> String {
    func list(_ name: String) -> String {
      key.columns.indices.map { "@\(name)\($0)" }.joined(separator: ", ")
    }
    let columns = SQLName.list(key.columns)
    return "(\(columns)) >= (\(list("first"))) AND (\(columns)) <= (\(list("last")))"
  }

  static func numberSQL(_ key: EntityKey, in table: String? = nil) -> String {
    let columns = key.columns.map { (table.map { "\($0)." } ?? "") + SQLName.quoted($0) }
    return "\(KeyFilter.numberName)(\(columns.joined(separator: ", ")))"
  }

  /// The number of the key of a row; records the row's location.
  private static func findSQL(_ key: EntityKey) -> String {
    "\(KeyFilter.foundName)(\(SQLName.quoted(key.rowIDName ?? "")), \(SQLName.list(key.columns)))"
  }

  fileprivate func bindRange(to statement: borrowing Statement, key: EntityKey) throws(BatchError) {
    guard identifiers.identifierCount > 0 else { return }
    if case .between(let rowIDs) = place {
      try statement.bind(rowIDs.lowerBound, at: statement.parameterIndex("@first") ?? 0)
      try statement.bind(rowIDs.upperBound, at: statement.parameterIndex("@last") ?? 0)
      if let matched = identifiers.matched { statement.numberKeys(matched, notingRows: true) }
      return
    }
    var reader = EncodedKey.ComponentReader()
    for (name, number) in [("first", 0), ("last", identifiers.identifierCount - 1)] {
      let slots = key.columns.indices.map { statement.parameterIndex("@\(name)\($0)") ?? 0 }
      try identifiers.bind(number, to: statement, slots: slots, with: &reader)
    }
    if let matched = identifiers.matched { statement.numberKeys(matched, missLimit: missLimit) }
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

  /// Looking up a rowid by its key takes about as long as reading this many rows in sequence.
  fileprivate static let rowsPerLookup = 16

  /// The keys with the rowids of their rows; unchanged if the table has no rowids, or if they are
  /// the keys.
  ///
  /// Rows of neighbouring keys mostly lie in sequence, since a list is in that order. So the rows
  /// between those of the first and the last key are read, and the others are looked up. If a range
  /// that contains most of the rows is enough, nothing is read.
  package func located(
    by key: EntityKey,
    in entity: Entity,
    isRangeEnough: Bool = false,
    _ connection: Connection
  ) throws(BatchError) -> ChunkKeys {
    if case .runs(let runs) = self {
      guard isScattered, try Self.areClose(runs, key, entity, connection) else { return self }
      return .filtered(runs.flatMap { Array($0) })
    }
    guard identifierCount > 1, !isRange, let matched else { return self }
    let table = SQLName.quoted(entity.table)
    guard let name = key.rowIDName else {
      guard let index = key.clusteredIndex else { return self }
      let range = LocatedKeys(range: self)
      if isRangeEnough { return .located(range) }
      return try range.isDense(by: key, index, in: table, connection) ? .located(range) : self
    }
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
      if isRangeEnough { return .located(LocatedKeys(self, between: first...last)) }
      let scan = try connection.prepare(
        """
        SELECT \(LocatedKeys.numberSQL(key)), \(rowID) FROM \(table) NOT INDEXED \
        WHERE \(rowID) BETWEEN ?1 AND ?2 ORDER BY \(rowID)
        """
      )
      try scan.bind(first, at: 1)
      try scan.bind(last, at: 2)
      scan.numberKeys(matched)
      while try scan.step() {
        if !scan.isNull(at: 0) { rowIDs[Int(scan.integer(at: 0))] = scan.integer(at: 1) }
      }
      scan.reset()
    }
    try lookUp(rowIDs.indices.filter { rowIDs[$0] == nil })
    let numbers = rowIDs.indices.filter { rowIDs[$0] != nil }
    return ChunkKeys(self, rowIDs: rowIDs.compactMap(\.self), numbers: numbers)
  }
}

extension LocatedKeys {
  /// Whether each key of a range has a row, in key order, with few others between them.
  fileprivate func isDense(
    by key: EntityKey,
    _ index: String,
    in table: String,
    _ connection: Connection
  ) throws(BatchError) -> Bool {
    let count = identifiers.identifierCount
    let counting = try connection.prepare(
      """
      SELECT count(*), count(\(Self.numberSQL(key))) FROM (SELECT \(SQLName.list(key.columns)) \
      FROM \(table) INDEXED BY \(SQLName.quoted(index)) WHERE \(Self.bounds(of: key)) LIMIT @limit)
      """
    )
    let limit = count * ChunkKeys.rowsPerLookup
    try bindRange(to: counting, key: key)
    try counting.bind(Int64(limit), at: counting.parameterIndex("@limit") ?? 0)
    defer { counting.reset() }
    guard try counting.step() else { return false }
    return counting.integer(at: 0) < Int64(limit) && counting.integer(at: 1) == Int64(count)
      && connection.filter.isInOrder
  }
}

extension ChunkKeys {
  /// The keys in the form that `_batch_number` needs; nil for rowids.
  fileprivate var matched: KeyMatcher.Keys? {
    switch self {
    case .integers(let integers): .integers(integers)
    case .encoded(let encoded): .encoded(encoded)
    case .runs, .filtered, .located: nil
    }
  }

  /// The keys without the range that contains their rows.
  var lookedUpSingly: ChunkKeys {
    if case .located(let located) = self, located.isRangeOfKeys {
      located.identifiers
    } else {
      self
    }
  }

  /// Whether a worker can find out something that makes statements about the rows faster.
  func canBeLocated(by key: EntityKey, isRangeEnough: Bool) -> Bool {
    isRange ? isScattered : key.rowIDName != nil || key.clusteredIndex != nil && !isRangeEnough
  }

  /// Whether the keys are ascending rowids with many gaps between.
  private var isScattered: Bool {
    guard case .runs(let runs) = self, runs.count > Self.rowsPerLookup else { return false }
    return zip(runs, runs.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound }
  }

  /// Whether few other rows lie between some rowids, however far apart the numbers are.
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
