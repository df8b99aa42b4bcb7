#if PostgreSQL
import BatchRuns
import BatchIdentifiers

/// Reads columns of the rows of chunks, in key order, by a COPY; holds at most one row.
///
/// Everything is one message: the transaction begins, the rows come, the transaction ends. COPY takes no values, so
/// the message contains the parameters and the keys as hexadecimal digits.
struct RowReader: Sendable {
  /// A row as it arrives; its values are valid only during the call.
  struct Row: ~Copyable {
    /// The position of its key in the chunk, from 0.
    let number: Int
    let isMatching: Bool
    /// Changes whenever the row changes; 0 if versions are not read.
    let version: Int64
    /// Where the values of the columns begin.
    fileprivate(set) var fields: BinaryFields
  }

  /// How the rows are read.
  enum Mode {
    /// In its own transaction.
    case alone
    /// In the caller's transaction.
    case together
    /// In the caller's transaction, in which nobody else can change them any more.
    case locking
  }

  /// How the server writes the rows.
  enum Format: String {
    /// The bytes of the values, for ``RowReader/forEachRow(of:_:within:in:_:)``.
    case binary
    /// Lines, for ``RowReader/forEachLine(of:within:in:_:)``.
    case csv
  }

  let table: PostgresTable
  let key: PostgresKey
  let columns: [PostgresColumn]
  let condition: CheckedExpression?
  let parameters: PostgresParameters
  let path: SearchPath
  /// Whether to read what shows that a row has changed.
  let hasVersions: Bool
  var format = Format.binary
  /// The schema without which it reads nothing; nil before there is a run.
  var expected: ExpectedTables?

  /// The version of a row in SQL.
  ///
  /// This is the ID of the transaction that wrote it. A view has no such column; the columns that are read replace
  /// it.
  var version: String {
    if table.kind != .view { return PostgresName.qualified(table.name, "xmin") }
    let values = columns.map { PostgresName.qualified(table.name, $0.name) }
    return "pg_catalog.hashtextextended(ROW(\(values.joined(separator: ", ")))::pg_catalog.text, 0)"
  }

  /// The query that reads the rows.
  func query(for keys: RowKeys, _ mode: Mode = .alone) throws(BatchError) -> String {
    let takesFirst = needsSettings && !(mode == .alone && evaluatesNothing)
    if let scan = scan(of: keys, takesFirst) { return scan }
    let (source, found, number) = try keys.reading(in: table)
    // The keys of a range are in their own order, in which an index has the rows.
    let isRange = keys.bounds(in: table) != nil
    let order = isRange ? PostgresName.qualified(table.name, key.columns[0].name) : number
    var selected = ["(\(number))::pg_catalog.int8"]
    if let condition { selected.append("\(condition.sql(parameters, .setting)) IS TRUE") }
    if hasVersions { selected.append(version) }
    let lock = mode == .locking ? " FOR NO KEY UPDATE OF \(PostgresName.quoted(table.name))" : ""
    return select(selected, "FROM \(source) WHERE \(found) ORDER BY \(order)\(lock)", takesFirst)
  }

  /// The query that reads all rows that may be the chunk's in the pages in which these lie, each after its key.
  ///
  /// - Returns: The query; nil if keys must find the rows.
  private func scan(of keys: RowKeys, _ takesFirst: Bool) -> String? {
    guard scans(keys), let pages = keys.pages else { return nil }
    let conditions =
      [table.condition(ofPages: pages)]
      + [condition].compactMap { $0.map { "(\($0.sql(parameters, .setting)))" } }
    return select(
      key.columns.map { PostgresName.qualified(table.name, $0.name) },
      "FROM \(table.sql) WHERE \(conditions.joined(separator: " AND "))",
      takesFirst
    )
  }

  /// Whether pages are read instead of the rows of keys.
  private func scans(_ keys: RowKeys) -> Bool {
    format == .csv && keys.pages != nil && keys.hasFields
  }

  /// The query that selects some values, and the columns after them.
  ///
  /// - Parameters:
  ///   - first: The values.
  ///   - rest: The rest of the query.
  ///   - takesFirst: Whether to take the values before they become texts, under other settings.
  /// - Returns: The query.
  private func select(_ first: [String], _ rest: String, _ takesFirst: Bool) -> String {
    var selected = first
    var texts = selected.indices.map { "\"_batch_\($0)\"" }
    for column in columns {
      let name = "\"_batch_\(selected.count)\""
      let value = PostgresName.qualified(table.name, column.name)
      selected.append(takesFirst ? value : text(of: column, value))
      texts.append(text(of: column, name))
    }
    if takesFirst { selected = selected.enumerated().map { "\($1) AS \"_batch_\($0)\"" } }
    let rows = "SELECT \(selected.joined(separator: ", ")) \(rest)"
    return takesFirst ? ValueSettings.query(over: rows, selecting: texts) : rows
  }

  private func text(of column: PostgresColumn, _ value: String) -> String {
    format == .csv ? column.field(of: value) : column.selection(of: value)
  }

  private var needsSettings: Bool {
    columns.contains { $0.textDependsOnSettings || format == .csv && $0.form.isReal }
  }

  /// Whether the server reads the values without evaluating anything whose result could depend on settings.
  private var evaluatesNothing: Bool {
    condition == nil && table.kind == .table && !table.hasRowSecurity
      && !columns.contains(where: \.isGenerated)
  }

  /// Has the server plan the query for a sample key, inside the caller's transaction.
  ///
  /// Unlike parsing, this checks the rights to the columns that are read.
  ///
  /// - Throws: The server's error.
  func requirePlan(in session: PostgresSession) throws(BatchError) {
    if !parameters.script.isEmpty { try session.run(parameters.script) }
    try session.execute("EXPLAIN \(query(for: .sample(of: key)))")
  }

  /// Calls `body` with each row.
  ///
  /// - Parameters:
  ///   - keys: The keys of the chunk.
  ///   - mode: The transaction to use.
  ///   - limit: How long the statement may run; nil for the server's setting.
  ///   - session: The session, in no transaction unless the rows are locked.
  ///   - body: Called with each row and the bytes that contain its values. Return false to stop.
  /// - Throws: `BatchError` of code `unstableKey` if a key has several rows; the server's error.
  func forEachRow(
    of keys: RowKeys,
    _ mode: Mode = .alone,
    within limit: Duration? = nil,
    in session: PostgresSession,
    _ body: (inout Row, Span<UInt8>) throws(BatchError) -> Bool
  ) throws(BatchError) {
    var last = -1
    // In constants: capturing the reader would copy its descriptions for each row.
    let (hasCondition, hasVersions, count) = (condition != nil, hasVersions, keys.count)
    var isAmbiguous = false
    let width = 1 + (hasCondition ? 1 : 0) + (hasVersions ? 1 : 0) + columns.count
    try copy(keys, mode, within: limit, in: session) { script throws(BatchError) in
      try session.copyRows(script, columns: width) { bytes throws(BatchError) in
        var fields = BinaryFields()
        let number = try Self.integer(fields.next(in: bytes), bytes) - 1
        guard number > last, number < count else {
          isAmbiguous = true
          return false
        }
        last = Int(number)
        var isMatching = true
        if hasCondition { isMatching = fields.next(in: bytes).map { bytes[$0.lowerBound] } == 1 }
        var version: Int64 = 0
        if hasVersions { version = try Self.integer(fields.next(in: bytes), bytes) }
        var row = Row(number: last, isMatching: isMatching, version: version, fields: fields)
        return try body(&row, bytes)
      }
    }
    if isAmbiguous { throw table.ambiguous(key) }
  }

  /// Calls `body` with each row as a line of CSV that the server wrote, until `body` returns false;
  /// the columns begin at `start` in the line.
  ///
  /// - Parameters:
  ///   - keys: The keys of the chunk.
  ///   - limit: How long the statement may run; nil for the server's setting.
  ///   - session: The session, in no transaction.
  ///   - body: Called with the number of the row's key, whether the condition holds for the row, its line, and where the
  ///     columns begin in the line. Return false to stop.
  /// - Throws: `BatchError` of code `unstableKey` if a key has several rows; the server's error.
  func forEachLine(
    of keys: RowKeys,
    within limit: Duration? = nil,
    in session: PostgresSession,
    _ body: (_ number: Int, _ isMatching: Bool, Span<UInt8>, _ start: Int) throws(BatchError) ->
      Bool
  ) throws(BatchError) {
    var last = 0
    // In constants: capturing the reader would copy its descriptions for each row.
    let (hasCondition, count) = (condition != nil, keys.count)
    var isAmbiguous = false
    if scans(keys), case .encoded(let encoded) = keys.values {
      var fields = KeyFields(encoded)
      return try copy(keys, .alone, within: limit, in: session) { script throws(BatchError) in
        try session.copyLines(script) { line throws(BatchError) in
          guard let (number, start) = fields.take(line) else { return true }
          return try body(number, true, line, start)
        }
      }
    }
    try copy(keys, .alone, within: limit, in: session) { script throws(BatchError) in
      try session.copyLines(script) { line throws(BatchError) in
        var number = 0
        var start = 0
        while start < line.count, case let digit = line[start] &- UInt8(ascii: "0"), digit < 10 {
          number = number &* 10 &+ Int(digit)
          start += 1
        }
        guard number > last, number <= count else {
          isAmbiguous = true
          return false
        }
        last = number
        start += 1
        guard hasCondition else { return try body(number - 1, true, line, start) }
        // `t`, `f` and a comma.
        guard start < line.count else { throw .damagedLine }
        return try body(number - 1, line[start] == UInt8(ascii: "t"), line, start + 2)
      }
    }
    if isAmbiguous { throw table.ambiguous(key) }
  }

  /// Calls `body` with the statements that copy the rows, again if the schema has changed in ways that do not matter.
  ///
  /// - Throws: `BatchError` of code `otherRun` if they do.
  private func copy(
    _ keys: RowKeys,
    _ mode: Mode,
    within limit: Duration?,
    in session: PostgresSession,
    _ body: (_ script: String) throws(BatchError) -> Void
  ) throws(BatchError) {
    let script = try script(for: keys, mode, within: limit)
    if let expected, mode == .alone, session.schemaVersion == nil {
      try expected.verify(in: session)
    }
    while true {
      do {
        return try body(script)
      } catch {
        guard let expected, mode == .alone, error.canComeOfSchema, !session.isLost else {
          throw error
        }
        try expected.verify(in: session)
        guard error.code == .otherRun else { throw error }
      }
    }
  }

  /// The statements that copy the rows.
  private func script(
    for keys: RowKeys,
    _ mode: Mode,
    within limit: Duration?
  ) throws(BatchError) -> String {
    let query = try query(for: keys, mode)
    var script = [parameters.script, "COPY (\(query)) TO STDOUT (FORMAT \(format.rawValue))"]
    if mode != .alone, needsSettings { script.append(ValueSettings.undoing) }
    if mode == .alone {
      var options = TransactionOptions(.readCommitted, isReadOnly: true, searchPath: path)
      options.statementTimeout = limit
      options.hasValueSettings = needsSettings && evaluatesNothing
      script = [options.script, expected?.check ?? ""] + script + ["COMMIT"]
    }
    return script.filter { !$0.isEmpty }.joined(separator: "; ")
  }

  private static func integer(_ place: Range<Int>?, _ row: Span<UInt8>) throws(BatchError) -> Int64
  {
    guard let place, let integer = row.extracting(place).bigEndianInteger() else {
      throw BatchError(.databaseAccess, "the server sent no integer where one was expected")
    }
    return integer
  }
}

extension RowReader.Row {
  /// The place of the next column's value in the row; nil for NULL.
  mutating func next(in row: Span<UInt8>) -> Range<Int>? { fields.next(in: row) }
}
#endif
