import BatchIdentifiers

/// Compares the rows of two databases on one connection, in parts.
struct RowComparer {
  private let connection: Connection
  private let tables: [ComparedTable]
  private let aim: ComparisonAim
  private let comparison: RowComparison
  private var tally = ComparisonTally()
  private var counted: Int?

  init(
    _ tables: [ComparedTable],
    _ aim: ComparisonAim,
    in connection: Connection
  ) throws(BatchError) {
    self.connection = connection
    self.tables = tables
    self.aim = aim
    comparison = RowComparison(aim.expected?.rows)
    try comparison.register(in: connection)
  }

  /// Compares the parts from a cutter that all workers share, until there are no more; calls
  /// `progress` with the number of rows of each.
  consuming func compare(
    _ cutter: Lock<RangeCutter>,
    progress: (Int) -> Void
  ) throws(BatchError) -> ComparisonTally {
    let connection = connection
    while let part = try cutter.withLock({ cutter throws(BatchError) in
      try cutter.next(in: connection)
    }) {
      progress(try compare(part))
    }
    endCounting()
    tally.changed = comparison.count(.changed)
    tally.deleted = comparison.count(.deleted) + comparison.count(.deletedWithCopy)
    tally.copied = comparison.count(.copied)
    return tally
  }

  private mutating func compare(_ part: RangeCutter.Part) throws(BatchError) -> Int {
    let table = tables[part.table]
    let sql = ComparisonSQL(table, aim)
    let free = sql.freeColumns
    if counted != part.table {
      endCounting()
      counted = part.table
      comparison.columns = ColumnCounts(
        columns: table.columns.count,
        samples: aim.countsColumns ? aim.samples : .max
      )
    }
    let (pairsBefore, copiesBefore) = (comparison.pairs, comparison.count(.copied))
    var added = 0
    try forEachKey(sql.changed, of: table, part) { key, finding throws(BatchError) in
      if finding == .isAdded { added += 1 }
      try tell(
        finding == .isAdded ? .added : .changed,
        of: table,
        key,
        part,
        but: finding == .isSelected ? free : []
      )
    }
    let pairs = comparison.pairs - pairsBefore
    let copies = comparison.count(.copied) - copiesBefore
    // Rows that are only in the other file increase its row count.
    let others = try count(sql, part)
    if others != pairs {
      try forEachKey(sql.removed, of: table, part) { key, _ throws(BatchError) in
        try tell(.removed, of: table, key, part)
      }
    }
    let rows = others + added + copies
    tally.tables[part.table, default: .init()].rows += rows
    return rows
  }

  private mutating func endCounting() {
    guard let counted else { return }
    tally.tables[counted, default: .init()].take(comparison.columns)
  }

  private func count(_ sql: ComparisonSQL, _ part: RangeCutter.Part) throws(BatchError) -> Int {
    let statement = try connection.prepare(sql.count(.file))
    try bind(part, to: statement)
    return try statement.step() ? Int(statement.integer(at: 0)) : 0
  }

  private func bind(
    _ part: RangeCutter.Part,
    to statement: borrowing Statement
  ) throws(BatchError) {
    guard let range = part.range else { return }
    try statement.bind(range.lowerBound, at: 1)
    try statement.bind(range.upperBound, at: 2)
  }

  /// Calls `body` with the keys that a statement finds, and with its finding if it returns one.
  private func forEachKey(
    _ sql: String,
    of table: ComparedTable,
    _ part: RangeCutter.Part,
    _ body: (PrimaryKey, ComparisonSQL.Finding?) throws(BatchError) -> Void
  ) throws(BatchError) {
    let statement = try connection.prepare(sql)
    try bind(part, to: statement)
    let count = table.keyColumns.count
    var encoder = EncodedKey.Encoder()
    while try statement.step() {
      encoder.removeAll()
      for column in 0..<count { statement.appendKeyComponent(at: column, to: &encoder) }
      let finding = statement.columnCount > count ? statement.integer(at: count) : nil
      try body(.encoded(encoder.key), finding.flatMap { .init(rawValue: $0) })
    }
  }

  // MARK: Telling

  /// Counts a different row, and keeps its differences if it is one of the first.
  private mutating func tell(
    _ kind: StoreDifference.Kind,
    of table: ComparedTable,
    _ key: PrimaryKey,
    _ part: RangeCutter.Part,
    but free: Set<String> = []
  ) throws(BatchError) {
    tally.tables[part.table, default: .init()].counts[kind, default: 0] += 1
    guard tally.differences.count < aim.limit else { return }
    let name: DatabaseName = kind == .removed ? .file : .database
    var columns: [StoreDifference.Column] = []
    if kind == .changed {
      columns = try differingColumns(of: table, key, but: free)
    } else if aim.countsColumns {
      let count = tally.tables[part.table]?.counts[kind] ?? 0
      guard count <= aim.samples else { return }
      columns = try values(of: table, key, in: name)
    }
    let row = try connection.prepare(ComparisonSQL(table, aim).shownKey(in: name))
    try row.bind(key)
    let isThere = try row.step()
    let values = table.shownKey.enumerated().map { index, name in
      StoreDifference.Key(name: name, value: isThere ? row.shownValue(at: index) : "")
    }
    tally.append(
      StoreDifference(kind, table.name, key: values, columns: columns),
      part: part.number
    )
  }

  private func values(
    of table: ComparedTable,
    _ key: PrimaryKey,
    in name: DatabaseName
  ) throws(BatchError) -> [StoreDifference.Column] {
    let columns = table.columns.prefix(StoreDifference.columnLimit)
    guard !columns.isEmpty else { return [] }
    let row = try connection.prepare(ComparisonSQL(table, aim).row(columns, in: name))
    try row.bind(key)
    guard try row.step() else { return [] }
    return columns.enumerated().map { index, column in
      let value = row.shownValue(at: index)
      return StoreDifference.Column(
        name: column,
        file: name == .file ? value : "",
        database: name == .database ? value : ""
      )
    }
  }

  private func differingColumns(
    of table: ComparedTable,
    _ key: PrimaryKey,
    but free: Set<String>
  ) throws(BatchError) -> [StoreDifference.Column] {
    // A result has at most 2,000 columns.
    let width = 500
    let limit = aim.countsColumns ? table.columns.count : StoreDifference.columnLimit
    var differing: [StoreDifference.Column] = []
    for first in stride(from: 0, to: table.columns.count, by: width) {
      let columns = table.columns[first..<min(first + width, table.columns.count)]
      let row = try connection.prepare(ComparisonSQL(table, aim).row(columns))
      try row.bind(key)
      guard try row.step() else { continue }
      for (index, name) in columns.enumerated()
      where !free.contains(name) && row.differ(index, index + columns.count)
        && differing.count < limit
      {
        differing.append(
          StoreDifference.Column(
            name: name,
            file: row.shownValue(at: index + columns.count),
            database: row.shownValue(at: index)
          )
        )
      }
    }
    return differing
  }
}
