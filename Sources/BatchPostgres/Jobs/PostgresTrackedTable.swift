#if PostgreSQL
package import BatchIdentifiers
package import BatchJobs
package import BatchRuns

/// What logs the changes of a table on a server: the log and the register in the table's schema, a function, and
/// triggers that call it with the rights of whoever has made it.
package struct PostgresTrackedTable: Sendable {
  private let table: PostgresTable
  private let key: PostgresKey
  /// The log, which is also the name of the function, and the register, in SQL.
  private let (log, register): (String, String)
  private let logName: String

  /// - Throws: `BatchError` of code `notTracked` for what is no table, `unstableKey` for a table without a key.
  package init(_ table: PostgresTable) throws(BatchError) {
    self.table = table
    logName = ChangeLog.name(of: table.name)
    log = PostgresName.qualified(table.schema, logName)
    register = PostgresName.qualified(table.schema, ChangeLog.register)
    let reason: String? =
      if table.kind != .table && table.kind != .partitionedTable {
        "is no table"
      } else if table
        .hasChildren
      {
        "has tables that inherit from it, whose changes set off no trigger of it"
      } else if table.hasRowSecurity {
        "has row security, and rows that it hides from the role would seem deleted"
      } else if logName.utf8.count > 63 {
        "has a name of more than 49 bytes"
      } else if table.columns.column(named: ChangeLog.column) != nil {
        "has a column \(ChangeLog.column)"
      } else {
        nil
      }
    if let reason { throw ChangeLog.refusal(table.title, reason) }
    key = try table.requireKey()
  }

  // MARK: Definitions

  private var columns: [String] { key.columns.map { PostgresName.quoted($0.name) } }
  private var number: String { PostgresName.quoted(ChangeLog.number) }
  private var inserted: String { PostgresName.quoted(ChangeLog.inserted) }
  private var isOwn: String { "entity = \(Self.literal(table.name)) AND job = ''" }

  private static func literal(_ text: String) -> String {
    "'\(text.replacing("'", with: "''"))'"
  }

  private var function: String {
    let list = columns.joined(separator: ", ")
    func entry(_ values: String) -> String {
      "INSERT INTO \(log) (\(list), \(number), \(inserted)) \(values) ON CONFLICT (\(list), \(number)) DO"
    }
    func row(_ name: String) -> String { columns.map { "\(name).\($0)" }.joined(separator: ", ") }
    // The name of the variable is that of no column.
    let body = """
      DECLARE _batch_id int8 := pg_current_xact_id()::text::int8;
      BEGIN
        CASE TG_ARGV[0]
          WHEN 'new' THEN \(entry("VALUES (\(row("NEW")), _batch_id, 1)")) UPDATE SET \(inserted) = 1;
          WHEN 'old' THEN \(entry("VALUES (\(row("OLD")), _batch_id, 0)")) NOTHING;
          WHEN 'all' THEN \(entry("SELECT \(list), _batch_id, 0 FROM \(table.sql)")) NOTHING;
          WHEN 'removed' THEN UPDATE \(register) SET position =
            greatest(position, (SELECT max(\(number)) + 1 FROM _batch_removed)) WHERE \(isOwn);
          ELSE UPDATE \(register) SET position = _batch_id + 1 WHERE \(isOwn);
        END CASE;
        RETURN NULL;
      END
      """
    return """
      CREATE FUNCTION \(log)() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
      SET search_path = pg_catalog, pg_temp AS \(Self.literal(body))
      """
  }

  /// The triggers of the table and of the log, without their number.
  private var triggers: [(event: String, argument: String)] {
    func row(_ name: String) -> String {
      "ROW(\(columns.map { "\(name).\($0)" }.joined(separator: ", ")))"
    }
    return [
      ("AFTER INSERT ON \(table.sql) FOR EACH ROW", "new"),
      ("AFTER UPDATE OR DELETE ON \(table.sql) FOR EACH ROW", "old"),
      (
        "AFTER UPDATE ON \(table.sql) FOR EACH ROW WHEN (\(row("OLD")) IS DISTINCT FROM \(row("NEW")))",
        "new"
      ),
      ("BEFORE TRUNCATE ON \(table.sql) FOR EACH STATEMENT", "all"),
      // Whoever removes changes: no job that needs them goes on without them.
      (
        "AFTER DELETE ON \(log) REFERENCING OLD TABLE AS _batch_removed FOR EACH STATEMENT",
        "removed"
      ),
      ("AFTER TRUNCATE ON \(log) FOR EACH STATEMENT", "emptied"),
    ]
  }

  // MARK: State

  /// The log; inside a transaction.
  ///
  /// - Throws: `BatchError` of code `notTracked` if the changes are not logged, or not all.
  package func log(in session: PostgresSession) throws(BatchError) -> ChangeLog {
    func missing(_ reason: String) -> BatchError {
      ChangeLog.isMissing(reason, table.title, in: session.address.description)
    }
    let title = table.title.quotedForMessage
    let found = try session.execute(
      """
      SELECT to_regclass($1)::oid::int8, to_regclass($2)::oid::int8,
        (SELECT count(*) FROM pg_catalog.pg_trigger
          WHERE tgrelid IN ($3::oid, to_regclass($1)) AND starts_with(tgname, '_batch_change_') AND tgenabled IN ('O', 'A')),
        (SELECT string_agg(concat(attname, ' ', atttypid, ' ', atttypmod), ',' ORDER BY attname)
          FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped
            AND attname NOT IN ('\(ChangeLog.number)', '\(ChangeLog.inserted)')),
        (SELECT string_agg(concat(attname, ' ', atttypid, ' ', atttypmod), ',' ORDER BY attname)
          FROM pg_catalog.pg_attribute WHERE attrelid = $3::oid AND attname = ANY ($4::text[]))
      """,
      .text(log),
      .text(register),
      .integer(table.oid),
      .array(PostgresArray(key.columns.map(\.name)))
    )
    guard found.integer(0, 0) != nil, found.integer(0, 1) != nil else {
      throw missing("the changes of \(title) are not logged")
    }
    guard found.text(0, 3) == found.text(0, 4) else {
      throw missing("the key of \(title) is not that of its logged changes")
    }
    guard found.integer(0, 2) == Int64(triggers.count) else {
      throw missing("a trigger that logs the changes of \(title) is gone or disabled")
    }
    let rows = try session.execute(
      """
      SELECT job, position, (SELECT count(*) FROM \(log) WHERE \(number) >= position AND job <> '' OR job = ''),
        pg_snapshot_xmin(pg_current_snapshot())::text::int8
      FROM \(register) WHERE entity = $1 ORDER BY job
      """,
      .text(table.name)
    )
    guard rows.count > 0, rows.text(0, 0) == "" else {
      throw missing("the changes of \(title) are not logged")
    }
    return ChangeLog(
      of: table.title,
      key: key.columns.map(\.name),
      start: rows.integer(0, 1) ?? 0,
      end: rows.integer(0, 3) ?? 0,
      count: Int(rows.integer(0, 2) ?? 0),
      readers: (1..<rows.count).map { row in
        .init(
          rows.text(row, 0) ?? "",
          from: rows.integer(row, 1) ?? 0,
          changes: Int(rows.integer(row, 2) ?? 0)
        )
      }
    )
  }

  /// The rows of an increment, as a table.
  func rows(of increment: Increment) -> PostgresTable {
    let rows = ChangeLog.rows(
      of: increment,
      from: table.sql,
      log,
      table.columns.map(\.name),
      key: key.columns.map(\.name),
      quoted: PostgresName.quoted
    )
    return table.read(
      from: "(\(rows)) AS \(PostgresName.quoted(table.name))",
      adding: ChangeLog.column
    )
  }

  // MARK: Changes

  /// Makes what is missing; inside one transaction.
  ///
  /// What changed meanwhile is not known, so if anything is missing, there is a new log.
  package func start(in session: PostgresSession) throws(BatchError) -> ChangeLog {
    do throws(BatchError) {
      return try log(in: session)
    } catch {
      guard error.code == .notTracked else { throw error }
    }
    try remove(in: session)
    let list = columns.joined(separator: ", ")
    try session.run(
      """
      CREATE TABLE IF NOT EXISTS \(register)
        (entity text NOT NULL, job text NOT NULL, position int8 NOT NULL, PRIMARY KEY (entity, job));
      CREATE TABLE \(log) AS SELECT \(list), 0::int8 AS \(number), 0::int2 AS \(inserted) FROM \(table.sql) WITH NO DATA;
      ALTER TABLE \(log) ADD PRIMARY KEY (\(list), \(number));
      CREATE INDEX ON \(log) (\(number));
      \(function);
      """
    )
    for (index, trigger) in triggers.enumerated() {
      try session.run(
        "CREATE TRIGGER _batch_change_\(index) \(trigger.event) EXECUTE FUNCTION \(log)('\(trigger.argument)')"
      )
    }
    // Jobs that have read another log start over.
    try session.run(
      """
      DELETE FROM \(register) WHERE entity = \(Self.literal(table.name)) AND job <> '';
      INSERT INTO \(register) VALUES (\(Self.literal(table.name)), '', pg_snapshot_xmin(pg_current_snapshot())::text::int8)
      ON CONFLICT (entity, job) DO UPDATE SET position = excluded.position
      """
    )
    var log = try log(in: session)
    log.made = [self.log, "\(self.log)()"] + triggers.indices.map { "_batch_change_\($0)" }
    return log
  }

  private func remove(in session: PostgresSession) throws(BatchError) {
    for index in triggers.indices {
      try session.run("DROP TRIGGER IF EXISTS _batch_change_\(index) ON \(table.sql)")
    }
    try session.run("DROP TABLE IF EXISTS \(log); DROP FUNCTION IF EXISTS \(log)()")
  }

  /// Removes all that tracking the table has made; inside one transaction.
  package func stop(in session: PostgresSession) throws(BatchError) {
    try remove(in: session)
    guard try session.text("SELECT to_regclass($1)", .text(register)) != nil else { return }
    _ = try session.execute("DELETE FROM \(register) WHERE entity = $1", .text(table.name))
    if try session.integer("SELECT count(*) FROM \(register)") == 0 {
      try session.run("DROP TABLE \(register)")
    }
  }

  /// Forgets a job that read the log.
  package func forget(_ job: String, in session: PostgresSession) throws(BatchError) -> ChangeLog {
    _ = try session.execute(
      "DELETE FROM \(register) WHERE entity = $1 AND job = $2 AND job <> ''",
      .text(table.name),
      .text(job)
    )
    return try log(in: session)
  }

  /// Notes from where on a job needs the log, before its run has its rows, and removes what no job needs.
  ///
  /// All before the beginning of an increment is in files of completed runs.
  package func enter(
    _ job: String,
    _ increment: Increment,
    in session: PostgresSession
  ) throws(BatchError) {
    guard let position = (increment.from ?? increment.to)?.number else { return }
    try session.transaction { () throws(BatchError) in
      try log(in: session).require(increment, of: job)
      _ = try session.execute(
        """
        INSERT INTO \(register) VALUES ($1, $2, $3) ON CONFLICT (entity, job)
        DO \(increment.from == nil ? "NOTHING" : "UPDATE SET position = excluded.position")
        """,
        .text(table.name),
        .text(job),
        .integer(position)
      )
    }
    var removed: Int64 = 1
    while removed > 0 {
      removed = try session.transaction { () throws(BatchError) in
        try session.integer(
          """
          WITH removed AS (
            DELETE FROM \(log) WHERE ctid = ANY (ARRAY (SELECT ctid FROM \(log) WHERE \(number) < (
              SELECT min(position) FROM \(register) WHERE entity = $1 AND job <> '') LIMIT 10000)) RETURNING 1)
          SELECT count(*) FROM removed
          """,
          .text(table.name)
        ) ?? 0
      }
    }
  }
}
#endif
