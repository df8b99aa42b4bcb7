import BatchRuns
package import BatchIdentifiers

package struct IndexCandidate: Sendable, Hashable {
  package let table: String
  package let columns: [String]

  package init(_ table: String, _ columns: String...) {
    self.table = table
    self.columns = columns
  }

  package init(table: String, columns: [String]) {
    (self.table, self.columns) = (table, columns)
  }

  /// The statement that creates the index, under a descriptive name.
  package var sql: String {
    let name = ([table] + columns).joined(separator: "_")
    return
      "CREATE INDEX \(SQLName.standard(name)) ON \(SQLName.standard(table)) (\(SQLName.standardList(columns)))"
  }
}

extension Connection {
  /// The candidates that SQLite would use for a statement if they existed; empty if that cannot be
  /// determined.
  ///
  /// SQLite itself decides, in an empty in-memory database with the same tables and indexes, and
  /// all candidates.
  package func missingIndexes(
    for sql: String,
    about tables: [String],
    among candidates: [IndexCandidate]
  ) throws(BatchError) -> [IndexCandidate] {
    let memory = try Connection(
      path: "file::memory:",
      options: Options(isURI: true, extensions: extensions)
    )
    do throws(BatchError) {
      for table in Set(tables + candidates.map(\.table)).sorted() {
        let statements = try texts(
          """
          SELECT sql FROM sqlite_schema WHERE tbl_name = ? COLLATE NOCASE AND sql IS NOT NULL
            AND type IN ('table', 'index') ORDER BY type = 'index'
          """,
          .text(table)
        )
        for statement in statements { try memory.execute(statement) }
      }
      for (number, candidate) in candidates.enumerated() {
        let table = SQLName.standard(candidate.table)
        let columns = SQLName.standardList(candidate.columns)
        try memory.execute("CREATE INDEX _batch_candidate_\(number)_ ON \(table) (\(columns))")
      }
      let steps = try QueryPlan(of: sql, in: memory).lines.filter { $0.hasPrefix("SEARCH") }
      return candidates.enumerated().filter { number, _ in
        steps.contains { $0.contains("INDEX _batch_candidate_\(number)_ ") }
      }.map(\.element)
    } catch {
      // Virtual tables of modules that are not loaded, or indexes with unknown functions.
      if error.code == .invalidSQL { return [] }
      throw error
    }
  }
}
