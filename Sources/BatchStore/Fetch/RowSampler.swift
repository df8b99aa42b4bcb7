package import BatchIdentifiers

/// Reads the first rows of a selection, with what some expressions would make of them.
package struct RowSampler {
  /// A row, before and after.
  package struct Row: Sendable {
    /// The key, as it stands in a URI.
    package let identifier: String
    package let before: [String: SQLValue]
    package let after: [String: SQLValue]?
  }

  private let query: IdentifierQuery
  private let columns: [String]
  private let after: [SQLExpression]?

  /// A sampler of some columns, and of an expression for each of them.
  package init(_ query: IdentifierQuery, columns: [String], after: [SQLExpression]?) {
    self.query = query
    self.columns = columns
    self.after = after
  }

  /// The first rows.
  package func rows(limit: Int, in connection: Connection) throws(BatchError) -> [Row] {
    let statement = try select(limit: limit, in: connection)
    var rows: [Row] = []
    while try statement.step() {
      var encoder = EncodedKey.Encoder()
      for column in query.key.columns.indices {
        statement.appendKeyComponent(at: column, to: &encoder)
      }
      rows.append(
        Row(
          identifier: PrimaryKey.encoded(encoder.key).description,
          before: values(of: statement, from: query.key.columns.count),
          after: after == nil
            ? nil : values(of: statement, from: query.key.columns.count + columns.count)
        )
      )
    }
    return rows
  }

  /// Reads rows and drops them.
  ///
  /// - Returns: How many there were.
  package func read(limit: Int, in connection: Connection) throws(BatchError) -> Int {
    let statement = try select(limit: limit, in: connection)
    var count = 0
    while try statement.step() {
      for column in 0..<statement.columnCount { _ = statement.storageClass(at: column) }
      count += 1
    }
    return count
  }

  private func select(limit: Int, in connection: Connection) throws(BatchError) -> Statement {
    let expressions =
      query.key.columns.map(SQLName.quoted) + columns.map(SQLName.quoted)
      + (after ?? []).map(\.sql)
    return try query.select(expressions, limit: limit, in: connection)
  }

  private func values(of row: borrowing Statement, from first: Int) -> [String: SQLValue] {
    var values: [String: SQLValue] = [:]
    for (index, column) in columns.enumerated() { values[column] = row.value(at: first + index) }
    return values
  }
}
