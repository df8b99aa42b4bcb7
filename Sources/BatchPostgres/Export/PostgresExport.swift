#if PostgreSQL
package import BatchEngine
package import BatchIdentifiers

/// Reads the rows of chunks and writes them as lines, in the order of the list: the same bytes however the list is cut.
package struct PostgresExport: Sendable {
  /// How rows are written.
  package enum Format: String, Sendable {
    /// A JSON object a line.
    case ndjson
    /// RFC 4180, with a line of names first.
    case csv
  }

  /// What makes lines of rows.
  private enum Encoder {
    /// Of their values.
    case values(LineEncoder)
    /// Of lines that the server has written.
    case fields(CSVLineEncoder)
  }

  private let reader: RowReader
  private let encoder: Encoder
  private let isRequired: Bool
  /// What a file begins with, before any row.
  package let header: [UInt8]

  /// An export of some columns of the rows that a key identifies; all of them if none is named.
  ///
  /// The server may write the fields of CSV, which is faster than to make them of values; the lines are the same.
  ///
  /// - Throws: `BatchError` of code `unknownAttribute` for a column that is not there.
  package init(
    of table: PostgresTable,
    key: PostgresKey,
    _ names: [String]? = nil,
    as format: Format,
    condition: PostgresChange.Condition = .init(),
    parameters: PostgresParameters = PostgresParameters(),
    path: SearchPath,
    byServer isByServer: Bool = true
  ) throws(BatchError) {
    var columns = table.columns
    if let names {
      columns = []
      for name in names { columns.append(try table.requireColumn(named: name)) }
    }
    let values = LineEncoder(format, columns)
    header = values.header
    // A `bytea` would cross as digits, of which a large one has more than a row may have.
    let isByServer = isByServer && format == .csv && !columns.contains { $0.form == .blob }
    encoder = isByServer ? .fields(CSVLineEncoder(columns)) : .values(values)
    reader = RowReader(
      table: table,
      key: key,
      columns: columns,
      condition: condition.predicate,
      parameters: parameters,
      path: path,
      hasVersions: false,
      format: isByServer ? .csv : .binary
    )
    isRequired = condition.isRequired
  }

  /// The key that identifies its rows.
  var key: PostgresKey { reader.key }

  /// The columns that are written.
  package var columns: [String] { reader.columns.map(\.name) }

  /// The statement of a chunk, for people.
  package func statementText() throws(BatchError) -> String {
    try reader.query(for: .sample(of: reader.key))
  }

  /// How the server would find the rows of a chunk, line by line; runs nothing.
  package func explanation(in session: PostgresSession) throws(BatchError) -> [String] {
    let rows = try session.execute("EXPLAIN (COSTS OFF) \(statementText())")
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }

  /// What the first rows of a query are; inside a transaction of the caller.
  package func preview(
    _ limit: Int,
    of query: PostgresQuery,
    in session: PostgresSession
  ) throws(BatchError) -> [PreviewedRow] {
    try query.preview(limit, of: columns, in: session)
  }

  /// Finds out, before the first chunk, whether rows can be read at all.
  ///
  /// - Throws: `BatchError` of code `accessDenied` that says what to grant; what the server says of the query.
  package func check(in session: PostgresSession) throws(BatchError) {
    try reader.table.requireRights()
    let query = try reader.query(for: .sample(of: reader.key))
    try session.transaction(TransactionOptions(isReadOnly: true, searchPath: reader.path)) {
      () throws(BatchError) in _ = try session.describe(query)
    }
  }

  /// The lines of a chunk and what became of its identifiers.
  package struct Lines: Sendable {
    package internal(set) var bytes: [UInt8] = []
    /// What became of the first identifiers, as many as were reached.
    package internal(set) var written = WrittenRows()
    /// How many identifiers were reached.
    package internal(set) var count = 0
  }

  /// The lines of a chunk.
  ///
  /// A part that fails is read again in halves, down to single identifiers, as in a change.
  ///
  /// - Parameters:
  ///   - keys: The keys of the chunk.
  ///   - policy: What becomes of the lines if an identifier fails.
  ///   - byteLimit: How many bytes are held; the row that comes to as many is the last.
  ///   - limit: How long a statement may take; nil for what the server has.
  ///   - session: The session, in no transaction.
  /// - Returns: The lines, in the order of the keys.
  /// - Throws: The error of the row that is one too many, or whatever is about more than a row.
  package func lines(
    for keys: RowKeys,
    onFailure policy: FailurePolicy = .failChunk,
    holding byteLimit: Int = .max,
    within limit: Duration? = nil,
    in session: PostgresSession
  ) throws(BatchError) -> Lines {
    var lines = Lines()
    // Where the chunk fails with its first row, it is still to be said which.
    let bisected = policy == .failChunk ? FailurePolicy.skip(upTo: 0) : policy
    var bisection = Bisection(0..<keys.count, bisected)
    while lines.bytes.count < byteLimit, let part = bisection.next() {
      let before = lines
      do throws(BatchError) {
        try append(
          keys.part(part),
          from: part.lowerBound,
          upTo: byteLimit,
          within: limit,
          to: &lines,
          in: session
        )
      } catch {
        lines = before
        if session.isLost { throw error }
        if error.isAboutAmount, bisection.split(part) { continue }
        guard reader.table.isAboutRows(error) else { throw error }
        let culprit = error.about(keys.key(at: part.lowerBound))
        guard policy != .failChunk || part.count > 1 else { throw culprit }
        try bisection.failed(part, error) { _ in culprit }
        if part.count == 1 { lines.count = part.upperBound }
      }
    }
    lines.written.failures = bisection.failures.map { ($0.position, $0.error) }
    return lines
  }

  /// Appends the lines of some keys, until there are as many bytes as are held.
  private func append(
    _ keys: RowKeys,
    from first: Int,
    upTo byteLimit: Int,
    within limit: Duration?,
    to lines: inout Lines,
    in session: PostgresSession
  ) throws(BatchError) {
    var reached = ReachedKeys()
    // Taken out meanwhile, so that each byte has one owner.
    var bytes: [UInt8] = []
    swap(&bytes, &lines.bytes)
    defer { swap(&bytes, &lines.bytes) }
    var isWhole = true
    switch encoder {
    case .values(let encoder):
      try reader.forEachRow(of: keys, within: limit, in: session) {
        row,
        values throws(BatchError) in
        if reached.take(row.number, row.isMatching) { encoder.append(&row, values, to: &bytes) }
        isWhole = bytes.count < byteLimit
        return isWhole
      }
    case .fields(let encoder):
      try reader.forEachLine(
        of: keys,
        within: limit,
        in: session
      ) { number, isMatching, line, start throws(BatchError) in
        if reached.take(number, isMatching) { try encoder.append(line, from: start, to: &bytes) }
        isWhole = bytes.count < byteLimit
        return isWhole
      }
    }
    if isWhole { reached.end(at: keys.count) }
    if isRequired, !reached.passedOver.noLongerMatching.isEmpty {
      throw .noLongerMatching(reached.passedOver.noLongerMatching.indexCount)
    }
    lines.written.succeeded += reached.succeeded
    lines.written.passedOver.formUnion(reached.passedOver, from: first)
    lines.count = first + reached.count
  }
}

/// What became of the keys of a part as their rows arrive.
private struct ReachedKeys {
  /// How many have a line.
  private(set) var succeeded = 0
  private(set) var passedOver = PassedOver()
  /// How many were reached.
  private(set) var count = 0

  /// Takes the number of the next key that has a row.
  ///
  /// - Returns: Whether the row has a line.
  mutating func take(_ number: Int, _ isMatching: Bool) -> Bool {
    end(at: number)
    count = number + 1
    if isMatching { succeeded += 1 } else { passedOver.noLongerMatching.insert(number) }
    return isMatching
  }

  /// Takes note that no key before a number has a row any more.
  mutating func end(at number: Int) {
    guard count < number else { return }
    passedOver.vanished.insert(contentsOf: count..<number)
    count = number
  }
}
#endif
