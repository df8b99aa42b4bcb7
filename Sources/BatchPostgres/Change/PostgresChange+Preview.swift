#if PostgreSQL
package import BatchIdentifiers

/// A row as it is, and as a change would leave it.
package struct PreviewedRow: Sendable {
  /// The key, column by column, as text.
  package let key: [String?]
  /// The values of the columns that are shown, as text; nil for NULL.
  package let before: [String?]
  /// The values after an update; nil for a row that is deleted.
  package let after: [String?]?
}

extension PostgresChange {
  /// The columns that a preview shows: those that are set, or all of a row that is deleted.
  package var previewedColumns: [String] {
    switch action {
    case .update(let assignments): assignments.map(\.column.name)
    case .delete: table.columns.map(\.name)
    }
  }

  /// What the first rows of a query are, and what they would be; inside a transaction of the caller that is for reading only.
  package func preview(
    _ limit: Int,
    of query: PostgresQuery,
    in session: PostgresSession
  ) throws(BatchError) -> [PreviewedRow] {
    var after: [String] = []
    if case .update(let assignments) = action {
      // As the column would have it: a number is rounded, a text may be too long.
      after = assignments.map {
        "(\($0.value.sql(parameters, .place))::\($0.column.type))::text"
      }
    }
    return try query.preview(limit, of: previewedColumns, after, in: session)
  }

  /// The statement of a chunk, for people: with the places of its values.
  package func statementText() throws(BatchError) -> String {
    try statement(for: .sample(of: key)).sql
  }

  /// How the server would find the rows of a chunk, line by line; runs nothing.
  package func explanation(in session: PostgresSession) throws(BatchError) -> [String] {
    let statement = try statement(for: .sample(of: key))
    let rows = try session.execute("EXPLAIN (COSTS OFF) \(statement.sql)", statement.values)
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }
}

extension PostgresQuery {
  /// What some columns of the first rows are, and what they would be by expressions for each of them, if there are
  /// any; inside a transaction of the caller.
  func preview(
    _ limit: Int,
    of columns: [String],
    _ after: [String] = [],
    in session: PostgresSession
  ) throws(BatchError) -> [PreviewedRow] {
    let keys = key.columns.map { "\(PostgresName.qualified(table.name, $0.name))::text" }
    let before = columns.map { "\(PostgresName.qualified(table.name, $0))::text" }
    let rows = try session.execute(
      sql(.place, selecting: keys + before + after, atMost: limit),
      parameters.values
    )
    return (0..<rows.count).map { row in
      let values = (0..<rows.columnCount).map { rows.text(row, $0) }
      let shown = values[keys.count...]
      return PreviewedRow(
        key: Array(values[..<keys.count]),
        before: Array(shown.prefix(before.count)),
        after: after.isEmpty ? nil : Array(shown.dropFirst(before.count))
      )
    }
  }

  /// An error of the server about reading the rows, with what it is about where the server does not say it.
  package func explained(_ error: BatchError) -> BatchError {
    guard error.postgres?.state == .readOnlyTransaction else { return error }
    let isView = table.kind == .view
    let name = table.title.quotedForMessage
    return BatchError(
      .readOnly,
      (isView
        ? "the view \(name) writes when it is read" : "something that is read with \(name) writes")
        + ": \(error.message)",
      remedy: isView
        ? "name the table behind it, or have the view call no function that writes"
        : "see which view in where, or policy of the table, calls a function that writes",
      underlying: error.underlying
    ).about(.entity(table.name))
  }

  /// The statement that selects keys, for people.
  package var statementText: String { sql(.place) }

  /// How many rows there are; inside a transaction of the caller.
  package func count(in session: PostgresSession) throws(BatchError) -> Int {
    let sql = "SELECT count(*) FROM (\(sql(.place))) AS selected"
    return Int(try session.execute(sql, parameters.values).integer(0, 0) ?? 0)
  }

  /// How the server would find the rows, line by line; runs nothing.
  package func explanation(in session: PostgresSession) throws(BatchError) -> [String] {
    let rows = try session.execute("EXPLAIN (COSTS OFF) \(sql(.place))", parameters.values)
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }
}
#endif
