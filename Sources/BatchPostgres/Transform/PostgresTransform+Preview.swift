#if PostgreSQL
package import BatchIdentifiers

extension PostgresTransform {
  /// What the first rows of a query are; inside a transaction of the caller.
  ///
  /// What they would be only the program knows, which may do more than compute.
  package func preview(
    _ limit: Int,
    of query: PostgresQuery,
    in session: PostgresSession
  ) throws(BatchError) -> [PreviewedRow] {
    try query.preview(limit, of: reads.map(\.name), in: session)
  }

  /// The statements of a chunk, for people.
  package func statementText() throws(BatchError) -> String {
    let (query, statement) = try sample()
    return "\(query); \(statement.sql)"
  }

  /// How the server would find the rows of a chunk, line by line; runs nothing.
  package func explanation(in session: PostgresSession) throws(BatchError) -> [String] {
    let statement = try sample().statement
    let rows = try session.execute("EXPLAIN (COSTS OFF) \(statement.sql)", statement.values)
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }
}
#endif
