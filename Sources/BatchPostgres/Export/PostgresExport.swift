#if PostgreSQL
package import BatchJobs
package import BatchRuns
package import BatchIdentifiers

/// Reads the rows of chunks and writes them in the order of the list: the same bytes for any chunk sizes.
package struct PostgresExport: Sendable {
  /// What writes the rows.
  private enum Encoder {
    case values(LineEncoder)
    case fields(CSVLineEncoder)
    case typed(TypedRowEncoder)
  }

  private var reader: RowReader
  private let encoder: Encoder
  /// The columns whose values name the folder of a row, by their numbers, and the names before them.
  private let partitions: [(name: String, column: Int)]
  /// What writes those values.
  private let texts: LineEncoder
  private let isRequired: Bool
  package let header: [UInt8]
  package let format: Job.ExportFormat

  /// An export of the named columns of the rows that a key identifies, or of all columns.
  ///
  /// The server may write the CSV fields, which is faster than encoding values here; the lines are the same.
  ///
  /// - Throws: `BatchError` of code `unknownAttribute` for a column that does not exist.
  package init(
    of table: PostgresTable,
    key: PostgresKey,
    _ names: [String]? = nil,
    as format: Job.ExportFormat,
    partitions: [Job.Partition] = [],
    condition: PostgresChange.Condition = .init(),
    parameters: PostgresParameters = PostgresParameters(),
    path: SearchPath,
    byServer isByServer: Bool = true
  ) throws(BatchError) {
    let columns = try table.columns(named: names)
    self.format = format
    self.partitions = partitions.compactMap { partition in
      columns.column(named: partition.column)
        .flatMap { column in columns.firstIndex { $0.name == column.name } }
        .map { (partition.name, $0) }
    }
    texts = LineEncoder(.csv(CSVForm()), columns)
    // Its lines do not tell where the values are.
    var isByServer = isByServer && partitions.isEmpty
    switch format {
    case .lines(let format, let compression):
      let values = LineEncoder(format, columns)
      header = compression.header(values.header)
      // The server writes a `bytea` as hexadecimal digits, and those of a large one exceed its limit for a row.
      // Its fields have the plainest form.
      if !format.hasPlainFields || columns.contains(where: { $0.form == .blob }) {
        isByServer = false
      }
      encoder = isByServer ? .fields(CSVLineEncoder(columns)) : .values(values)
    case .parquet(let parquet):
      header = RowGroups.header
      isByServer = false
      encoder = .typed(TypedRowEncoder(columns, as: parquet))
    }
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

  /// The schema without which it reads nothing; nil before there is a run.
  package var expected: ExpectedTables? {
    get { reader.expected }
    set { reader.expected = newValue }
  }

  /// The key that identifies the rows.
  var key: PostgresKey { reader.key }

  /// The table of the rows.
  var table: PostgresTable { reader.table }

  /// The format of a file whose rows are in groups; nil for a file of plain lines.
  package var groups: GroupFormat? {
    if case .typed(let encoder) = encoder {
      .parquet(encoder.format)
    } else {
      format.compression.format
    }
  }

  /// The types of the columns of such a file, by their names.
  package var types: [String: String]? {
    guard case .typed(let encoder) = encoder else { return nil }
    return Dictionary(zip(columns, encoder.types.map(\.name))) { first, _ in first }
  }

  /// The names of the exported columns.
  package var columns: [String] { reader.columns.map(\.name) }

  /// What a run of it depends on of the schema as it is now.
  package func expectedTables(
    in database: PostgresDatabase,
    _ session: PostgresSession
  ) throws(BatchError) -> ExpectedTables {
    try ExpectedTables(
      of: reader.table,
      key: key,
      using: reader.columns,
      reading: [reader.condition].compactMap(\.?.reads),
      in: database,
      session
    )
  }

  /// The statement of a chunk, for display.
  package func statementText() throws(BatchError) -> String {
    try reader.query(for: .sample(of: reader.key))
  }

  /// The lines of the server's plan for finding the rows of a chunk; runs nothing.
  package func explanation(in session: PostgresSession) throws(BatchError) -> [String] {
    let rows = try session.execute("EXPLAIN (COSTS OFF) \(statementText())")
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }

  /// The first rows of a query; inside the caller's transaction.
  package func preview(
    _ limit: Int,
    of query: PostgresQuery,
    in session: PostgresSession
  ) throws(BatchError) -> [PreviewedRow] {
    try query.preview(limit, of: columns, in: session)
  }

  /// Checks, before the first chunk, whether rows can be read at all.
  ///
  /// - Throws: `BatchError` of code `accessDenied` with what to grant; the server's error about the query.
  package func check(in session: PostgresSession) throws(BatchError) {
    try reader.table.requireRights()
    try session.transaction(TransactionOptions(isReadOnly: true, searchPath: reader.path)) {
      () throws(BatchError) in try reader.requirePlan(in: session)
    }
  }

  /// The lines of a chunk.
  ///
  /// As in a change, a part that fails is retried in halves, down to single identifiers. A part whose rows are not all
  /// near is read again, wherever they lie.
  ///
  /// - Parameters:
  ///   - keys: The keys of the chunk.
  ///   - policy: What happens to the lines if an identifier fails.
  ///   - byteLimit: The number of bytes to hold; the row that reaches it is the last.
  ///   - limit: How long a statement may take; nil for the server's setting.
  ///   - halves: Whether a part that takes too long is read in halves.
  ///   - session: The session, in no transaction.
  /// - Returns: The lines, in the order of the keys.
  /// - Throws: The error of the row that exceeds the limit of failures, or any error not about a single row.
  package func lines(
    for keys: RowKeys,
    onFailure policy: FailurePolicy = .failChunk,
    holding byteLimit: Int = .max,
    within limit: Duration? = nil,
    halving halves: Bool = true,
    in session: PostgresSession
  ) throws(BatchError) -> ExportedLines {
    var lines = ExportedLines()
    // If the first failed row fails the chunk, the error must still name that row.
    let bisected = policy == .failChunk ? FailurePolicy.skip(upTo: 0) : policy
    var bisection = Bisection(0..<keys.count, bisected)
    while lines.bytes.count < byteLimit, let part = bisection.next() {
      let before = lines
      do throws(BatchError) {
        for keys in keys.part(part).attempts {
          lines = before
          let areAll = try append(
            keys,
            from: part.lowerBound,
            upTo: byteLimit,
            within: limit,
            to: &lines,
            in: session
          )
          if areAll { break }
        }
      } catch {
        lines = before
        if session.isLost { throw error }
        if error.isAboutAmount, halves, bisection.split(part) { continue }
        guard reader.table.isAboutRows(error) else { throw error }
        let culprit = error.about(keys.key(at: part.lowerBound))
        guard policy != .failChunk || part.count > 1 else { throw culprit }
        try bisection.failed(part, error) { _ in culprit }
      }
    }
    lines.result.failures = bisection.failures.map { ($0.position, $0.error) }
    return lines
  }

  /// Appends the lines of some keys, until the limit of bytes is reached.
  ///
  /// - Returns: False if some rows may lie elsewhere: the lines are not of use then.
  private func append(
    _ keys: RowKeys,
    from first: Int,
    upTo byteLimit: Int,
    within limit: Duration?,
    to lines: inout ExportedLines,
    in session: PostgresSession
  ) throws(BatchError) -> Bool {
    var reached = ReachedKeys()
    // Swapped out, so that the buffer has one owner and is not copied.
    var bytes: [UInt8] = []
    swap(&bytes, &lines.bytes)
    defer { swap(&bytes, &lines.bytes) }
    var isWhole = true
    let isCompressed = format.compression != .none
    func enter(_ row: borrowing RowReader.Row, _ values: Span<UInt8>) throws(BatchError) {
      if partitions.isEmpty { return }
      lines.enter(try folder(row, values), number: first + row.number, at: bytes.count)
    }
    /// Appends the line of a row, by its number.
    func line(
      _ number: Int,
      _ append: (inout [UInt8]) throws(BatchError) -> Void
    ) throws(BatchError) {
      guard isCompressed else { return try append(&bytes) }
      let place = TypedRows.beginLine(first + number, to: &bytes)
      try append(&bytes)
      TypedRows.endLine(place, invalidTexts: 0, in: &bytes)
    }
    switch encoder {
    case .values(let encoder):
      try reader.forEachRow(of: keys, within: limit, in: session) {
        row,
        values throws(BatchError) in
        if reached.take(row.number, row.isMatching) {
          try enter(row, values)
          try line(row.number) { bytes throws(BatchError) in
            try encoder.append(&row, values, to: &bytes)
          }
        }
        isWhole = bytes.count < byteLimit
        return isWhole
      }
    case .typed(let encoder):
      var block = encoder.makeValues()
      try reader.forEachRow(of: keys, within: limit, in: session) {
        row,
        values throws(BatchError) in
        if reached.take(row.number, row.isMatching) {
          try enter(row, values)
          let number = first + row.number
          try encoder.append(&row, values, number: number, by: &block, to: &bytes)
        }
        isWhole = bytes.count < byteLimit
        return isWhole
      }
    case .fields(let encoder):
      try reader.forEachLine(
        of: keys,
        within: limit,
        in: session
      ) { number, isMatching, fields, start throws(BatchError) in
        if reached.take(number, isMatching) {
          try line(number) { bytes throws(BatchError) in
            try encoder.append(fields, from: start, to: &bytes)
          }
        }
        isWhole = bytes.count < byteLimit
        return isWhole
      }
    }
    if isWhole { reached.end(at: keys.count) }
    if keys.isNear, !reached.passedOver.vanished.isEmpty { return false }
    if isRequired, !reached.passedOver.noLongerMatching.isEmpty {
      throw .noLongerMatching(reached.passedOver.noLongerMatching.indexCount)
    }
    lines.result.succeeded += reached.succeeded
    lines.result.passedOver.formUnion(reached.passedOver, from: first)
    return true
  }
}

extension PostgresExport {
  /// The folder of a row, by the texts of its values in CSV.
  private func folder(
    _ row: borrowing RowReader.Row,
    _ bytes: Span<UInt8>
  ) throws(BatchError) -> [UInt8] {
    var fields = row.fields
    let last = partitions.map(\.column).max() ?? 0
    let places = (0...last).map { _ in fields.next(in: bytes) }
    var folder: [UInt8] = []
    for (name, column) in partitions {
      let text = places[column].map { texts.text(bytes.extracting($0), column) }
      try PartitionFolder.append(name, text, to: &folder)
    }
    return folder
  }
}

private struct ReachedKeys {
  private(set) var succeeded = 0
  private(set) var passedOver = PassedOver()
  private(set) var count = 0

  /// Records the next key that has a row, by its number.
  ///
  /// - Returns: Whether the row has a line.
  mutating func take(_ number: Int, _ isMatching: Bool) -> Bool {
    end(at: number)
    count = number + 1
    if isMatching { succeeded += 1 } else { passedOver.noLongerMatching.insert(number) }
    return isMatching
  }

  /// Records that the remaining keys before a number no longer have a row.
  mutating func end(at number: Int) {
    guard count < number else { return }
    passedOver.vanished.insert(contentsOf: count..<number)
    count = number
  }
}
#endif
