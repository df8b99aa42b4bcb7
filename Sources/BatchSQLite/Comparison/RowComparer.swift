import BatchIdentifiers
import BatchJobs

/// Compares the rows of two databases on one connection, in parts.
struct RowComparer {
  private let connection: Connection
  private let tables: [(table: ComparedTable, rules: TableRules)]
  private let aim: ComparisonAim
  private let comparison: RowComparison
  private var tally = ComparisonTally()
  private var counted: Int?

  init(
    _ tables: [(table: ComparedTable, rules: TableRules)],
    _ aim: ComparisonAim,
    in connection: Connection
  ) throws(BatchError) {
    self.connection = connection
    self.tables = tables
    self.aim = aim
    comparison = RowComparison(aim.runs.map(\.rows))
    try comparison.register(in: connection)
    for table in tables { try table.rules.expected?.create(in: connection) }
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
    tally.copied = comparison.copies
    return tally
  }

  private mutating func compare(_ part: RangeCutter.Part) throws(BatchError) -> Int {
    let (table, rules) = tables[part.table]
    let sql = ComparisonSQL(table, rules)
    if counted != part.table {
      endCounting()
      counted = part.table
      comparison.columns = ColumnCounts(
        columns: table.columns.count,
        samples: aim.countsColumns ? aim.samples : .max
      )
      comparison.noted = [Int](repeating: 0, count: table.columns.count)
    }
    if let expected = rules.expected {
      let counts = try expected.fill(with: part.range, in: connection)
      tally.set += counts.set
      tally.deleted += counts.deleted
      tally.found += counts.found
    }
    let (pairsBefore, copiesBefore) = (comparison.pairs, comparison.copies)
    var added = 0
    try forEachKey(sql.changed, of: table, part) { key, finding throws(BatchError) in
      guard let found = ComparisonSQL.Finding(rawValue: finding) else {
        added += 1
        tally.found -= Int(finding)
        return try tell(.added, key, part)
      }
      note(found)
      switch found {
      case .isDifferent, .isSet: try tell(.changed, key, part)
      case .isDeleted: try tell(.outcome, key, part, "the run has deleted it, and it is there")
      case .isVanished:
        try tell(.outcome, key, part, "it was gone when its turn came, and is there")
      case .isContradicted:
        try tell(.outcome, key, part, "it does not fit the outcome that the run has recorded")
      }
    }
    let pairs = comparison.pairs - pairsBefore
    let copies = comparison.copies - copiesBefore
    // Rows that are only in the other file increase its row count.
    let others = try count(sql, part)
    if others != pairs {
      try forEachKey(sql.removed, of: table, part) { key, finding throws(BatchError) in
        if let found = ComparisonSQL.Finding(rawValue: finding) { note(found) }
        try tell(.removed, key, part)
      }
    }
    let rows = others + added + copies
    tally.tables[part.table, default: .init()].rows += rows
    return rows
  }

  /// Takes back that a row is as a run should have left it.
  private mutating func note(_ finding: ComparisonSQL.Finding) {
    switch finding {
    case .isSet: tally.set -= 1
    case .isDeleted: tally.deleted -= 1
    case .isDifferent, .isVanished, .isContradicted: break
    }
  }

  private mutating func endCounting() {
    guard let counted else { return }
    let isFree = tables[counted].rules.reason(toAllow: .changed) != nil
    tally.tables[counted, default: .init()].take(comparison.columns, freely: isFree)
    tally.tables[counted]?.take(free: comparison.noted)
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

  /// Calls `body` with the keys that a statement finds, and with its finding.
  private func forEachKey(
    _ sql: String,
    of table: ComparedTable,
    _ part: RangeCutter.Part,
    _ body: (PrimaryKey, Int64) throws(BatchError) -> Void
  ) throws(BatchError) {
    let statement = try connection.prepare(sql)
    try bind(part, to: statement)
    let count = table.keyColumns.count
    var encoder = EncodedKey.Encoder()
    while try statement.step() {
      encoder.removeAll()
      for column in 0..<count { statement.appendKeyComponent(at: column, to: &encoder) }
      try body(.encoded(encoder.key), statement.integer(at: count))
    }
  }

  // MARK: Telling

  /// Counts a different row, and keeps its differences if it is one of the first.
  private mutating func tell(
    _ kind: StoreDifference.Kind,
    _ key: PrimaryKey,
    _ part: RangeCutter.Part,
    _ detail: String? = nil
  ) throws(BatchError) {
    let (table, rules) = tables[part.table]
    guard rules.reason(toAllow: kind) == nil else {
      // Rows in both are counted by the columns that differ.
      if kind != .changed { tally.tables[part.table, default: .init()].freeRows += 1 }
      return
    }
    tally.tables[part.table, default: .init()].counts[kind, default: 0] += 1
    guard tally.differences.count < aim.limit else { return }
    let name: DatabaseName = kind == .removed ? .file : .database
    var columns: [StoreDifference.Column] = []
    if kind == .changed {
      columns = try differingColumns(of: table, rules, key)
    } else if aim.countsColumns {
      let count = tally.tables[part.table]?.counts[kind] ?? 0
      guard count <= aim.samples else { return }
      columns = try values(of: table, key, in: name)
    }
    let row = try connection.prepare(ComparisonSQL(table).shownKey(in: name))
    try row.bind(key)
    let isThere = try row.step()
    let values = table.shownKey.enumerated().map { index, name in
      StoreDifference.Key(name: name, value: isThere ? row.shownValue(at: index) : "")
    }
    tally.append(
      StoreDifference(kind, table.name, key: values, columns: columns, detail: detail),
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
    let row = try connection.prepare(ComparisonSQL(table).row(columns, in: name))
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
    _ rules: TableRules,
    _ key: PrimaryKey
  ) throws(BatchError) -> [StoreDifference.Column] {
    // A result has at most 2,000 columns.
    let width = 500
    let limit = aim.countsColumns ? table.columns.count : StoreDifference.columnLimit
    var differing: [StoreDifference.Column] = []
    for first in stride(from: 0, to: table.columns.count, by: width) {
      let columns = first..<min(first + width, table.columns.count)
      let row = try connection.prepare(ComparisonSQL(table, rules).row(columns))
      try row.bind(key)
      guard try row.step() else { continue }
      for (index, number) in columns.enumerated()
      where row.differ(index, index + columns.count) && differing.count < limit {
        differing.append(
          StoreDifference.Column(
            name: table.columns[number],
            file: row.shownValue(at: index + columns.count),
            database: row.shownValue(at: index)
          )
        )
      }
    }
    return differing
  }
}
