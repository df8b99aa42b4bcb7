#if PostgreSQL
package import BatchIdentifiers

/// A change whose values are computed outside the server: the rows of a chunk are read, something computes, and one statement
/// sets what was computed.
///
/// Rows are not locked meanwhile. Each is set only if it is the version that was read, so that no change of others is
/// lost; one that is not is read and computed again. Triggers, constraints and foreign keys act as in one `UPDATE` of the rows of
/// the chunk.
package struct PostgresTransform: Sendable {
  package let table: PostgresTable
  package let key: PostgresKey
  /// What is read of a row.
  package let reads: [PostgresColumn]
  /// What may be set.
  package let writes: [PostgresColumn]
  package let condition: PostgresChange.Condition
  package let parameters: PostgresParameters
  package let path: SearchPath

  /// A transform of rows that a key identifies.
  ///
  /// - Throws: `BatchError` of code `unknownAttribute` for a column that is not there or that the server computes,
  ///   `unstableKey` for one of the key that is to be set.
  package init(
    of table: PostgresTable,
    key: PostgresKey,
    reading reads: [String],
    writing writes: [String],
    condition: PostgresChange.Condition = .init(),
    parameters: PostgresParameters = PostgresParameters(),
    path: SearchPath
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
  }

  /// Finds out, before the first chunk, whether rows can be read and set at all; changes nothing.
  ///
  /// - Parameter session: The session, in no transaction.
  /// - Returns: What somebody should know who has the rows changed.
  /// - Throws: What ``PostgresChange/check(in:)`` does.
  package func check(in session: PostgresSession) throws(BatchError) -> [String] {
    let role = try session.requireWriting()
    try table.requireOwnTransaction()
    try table.requireRights(setting: writes.map(\.name))
    let (query, statement) = try sample()
    try session.transaction(TransactionOptions(isReadOnly: true, searchPath: path)) {
      () throws(BatchError) in
      try session.describe(query)
      try session.describe(statement.sql, statement.values)
    }
    return table.notes(for: role)
  }

  /// The query that reads a chunk and the statement that sets what was computed: of a key that no row has, with values
  /// that are never set.
  func sample() throws(BatchError) -> (query: String, statement: PostgresStatement) {
    var rows = ReadRows(of: reads, keys: try .sample(of: key))
    rows.numbers = [0]
    rows.versions = [0]
    for _ in reads { rows.values.appendNull() }
    rows.values.endRow()
    var computed = ComputedRows(RowValues(columns: writes.count))
    for _ in writes { computed.values.appendNull() }
    computed.values.endRow()
    return (
      try reader.query(for: rows.keys), try statement(for: TransformedRows(rows, computed), [0])
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
      hasVersions: true
    )
  }

  /// Reads the rows of a chunk and has their values computed.
  ///
  /// - Parameters:
  ///   - keys: The keys of the chunk.
  ///   - byteLimit: How many bytes are held of what is read; the row that comes to as many is the last.
  ///   - limit: How long the statement may take; nil for what the server has.
  ///   - session: The session, in no transaction.
  ///   - compute: What computes.
  /// - Returns: The first identifiers of the chunk, as many as are held.
  /// - Throws: What the server says, and what `compute` does.
  package func prepare(
    _ keys: RowKeys,
    holding byteLimit: Int = .max,
    within limit: Duration? = nil,
    in session: PostgresSession,
    _ compute: RowComputation
  ) throws(BatchError) -> TransformedRows {
    var rows: ReadRows
    do {
      rows = try read(keys, holding: byteLimit, within: limit, in: session)
    } catch {
      guard !session.isLost, error.isAboutAmount, keys.count > 1 else { throw error }
      let half = keys.part(0..<keys.count / 2)
      return try prepare(half, holding: byteLimit, within: limit, in: session, compute)
    }
    let computed = try compute(rows)
    if computed.values.count < rows.count { rows = rows.prefix(computed.values.count) }
    return TransformedRows(rows, computed)
  }

  /// Reads the rows of a chunk again, and has those computed that are not as they were, or could not be done before.
  package func refresh(
    _ chunk: TransformedRows,
    within limit: Duration? = nil,
    in session: PostgresSession,
    _ compute: RowComputation
  ) throws(BatchError) -> TransformedRows {
    try chunk.renewed(read(chunk.rows.keys, within: limit, in: session), compute)
  }

  /// Reads the rows of a chunk.
  func read(
    _ keys: RowKeys,
    _ mode: RowReader.Mode = .alone,
    holding byteLimit: Int = .max,
    within limit: Duration? = nil,
    in session: PostgresSession
  ) throws(BatchError) -> ReadRows {
    var rows = ReadRows(of: reads, keys: keys)
    var reached = keys.count
    // In a constant: capturing the columns would copy their names for each row.
    let forms = reads.map(\.form)
    try reader.forEachRow(of: keys, mode, within: limit, in: session) {
      row,
      bytes throws(BatchError) in
      guard row.isMatching else {
        rows.notMatching.append(row.number)
        return true
      }
      for form in forms {
        if let place = row.next(in: bytes) {
          try rows.values.append(bytes.extracting(place), as: form)
        } else {
          rows.values.appendNull()
        }
      }
      rows.values.endRow()
      rows.numbers.append(row.number)
      rows.versions.append(row.version)
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

extension RowValues {
  /// Appends a value in binary form.
  fileprivate mutating func append(
    _ value: Span<UInt8>,
    as form: PostgresColumn.Form
  ) throws(BatchError) {
    switch form {
    case .boolean: append(integer: value[0] == 0 ? 0 : 1)
    case .integer: append(integer: value.bigEndianInteger() ?? 0)
    case .singleReal:
      // By its digits: 0.1 is the number that somebody wrote, and 0.10000000149011612 is not.
      let single = Float(bitPattern: value.bigEndian(at: 0, as: UInt32.self))
      append(real: Double("\(single)") ?? Double(single))
    case .real: append(real: Double(bitPattern: value.bigEndian(at: 0, as: UInt64.self)))
    case .blob: try append(blob: value)
    case .number, .text: try append(text: value)
    }
  }
}
#endif
