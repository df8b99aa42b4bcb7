#if PostgreSQL
package import BatchIdentifiers

extension PostgresTransform {
  /// The first rows of a query; inside the caller's transaction.
  ///
  /// Only the program knows their new values, and running it may have side effects.
  package func preview(
    _ limit: Int,
    of query: PostgresQuery,
    in session: PostgresSession
  ) throws(BatchError) -> [PreviewedRow] {
    try query.preview(limit, of: reads.map(\.name), in: session)
  }

  package func statementText() throws(BatchError) -> String {
    let (query, statement) = try sample()
    return "\(query); \(statement.sql)"
  }

  /// The lines of the server's plan for finding the rows of a chunk; runs nothing.
  package func explanation(in session: PostgresSession) throws(BatchError) -> [String] {
    // There is no table of records yet.
    var transform = self
    transform.undo = nil
    let statement = try transform.sample().statement
    let rows = try session.execute("EXPLAIN (COSTS OFF) \(statement.sql)", statement.values)
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }
}
#endif
