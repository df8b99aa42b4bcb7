#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers

/// A change whose values are computed outside the server: it reads the rows of a chunk, computes their new values, and
/// sets them with one statement.
///
/// Rows are not locked during the computation. A row is set only if it is still the version that was read, so no change
/// by others is lost; otherwise it is read and computed again. Triggers, constraints and foreign keys act as in one
/// `UPDATE` of the chunk's rows.
package struct PostgresTransform: Sendable {
  package let table: PostgresTable
  package let key: PostgresKey
  /// The columns that are read.
  package let reads: [PostgresColumn]
  package let writes: [PostgresColumn]
  package let condition: PostgresChange.Condition
  package let parameters: PostgresParameters
  package let path: SearchPath
  /// Whether each row has a statement of its own, in the order of the list.
  package let isOneByOne: Bool
  /// Where changed rows are recorded; nil to keep no record.
  package var undo: UndoRecords?
  /// The schema without which it reads and changes nothing; nil before there is a run.
  package var expected: ExpectedTables?

  /// A transform of rows that a key identifies.
  ///
  /// - Throws: `BatchError` of code `unknownAttribute` for a column that does not exist or a written column that the
  ///   server computes, `unstableKey` for a written column of the key.
  package init(
    of table: PostgresTable,
    key: PostgresKey,
    reading reads: [String],
    writing writes: [String],
    condition: PostgresChange.Condition = .init(),
    parameters: PostgresParameters = PostgresParameters(),
    path: SearchPath,
    inOrder: Bool = false
  ) throws(BatchError) {
    self.table = table
    self.key = key
    var columns: [PostgresColumn] = []
    for name in reads { columns.append(try table.requireColumn(named: name)) }
    self.reads = columns
    columns = []
    for name in writes {
      columns.append(try table.requireSettableColumn(named: name, besides: key))
    }
    self.writes = columns
    self.condition = condition
    self.parameters = parameters
    self.path = path
    isOneByOne =
      inOrder
      && (table.isAffectedByOrder(of: writes) || condition.predicate?.isAboutRow == false)
  }

  /// What a run of it depends on of the schema as it is now.
  package func expectedTables(
    in database: PostgresDatabase,
    _ session: PostgresSession
  ) throws(BatchError) -> ExpectedTables {
    try ExpectedTables(
      of: table,
      key: key,
      using: reads + writes,
      reading: [condition.predicate].compactMap(\.?.reads),
      in: database,
      session
    )
  }

  /// Checks, before the first chunk, whether rows can be read and set at all; changes nothing.
  ///
  /// - Parameter session: The session, in no transaction.
  /// - Returns: Notes for whoever runs the transform.
  /// - Throws: What ``PostgresChange/check(in:)`` does.
  package func check(in session: PostgresSession) throws(BatchError) -> [String] {
    let role = try session.requireWriting()
    try table.requireOwnTransaction(in: session)
    try table.requireRights(setting: writes.map(\.name))
    try table.requirePolicy(for: .update, in: session)
    let statement = try sample().statement
    try session.transaction(TransactionOptions(isReadOnly: true, searchPath: path)) {
      () throws(BatchError) in
      try reader.requirePlan(in: session)
      try session.execute("EXPLAIN \(statement.sql)", statement.values)
    }
    return table.notes(for: role)
  }

  /// The query that reads a chunk and the statement that sets the computed values, for a sample key and values that are
  /// never set.
  func sample() throws(BatchError) -> (query: String, statement: PostgresStatement) {
    var rows = ReadRows(columns: reads.map(\.name), keys: try RowKeys.sample(of: key))
    rows.numbers = [0]
    rows.marks = [0]
    rows.values = ValueBlock(columns: reads.count, capacity: 1, count: 1)
    let nulls = RowChanges(values: ValueBlock(columns: writes.count, capacity: 1, count: 1))
    return (
      try reader.query(for: rows.keys), try statement(for: TransformedRows(rows, nulls), [0])
    )
  }

  // MARK: Reading and computing

  var reader: RowReader {
    RowReader(
      table: table,
      key: key,
      columns: reads,
      condition: condition.predicate,
      parameters: parameters,
      path: path,
      hasVersions: true,
      expected: expected
    )
  }

  /// Reads the rows of a chunk and computes their values.
  ///
  /// - Parameters:
  ///   - keys: The keys of the chunk.
  ///   - byteLimit: How many bytes of the rows to hold; the row that reaches the limit is the last.
  ///   - limit: How long the statement may take; nil for the server's setting.
  ///   - session: The session, in no transaction.
  ///   - compute: The computation.
  /// - Returns: The first identifiers of the chunk, as many as fit; those before a row that cannot be read, or that row
  ///   alone, which fails.
  /// - Throws: The server's error, or that of `compute`.
  package func prepare(
    _ keys: RowKeys,
    holding byteLimit: Int = .max,
    within limit: Duration? = nil,
    in session: PostgresSession,
    _ compute: RowComputation
  ) throws(BatchError) -> TransformedRows<RowKeys> {
    var rows: ReadRows<RowKeys>
    do {
      rows = try read(keys, holding: byteLimit, within: limit, in: session)
    } catch {
      let isAboutRows = table.isAboutRows(error)
      guard !session.isLost, isAboutRows || error.isAboutAmount && keys.count > 1 else {
        throw error
      }
      if keys.count == 1 { return unreadable(keys, error) }
      let half = keys.part(0..<keys.count / 2)
      return try prepare(half, holding: byteLimit, within: limit, in: session, compute)
    }
    let changes = try compute(rows)
    if changes.values.count < rows.count { rows = rows.prefix(changes.values.count) }
    return TransformedRows(rows, changes)
  }

  /// A chunk of one row that cannot be read, and so fails.
  private func unreadable(_ keys: RowKeys, _ error: BatchError) -> TransformedRows<RowKeys> {
    var rows = ReadRows(columns: reads.map(\.name), keys: keys)
    rows.values = ValueBlock(columns: reads.count, capacity: 1, count: 1)
    (rows.numbers, rows.marks) = ([0], [0])
    var changes = RowChanges(ofRows: 1, columns: writes.count)
    changes.failures = [(0, error.about(keys.key(at: 0)))]
    return TransformedRows(rows, changes)
  }

  /// Reads the rows of a chunk again, and computes those that have changed or were postponed.
  package func refresh(
    _ chunk: TransformedRows<RowKeys>,
    within limit: Duration? = nil,
    in session: PostgresSession,
    _ compute: RowComputation
  ) throws(BatchError) -> TransformedRows<RowKeys> {
    try chunk.renewed(read(chunk.rows.keys, within: limit, in: session), compute)
  }

  /// Reads the rows of a chunk.
  func read(
    _ keys: RowKeys,
    _ mode: RowReader.Mode = .alone,
    holding byteLimit: Int = .max,
    within limit: Duration? = nil,
    in session: PostgresSession
  ) throws(BatchError) -> ReadRows<RowKeys> {
    var rows = ReadRows(columns: reads.map(\.name), keys: keys)
    rows.values = ValueBlock(columns: reads.count, capacity: keys.count)
    var reached = keys.count
    // A constant: capturing the columns would copy their names for each row.
    let forms = reads.map(\.form)
    try reader.forEachRow(of: keys, mode, within: limit, in: session) {
      row,
      bytes throws(BatchError) in
      guard row.isMatching else {
        rows.notMatching.append(row.number)
        return true
      }
      let place = rows.values.count
      rows.values.count += 1
      for (column, form) in forms.enumerated() {
        guard let value = row.next(in: bytes) else { continue }
        try rows.values.set(place, column, bytes.extracting(value), as: form)
      }
      rows.numbers.append(row.number)
      rows.marks.append(row.version)
      guard rows.values.byteCount >= byteLimit else { return true }
      reached = row.number + 1
      return false
    }
    if reached < keys.count { rows.keys = keys.part(0..<reached) }
    if condition.isRequired, !rows.notMatching.isEmpty {
      throw .noLongerMatching(rows.notMatching.count)
    }
    return rows
  }
}

/// Computes the changes of rows.
///
/// It may be called again with the same rows: after a crash, or after others have changed some of them.
package typealias RowComputation =
  @Sendable (ReadRows<RowKeys>) throws(BatchError) -> RowChanges

extension ValueBlock {
  mutating func set(
    _ row: Int,
    _ column: Int,
    _ value: Span<UInt8>,
    as form: PostgresColumn.Form
  ) throws(BatchError) {
    switch form {
    case .boolean: set(row, column, integer: value[0] == 0 ? 0 : 1)
    case .integer: set(row, column, integer: value.bigEndianInteger() ?? 0)
    case .singleReal:
      // By its shortest digits: somebody wrote 0.1, not 0.10000000149011612.
      let single = Float(bitPattern: value.bigEndian(at: 0, as: UInt32.self))
      try set(row, column, number: Double("\(single)") ?? Double(single))
    case .real:
      let real = Double(bitPattern: value.bigEndian(at: 0, as: UInt64.self))
      try set(row, column, number: real)
    case .blob: try set(row, column, .blob, bytes: value)
    case .number, .text: try set(row, column, .text, bytes: value)
    }
  }

  /// Sets a number; NaN as text, since a handler's numbers are SQLite's, which has none.
  private mutating func set(_ row: Int, _ column: Int, number: Double) throws(BatchError) {
    if number.isNaN { return try set(row, column, .text, bytes: "NaN".utf8) }
    set(row, column, real: number)
  }
}
#endif
