#if PostgreSQL
import BatchIdentifiers
import BatchRuns

/// Vacuums a table after its last chunk, so that new rows use the space of the old ones.
///
/// Of several processes, each waits for the one that vacuums, and has nothing left to do then.
struct TableVacuum: SpaceReturn {
  private let table: PostgresTable
  private let run: String
  private let tables: RunTables
  private let connection: PostgresConnection
  private let isCancelled: @Sendable () -> Bool
  /// The tables that are still to be done, the next one last, nil before the first; and how many rows could not be removed.
  private let state = Lock<(left: [VacuumedTable]?, stuck: Int64)>((nil, 0))

  init(
    of table: PostgresTable,
    after run: String,
    recordedIn tables: RunTables,
    by connection: PostgresConnection,
    isCancelled: @escaping @Sendable () -> Bool
  ) {
    (self.table, self.run, self.tables, self.connection) = (table, run, tables, connection)
    self.isCancelled = isCancelled
  }

  var name: String { "vacuum" }

  func byteCount() async throws(BatchError) -> Int64 {
    let table = table
    return try await connection.perform { session throws(BatchError) in
      try table.vacuumed(in: session).reduce(0) { $0 + $1.bytes }
    }
  }

  func step() async throws(BatchError) -> Bool {
    let (table, run, tables, before) = (table, run, tables, state.withLock { $0.left })
    let watching = Task { [connection, isCancelled] in
      while !Task.isCancelled {
        if isCancelled() { return connection.interrupt() }
        try? await Task.sleep(for: .milliseconds(200))
      }
    }
    defer { watching.cancel() }
    let (after, stuck) = try await connection.perform { session throws(BatchError) in
      if try tables.course(ofRun: run, in: session).afterwards?.bytesAfter != nil {
        return ([VacuumedTable](), Int64(0))
      }
      var rest: [VacuumedTable]
      if let before { rest = before } else { rest = try table.vacuumed(in: session) }
      guard let next = rest.popLast() else { return (rest, 0) }
      // Whatever the role's settings are, it takes as long as it takes.
      try session.execute("SET statement_timeout = 0")
      try session.execute("SET lock_timeout = 0")
      try session.execute("VACUUM \(next.sql)")
      let dead = try session.integer(
        "SELECT pg_catalog.pg_stat_get_dead_tuples(pg_catalog.to_regclass($1)::pg_catalog.oid)",
        .text(next.sql)
      )
      return (rest, dead ?? 0)
    }
    let all = state.withLock { state in
      state.left = after
      state.stuck += stuck
      return state.stuck
    }
    guard after.isEmpty else { return true }
    await connection.close()
    guard all < Self.fewRows else {
      throw BatchError(
        .databaseAccess,
        "\(all.grouped) old rows of \(table.title.quotedForMessage) are still there, since an older transaction may read"
          + " them",
        remedy: "end it, and then VACUUM \(table.sql)"
      )
    }
    return false
  }

  /// So many old rows may be of others' changes meanwhile.
  private static let fewRows: Int64 = 1_000

  func interrupt() { connection.interrupt() }
}

/// A table or partition that has rows of its own.
struct VacuumedTable: Sendable {
  let sql: String
  /// What it occupies, with its indexes.
  let bytes: Int64
  /// Whether the role may vacuum it; the server would skip it without an error.
  let isAllowed: Bool
}

extension PostgresTable {
  /// The table, its partitions and the tables that inherit from it, as far as they have rows.
  func vacuumed(in session: PostgresSession) throws(BatchError) -> [VacuumedTable] {
    let rows = try session.execute(
      """
      WITH RECURSIVE tables AS (
        SELECT $1::pg_catalog.oid AS oid
        UNION SELECT i.inhrelid FROM tables AS t JOIN pg_catalog.pg_inherits AS i ON i.inhparent = t.oid)
      SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname),
        pg_catalog.pg_total_relation_size(c.oid),
        pg_catalog.pg_has_role(c.relowner, 'USAGE') OR pg_catalog.pg_has_role(d.datdba, 'USAGE')
          OR CASE WHEN pg_catalog.current_setting('server_version_num')::int >= 170000
            THEN pg_catalog.has_table_privilege(c.oid, 'MAINTAIN') ELSE false END
      FROM tables JOIN pg_catalog.pg_class AS c USING (oid) JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_catalog.pg_database AS d ON d.datname = pg_catalog.current_database()
      WHERE c.relkind = 'r' ORDER BY c.oid DESC
      """,
      .literal(String(oid))
    )
    return (0..<rows.count).map { row in
      VacuumedTable(
        sql: rows.text(row, 0) ?? "",
        bytes: rows.integer(row, 1) ?? 0,
        isAllowed: rows.isTrue(row, 2)
      )
    }
  }
}
#endif
