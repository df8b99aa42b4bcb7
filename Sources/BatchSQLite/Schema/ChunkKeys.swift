package import BatchIdentifiers

/// The keys of one chunk, in the form that SQL statements need.
package enum ChunkKeys: Sendable {
  /// Ranges of consecutive rowids: `BETWEEN first AND last` selects exactly these rows, and none
  /// inserted since.
  case runs([ClosedRange<Int64>])
  /// Ascending rowids that are close together: their range, filtered.
  case filtered([Int64])
  /// Integer keys that are not rowids, one by one, since a REAL may lie between two consecutive
  /// ones.
  case integers([Int64])
  case encoded(EncodedKeys)
  /// Keys whose rows are found by rowid.
  indirect case located(LocatedKeys)

  package init(
    _ list: PackedIdentifiers,
    _ positions: Range<Int>,
    key: EntityKey
  ) throws(BatchError) {
    guard list.header.keyKind == .integer else {
      self = .encoded(try list.encodedKeys(in: positions))
      return
    }
    let integers = try list.integers(in: positions)
    guard key.isRowID else {
      self = .integers(integers)
      return
    }
    self = Self.rowIDs(integers)
  }

  /// Rowids in the cheapest form.
  package static func rowIDs(_ integers: [Int64]) -> ChunkKeys {
    let (runs, isAscending) = runs(of: integers)
    // A statement costs about as much as skipping this many rows, as measured with rows of 20
    // columns.
    let passedOver = 16
    if isAscending, let first = integers.first, let last = integers.last, runs.count > 1,
      UInt64(bitPattern: last &- first) < UInt64(integers.count + passedOver * runs.count)
    {
      return .filtered(integers)
    }
    return .runs(runs)
  }

  /// The same keys, in a form that finds their rows without an SQL function; if a statement calls a
  /// function, SQLite keeps the pages that it changes, to restore them if the function fails.
  var unfiltered: ChunkKeys {
    switch self {
    case .filtered(let keys): .runs(Self.runs(of: keys).runs)
    case .located(let keys): keys.unfiltered
    case .runs, .integers, .encoded: self
    }
  }

  private static func runs(
    of integers: [Int64]
  ) -> (runs: [ClosedRange<Int64>], isAscending: Bool) {
    var runs: [ClosedRange<Int64>] = []
    var isAscending = true
    var first: Int64?
    var last: Int64 = 0
    for integer in integers {
      if let start = first {
        if last < .max, integer == last + 1 {
          last = integer
          continue
        }
        isAscending = isAscending && integer > last
        runs.append(start...last)
      }
      first = integer
      last = integer
    }
    if let first { runs.append(first...last) }
    return (runs, isAscending)
  }
}

extension ChunkKeys {
  /// No keys, in the form of an entity's keys.
  package static func shape(of key: EntityKey) -> ChunkKeys {
    if key.rowIDName != nil { return .located(LocatedKeys(.integers([]), rowIDs: [])) }
    if key.clusteredIndex != nil { return .located(LocatedKeys(range: .integers([]))) }
    return key.isRowID ? .runs([]) : .integers([])
  }

  /// The SQL that identifies the rows of a range: their rowids, or the numbers of their keys.
  ///
  /// Includes the quoted `table` if another table may have the same columns.
  func rowID(of key: EntityKey, in table: String? = nil) -> String {
    let prefix = table.map { "\($0)." } ?? ""
    guard case .located = self else { return prefix + SQLName.quoted(key.columns[0]) }
    if let name = key.rowIDName { return prefix + SQLName.quoted(name) }
    return LocatedKeys.numberSQL(key, in: table)
  }

  /// The columns that sort the rows of a range in the order of the chunk.
  func order(of key: EntityKey) -> String {
    if case .located(let located) = self, located.isRangeOfKeys {
      return SQLName.list(key.columns)
    }
    return rowID(of: key)
  }

  /// The text after the table that makes SQLite find the rows of a range in the order of the chunk.
  func scan(of key: EntityKey) -> String {
    guard isRange else { return "" }
    if case .located(let located) = self, located.isRangeOfKeys, let index = key.clusteredIndex {
      return " INDEXED BY \(SQLName.quoted(index))"
    }
    return " NOT INDEXED"
  }

  /// The condition that finds rows by keys of this form; its parameters start with `@`, which no
  /// expression of a job may use.
  package func condition(key: EntityKey) -> String {
    switch self {
    case .runs, .filtered: return condition(onRowID: rowID(of: key))
    case .located(let located): return located.condition(key, rowID(of: key))
    case .integers, .encoded:
      // IS also finds NULL, which a view's key may contain, and uses indexes like `=`.
      return key.columns.enumerated()
        .map { index, column in
          let collation = key.collations[column].map { " COLLATE \(SQLName.quoted($0))" } ?? ""
          return "\(SQLName.quoted(column))\(collation) IS @key\(index)"
        }
        .joined(separator: " AND ")
    }
  }

  func condition(onRowID rowID: String) -> String {
    let range = "\(rowID) BETWEEN @first AND @last"
    guard case .filtered = self else { return range }
    return "\(range) AND \(KeyFilter.functionName)(\(rowID))"
  }

  /// Whether one execution finds several rows, which must then be ordered.
  package var isRange: Bool {
    switch self {
    case .runs, .filtered, .located: true
    case .integers, .encoded: false
    }
  }

  /// How many executions of a statement with that condition cover all keys.
  private var bindingCount: Int {
    switch self {
    case .runs(let runs): runs.count
    case .filtered: 1
    case .integers(let integers): integers.count
    case .encoded(let encoded): encoded.count
    case .located(let located): located.rows.bindingCount
    }
  }

  var identifierCount: Int {
    switch self {
    case .runs(let runs): runs.reduce(0) { $0 + Int($1.upperBound - $1.lowerBound) + 1 }
    case .filtered(let keys): keys.count
    case .integers(let integers): integers.count
    case .encoded(let encoded): encoded.count
    case .located(let located): located.identifiers.identifierCount
    }
  }

  func part(_ range: Range<Int>) -> ChunkKeys {
    switch self {
    case .runs(let runs):
      var start = 0
      var parts: [ClosedRange<Int64>] = []
      for run in runs {
        let count = Int(run.upperBound - run.lowerBound) + 1
        let wanted = range.clamped(to: start..<(start + count))
        if !wanted.isEmpty {
          let first = run.lowerBound + Int64(wanted.lowerBound - start)
          parts.append(first...(first + Int64(wanted.count - 1)))
        }
        start += count
      }
      return .runs(parts)
    case .filtered(let keys): return .filtered(Array(keys[range]))
    case .integers(let keys): return .integers(Array(keys[range]))
    case .encoded(let keys): return .encoded(keys.part(range))
    case .located(let keys): return keys.selecting(range)
    }
  }

  func selecting(_ indices: [Int]) -> ChunkKeys {
    switch self {
    case .runs(let runs):
      let keys = runs.flatMap(\.self)
      return .rowIDs(indices.map { keys[$0] })
    case .filtered(let keys): return .rowIDs(indices.map { keys[$0] })
    case .integers(let keys): return .integers(indices.map { keys[$0] })
    case .encoded(let keys):
      return .encoded(keys.selecting(indices))
    case .located(let keys): return keys.selecting(indices)
    }
  }

  /// The same keys, each with its own statement; if SQLite knows that a statement concerns one row,
  /// it need not collect rows before changing them.
  package var singly: ChunkKeys {
    switch self {
    case .runs(let runs): .integers(runs.flatMap(\.self))
    case .filtered(let keys): .integers(keys)
    case .integers, .encoded: self
    case .located(let keys): keys.identifiers
    }
  }

  func key(at index: Int) -> PrimaryKey {
    switch self {
    case .runs(let runs):
      var start = 0
      for run in runs {
        let count = Int(run.upperBound - run.lowerBound) + 1
        if index < start + count { return .integer(run.lowerBound + Int64(index - start)) }
        start += count
      }
      preconditionFailure("a chunk has no key \(index)")
    case .filtered(let keys), .integers(let keys): return .integer(keys[index])
    case .encoded(let keys): return .encoded(keys[index])
    case .located(let keys): return keys.identifiers.key(at: index)
    }
  }

  /// Binds the keys for each execution of a statement, and calls `body`, which steps through the
  /// rows and maps them to the numbers of identifiers.
  package func forEachBinding(
    of statement: borrowing Statement,
    key: EntityKey,
    firstValue: Int = 0,
    _ body: (RowNumbers) throws(BatchError) -> Void
  ) throws(BatchError) {
    if case .located(let located) = self {
      return try located.forEachBinding(of: statement, key: key, firstValue: firstValue, body)
    }
    let names = isRange ? ["@first", "@last"] : key.columns.indices.map { "@key\($0)" }
    let slots = names.map { statement.parameterIndex($0) ?? 0 }
    var reader = EncodedKey.ComponentReader()
    var start = 0
    for binding in 0..<bindingCount {
      try bind(binding, to: statement, slots: slots, with: &reader)
      statement.findValues(by: lookup(binding), from: firstValue + start)
      try body(numbers(binding, from: start))
      statement.reset()
      start += identifierCount(ofBinding: binding)
    }
  }

  /// How a bound statement finds the computed values of its rows.
  private func lookup(_ binding: Int) -> ValueFunction.Lookup {
    switch self {
    case .runs(let runs): .run(first: runs[binding].lowerBound)
    case .filtered(let keys): .keys(keys)
    case .integers, .encoded, .located: .single
    }
  }

  private func numbers(_ binding: Int, from start: Int) -> RowNumbers {
    let all = start..<(start + identifierCount(ofBinding: binding))
    return switch self {
    case .runs(let runs):
      RowNumbers(all, first: runs[binding].lowerBound, keys: nil, isSingle: false)
    case .filtered(let keys):
      RowNumbers(all, first: keys[0], keys: keys, isSingle: false)
    case .integers, .encoded, .located:
      RowNumbers(all, first: 0, keys: nil, isSingle: true)
    }
  }

  private func identifierCount(ofBinding binding: Int) -> Int {
    switch self {
    case .runs(let runs): Int(runs[binding].upperBound - runs[binding].lowerBound) + 1
    case .filtered(let keys): keys.count
    case .integers, .encoded, .located: 1
    }
  }

  func bind(
    _ binding: Int,
    to statement: borrowing Statement,
    slots: [Int],
    with reader: inout EncodedKey.ComponentReader
  ) throws(BatchError) {
    switch self {
    case .runs(let runs):
      try statement.bind(runs[binding].lowerBound, at: slots[0])
      try statement.bind(runs[binding].upperBound, at: slots[1])
    case .filtered(let keys):
      try statement.bind(keys[0], at: slots[0])
      try statement.bind(keys[keys.count - 1], at: slots[1])
      statement.filterKeys(keys)
    case .integers(let integers):
      try statement.bind(integers[binding], at: slots[0])
    case .encoded(let encoded):
      try statement.bind(encoded, binding, slots: slots, with: &reader)
    case .located: preconditionFailure("located keys bind their rowids")
    }
  }
}

package struct RowNumbers {
  /// The numbers of all identifiers that the statement should find.
  private(set) var all: Range<Int>
  private let first: Int64
  private let keys: [Int64]?
  private var cursor = 0
  private let isSingle: Bool
  private let start: Int
  /// The number of the identifier of each row of the chunk; nil if it equals the index.
  private var numbers: [Int]?

  init(_ all: Range<Int>, first: Int64, keys: [Int64]?, isSingle: Bool) {
    self.all = all
    self.first = first
    self.keys = keys
    self.isSingle = isSingle
    start = all.lowerBound
  }

  func numbered(by numbers: [Int]?, in all: Range<Int>) -> RowNumbers {
    var rows = self
    rows.numbers = numbers
    rows.all = all
    return rows
  }

  /// The number of the next row, by ascending rowid; nil if it cannot be one of them.
  package mutating func next(_ rowID: Int64) -> Int? {
    if isSingle {
      cursor += 1
      return cursor == 1 ? all.lowerBound : nil
    }
    guard let keys else {
      let place = Int(rowID - first)
      guard place >= cursor else { return nil }
      cursor = place + 1
      return number(of: start + place)
    }
    while cursor < keys.count, keys[cursor] < rowID { cursor += 1 }
    return cursor < keys.count && keys[cursor] == rowID ? number(of: cursor) : nil
  }

  private func number(of place: Int) -> Int? {
    guard let numbers else { return place }
    return numbers.indices.contains(place) ? numbers[place] : nil
  }

  /// The numbers of the identifiers whose rows are missing from ascending rowids; nil if the rowids
  /// are not possible.
  func missing(from rowIDs: some Sequence<Int64>) -> RangeSet<Int>? {
    var numbers = self
    var missing = RangeSet<Int>()
    var next = all.lowerBound
    for rowID in rowIDs {
      guard let number = numbers.next(rowID), number >= next, all.contains(number) else {
        return nil
      }
      if next < number { missing.insert(contentsOf: next..<number) }
      next = number + 1
    }
    missing.insert(contentsOf: next..<all.upperBound)
    return missing
  }
}
