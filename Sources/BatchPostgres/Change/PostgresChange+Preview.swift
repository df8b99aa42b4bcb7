#if PostgreSQL
package import BatchIdentifiers

package struct PreviewedRow: Sendable {
  package let key: [String?]
  package let before: [String?]
  /// The values after an update; nil for a deleted row.
  package let after: [String?]?
}

extension PostgresChange {
  /// The columns that a preview shows: those that an update sets, or all columns of a deleted row.
  package var previewedColumns: [String] {
    switch action {
    case .update(let assignments): assignments.map(\.column.name)
    case .delete: table.columns.map(\.name)
    }
  }

  /// The first rows of a query before and after the change; inside the caller's read-only
  /// transaction.
  package func preview(
    _ limit: Int,
    of query: PostgresQuery,
    in session: PostgresSession
  ) throws(BatchError) -> [PreviewedRow] {
    var after: [String] = []
    if case .update(let assignments) = action {
      // Cast to the column's type, which may round a number, or reject a text as too long.
      after = assignments.map {
        "(\($0.value.sql(parameters, .place))::\($0.column.type))::text"
      }
    }
    return try query.preview(limit, of: previewedColumns, after, in: session)
  }

  /// The statement of a chunk, for display, with placeholders for its values.
  package func statementText() throws(BatchError) -> String {
    try statement(for: .sample(of: key)).sql
  }

  /// The lines of the server's plan for finding the rows of a chunk; runs nothing.
  package func explanation(in session: PostgresSession) throws(BatchError) -> [String] {
    // There is no table of records yet.
    var change = self
    change.undo = nil
    let statement = try change.statement(for: .sample(of: key))
    let rows = try session.execute("EXPLAIN (COSTS OFF) \(statement.sql)", statement.values)
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }
}

extension PostgresQuery {
  /// Some columns of the first rows, and their values after the change if `after` has expressions;
  /// inside the caller's transaction.
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

  /// A server's error while reading the rows, with its likely cause if the server does not name it.
  package func explained(_ error: BatchError) -> BatchError {
    guard error.postgres?.state == .readOnlyTransaction else { return error }
    let isView = table.kind == .view
    let name = table.title.quotedForMessage
    return BatchError(
      .readOnly,
      (isView
        ? "the view \(name) writes when it is read" : "reading \(name) causes a write")
        + ": \(error.message)",
      remedy: isView
        ? "name the table behind it, or have the view call no function that writes"
        : "see which view in where, or policy of the table, calls a function that writes",
      underlying: error.underlying
    ).about(.entity(table.name))
  }

  package var statementText: String { sql(.place) }

  /// The number of rows; inside the caller's transaction.
  package func count(in session: PostgresSession) throws(BatchError) -> Int {
    let sql = "SELECT count(*) FROM (\(sql(.place))) AS selected"
    return Int(try session.execute(sql, parameters.values).integer(0, 0) ?? 0)
  }

  /// The lines of the server's plan for finding the rows; runs nothing.
  package func explanation(in session: PostgresSession) throws(BatchError) -> [String] {
    let rows = try session.execute("EXPLAIN (COSTS OFF) \(sql(.place))", parameters.values)
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }
}
#endif
