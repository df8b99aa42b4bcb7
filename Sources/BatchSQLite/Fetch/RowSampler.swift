package import BatchRuns
package import BatchIdentifiers

package struct RowSampler {
  package struct Row: Sendable {
    /// The key, as in a URI.
    package let identifier: String
    package let before: [String: SQLValue]
    package let after: [String: SQLValue]?
  }

  private let query: IdentifierQuery
  private let list: PackedIdentifiers?
  private let columns: [String]
  private let after: [SQLExpression]?

  /// Makes a sampler of some columns, with an expression for each, over the rows of a list if
  /// given, otherwise of a query.
  package init(
    _ query: IdentifierQuery,
    list: PackedIdentifiers?,
    columns: [String],
    after: [SQLExpression]?
  ) {
    self.query = query
    self.list = list
    self.columns = columns
    self.after = after
  }

  package func rows(limit: Int, in connection: Connection) throws(BatchError) -> [Row] {
    var rows: [Row] = []
    try forEachRow(limit: limit, in: connection) { row throws(BatchError) in
      var encoder = EncodedKey.Encoder()
      for column in query.key.columns.indices {
        row.appendKeyComponent(at: column, to: &encoder)
      }
      rows.append(
        Row(
          identifier: PrimaryKey.encoded(encoder.key).description,
          before: values(of: row, from: query.key.columns.count),
          after: after == nil
            ? nil : values(of: row, from: query.key.columns.count + columns.count)
        )
      )
    }
    return rows
  }

  /// Evaluates the new values of the first rows, until `body` returns false.
  ///
  /// - Returns: The error of the first row for which an expression fails; nil if none does.
  package func forEachChange(
    limit: Int,
    in connection: Connection,
    _ body: ([SQLValue]) -> Bool
  ) throws(BatchError) -> BatchError? {
    var wantsMore = true
    let first = query.key.columns.count + columns.count
    do throws(BatchError) {
      try forEachRow(limit: limit, in: connection) { row throws(BatchError) in
        guard wantsMore else { return }
        wantsMore = body(columns.indices.map { row.value(at: first + $0) })
      }
      return nil
    } catch {
      guard error.isAboutRows else { throw error }
      return error
    }
  }

  /// Reads and discards as many rows as the time allows.
  ///
  /// - Returns: Their number, roughly how many bytes SQLite needs for them, and how many of their
  ///   texts are not UTF-8.
  package func read(
    limit: Int,
    within time: Duration,
    in connection: Connection
  ) throws(BatchError) -> (count: Int, byteCount: Int, invalidTexts: Int) {
    var (count, byteCount, invalidTexts) = (0, 0, 0)
    let first = query.key.columns.count
    _ = try connection.within(time) { () throws(BatchError) in
      try forEachRow(limit: limit, in: connection) { row throws(BatchError) in
        for column in 0..<row.columnCount { byteCount += row.recordBytes(at: column) }
        for column in columns.indices where row.isInvalidText(at: first + column) {
          invalidTexts += 1
        }
        count += 1
        byteCount += 8
      }
    }
    return (count, byteCount, invalidTexts)
  }

  /// Counts the rows that satisfy a condition.
  ///
  /// - Returns: Their number, and the number of rows checked.
  package func count(
    _ condition: SQLExpression,
    limit: Int,
    in connection: Connection
  ) throws(BatchError) -> (count: Int, of: Int) {
    var (count, rows) = (0, 0)
    try forEachRow(limit: limit, and: [condition], in: connection) { row throws(BatchError) in
      if row.integer(at: row.columnCount - 1) != 0 { count += 1 }
      rows += 1
    }
    return (count, rows)
  }

  private func forEachRow(
    limit: Int,
    and further: [SQLExpression] = [],
    in connection: Connection,
    _ body: (borrowing Statement) throws(BatchError) -> Void
  ) throws(BatchError) {
    let expressions =
      query.key.columns.map(SQLName.quoted) + columns.map(SQLName.quoted)
      + ((after ?? []) + further).map(\.sql)
    guard let list else {
      let statement = try query.select(expressions, limit: limit, in: connection)
      while try statement.step() { try body(statement) }
      return
    }
    let keys = try ChunkKeys(list, 0..<min(limit, list.count), key: query.key)
    let statement = try query.select(expressions, by: keys, in: connection)
    try keys.forEachBinding(of: statement, key: query.key) { _ throws(BatchError) in
      while try statement.step() { try body(statement) }
    }
  }

  private func values(of row: borrowing Statement, from first: Int) -> [String: SQLValue] {
    var values: [String: SQLValue] = [:]
    for (index, column) in columns.enumerated() { values[column] = row.value(at: first + index) }
    return values
  }
}
