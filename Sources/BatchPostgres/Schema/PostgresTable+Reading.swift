#if PostgreSQL
package import BatchIdentifiers
import BatchPlatform

extension PostgresTable {
  /// Reads a table's description from the catalog, inside the caller's transaction.
  ///
  /// The name is `orders`, `sales.orders` or `"Orders"`; without a schema, it is looked up in the
  /// session's `search_path`.
  ///
  /// - Throws: `BatchError` of code `unknownEntity` with the nearest existing name.
  package init(named name: String, in session: PostgresSession) throws(BatchError) {
    let written = try WrittenName(name)
    let found = try session.execute(
      """
      \(Self.facts)
      WHERE c.relname IN ($1, $2) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
        AND (n.nspname IN ($3, $4) OR $3 IS NULL AND n.nspname = ANY (current_schemas(false)))
      ORDER BY n.nspname = $3 DESC, c.relname = $1 DESC, array_position(current_schemas(false), n.nspname)
      LIMIT 1
      """,
      .text(written.table.exact),
      .text(written.table.folded),
      written.schema.map { .text($0.exact) } ?? .null,
      written.schema.map { .text($0.folded) } ?? .null
    )
    guard found.count == 1 else { throw try Self.unknown(name, in: session) }
    try self.init(found, 0, in: session)
  }

  /// All tables and views of the database except those of the server and of runs, inside the
  /// caller's transaction.
  ///
  /// Excludes partitions, which are part of their table. Tables that can be found without a schema
  /// come first.
  package static func all(in session: PostgresSession) throws(BatchError) -> [PostgresTable] {
    let found = try session.execute(
      """
      \(facts) WHERE \(isListed)
      ORDER BY array_position(current_schemas(false), n.nspname) NULLS LAST, n.nspname, c.relname
      """
    )
    var tables: [PostgresTable] = []
    for row in 0..<found.count { tables.append(try PostgresTable(found, row, in: session)) }
    return tables
  }

  private static let facts = """
    SELECT c.oid, n.nspname, c.relname, c.relkind, row_security_active(c.oid),
      CASE c.relkind
        WHEN 'v' THEN NULL
        WHEN 'p' THEN (
          SELECT sum(l.reltuples) FROM pg_partition_tree(c.oid) AS t
            JOIN pg_catalog.pg_class AS l ON l.oid = t.relid
          WHERE t.isleaf AND l.reltuples >= 0)
        ELSE c.reltuples END::bigint,
      has_schema_privilege(n.oid, 'USAGE'),
      has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'),
      has_table_privilege(c.oid, 'UPDATE') OR has_any_column_privilege(c.oid, 'UPDATE'),
      has_table_privilege(c.oid, 'INSERT') OR has_any_column_privilege(c.oid, 'INSERT'),
      has_table_privilege(c.oid, 'DELETE'),
      CASE c.relkind WHEN 'p' THEN (SELECT count(*) FROM pg_partition_tree(c.oid) WHERE isleaf) ELSE 0 END,
      c.relkind <> 'p' AND EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid),
      pg_table_is_visible(c.oid), c.relrowsecurity,
      CASE c.relkind WHEN 'p' THEN (
        SELECT to_json(array_agg(DISTINCT a.attname)) FROM pg_partition_tree(c.oid) AS t
          JOIN pg_catalog.pg_partitioned_table AS p ON p.partrelid = t.relid
          JOIN pg_catalog.pg_attribute AS a ON a.attrelid = t.relid AND a.attnum = ANY (p.partattrs::int2[])) END
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    """

  /// The condition for tables that a user may mean by a name.
  private static let isListed = """
    c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
      AND n.nspname <> 'information_schema' AND left(n.nspname, 3) <> 'pg_' AND left(c.relname, 7) <> '_batch_'
    """

  private init(
    _ found: PostgresResult,
    _ row: Int,
    in session: PostgresSession
  ) throws(BatchError) {
    guard let oid = found.integer(row, 0), let kind = Kind(rawValue: found.text(row, 3) ?? "")
    else { preconditionFailure("a kind of table that was not asked for") }
    self.oid = oid
    schema = found.text(row, 1) ?? ""
    name = found.text(row, 2) ?? ""
    self.kind = kind
    query = nil
    hasRowSecurity = found.isTrue(row, 4)
    estimatedCount = found.integer(row, 5).flatMap { $0 < 0 ? nil : Int($0) }
    rights = Rights(
      usesSchema: found.isTrue(row, 6),
      selects: found.isTrue(row, 7),
      updates: found.isTrue(row, 8),
      inserts: found.isTrue(row, 9),
      deletes: found.isTrue(row, 10)
    )
    partitionCount = Int(found.integer(row, 11) ?? 0)
    partitionColumns = found.names(row, 15).compactMap(\.self)
    hasChildren = found.isTrue(row, 12)
    isVisible = found.isTrue(row, 13)
    enablesRowSecurity = found.isTrue(row, 14)
    let parts = try session.execute(
      together: [
        PostgresColumn.ofTable, Index.sql, Trigger.sql, Self.ruleSQL, ForeignKey.sql("conrelid"),
        ForeignKey.sql("confrelid"),
      ].map { PostgresStatement(sql: $0, values: [.literal(String(oid))]) }
    )
    columns = PostgresColumn.all(parts[0])
    indexes = Index.all(parts[1])
    triggers = Trigger.all(parts[2])
    rules = (0..<parts[3].count).compactMap { parts[3].text($0, 0) }
    references = ForeignKey.all(parts[4])
    referrers = ForeignKey.all(parts[5])
  }

  private static func unknown(
    _ name: String,
    in session: PostgresSession
  ) throws(BatchError) -> BatchError {
    // The limit is needed because some databases have a hundred thousand tables.
    let rows = try session.execute(
      """
      SELECT CASE WHEN n.nspname = ANY (current_schemas(false)) THEN '' ELSE n.nspname || '.' END || c.relname
      FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      WHERE \(isListed) ORDER BY 1 LIMIT 10000
      """
    )
    let names = (0..<rows.count).compactMap { rows.text($0, 0) }
    return BatchError(
      .unknownEntity,
      "there is no entity \(name.quotedForMessage)",
      remedy: remedyForUnknownName(name, among: names, kind: "entities")
    ).about(.entity(name))
  }

  private static let ruleSQL = """
    SELECT rulename FROM pg_catalog.pg_rewrite
    WHERE ev_class = $1::oid AND rulename <> '_RETURN' ORDER BY rulename
    """
}

extension PostgresColumn {
  fileprivate static let ofTable = sql(
    """
    pg_catalog.pg_attribute AS a WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
    """
  )

  /// Describes what has the columns of `pg_attribute`.
  static func sql(_ attributes: String) -> String {
    """
    SELECT a.attname, format_type(a.atttypid, a.atttypmod), b.oid, b.typtype, t.typtype = 'd',
      NOT (a.attnotnull OR t.typnotnull), a.attgenerated <> '', a.attidentity, a.atthasdef,
      a.attcollation IN (950, 951) OR a.attcollation = 100 AND EXISTS (
        SELECT FROM pg_catalog.pg_database AS d
        WHERE d.datname = current_database() AND d.datcollate IN ('C', 'POSIX')
          AND coalesce(to_jsonb(d) ->> 'datlocprovider', 'c') = 'c'),
      has_column_privilege(a.attrelid, a.attnum, 'UPDATE')
    FROM (SELECT * FROM \(attributes)) AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
      JOIN pg_catalog.pg_type AS b ON b.oid = (
        WITH RECURSIVE base (oid, kind, next) AS (
          SELECT t.oid, t.typtype, t.typbasetype
          UNION ALL
          SELECT n.oid, n.typtype, n.typbasetype
          FROM base JOIN pg_catalog.pg_type AS n ON n.oid = base.next WHERE base.kind = 'd')
        SELECT base.oid FROM base WHERE base.kind <> 'd')
    ORDER BY a.attnum
    """
  }

  static func all(_ rows: PostgresResult) -> [PostgresColumn] {
    (0..<rows.count).map { row in
      PostgresColumn(
        name: rows.text(row, 0) ?? "",
        type: rows.text(row, 1) ?? "",
        baseType: rows.integer(row, 2).flatMap { UInt32(exactly: $0) } ?? 0,
        baseKind: rows.text(row, 3) ?? "",
        isDomain: rows.isTrue(row, 4),
        isOptional: rows.isTrue(row, 5),
        isGenerated: rows.isTrue(row, 6),
        identity: rows.text(row, 7).flatMap { Identity(rawValue: $0) },
        hasDefault: rows.isTrue(row, 8),
        isOrderedByBytes: rows.isTrue(row, 9),
        isUpdatable: rows.isTrue(row, 10)
      )
    }
  }
}

extension PostgresTable.Index {
  fileprivate static let sql = """
    SELECT c.relname, i.indisprimary, i.indisunique, i.indisvalid, i.indimmediate, i.indpred IS NOT NULL,
      pg_get_indexdef(i.indexrelid), to_json(ARRAY (
        SELECT a.attname FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
          LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number
        WHERE k.place <= i.indnkeyatts ORDER BY k.place)), array_to_string(ARRAY (
        SELECT (o.bits & 1) <> 0 FROM unnest(i.indoption::int2[]) WITH ORDINALITY AS o (bits, place)
        ORDER BY o.place), ','),
      EXISTS (SELECT FROM pg_catalog.pg_constraint AS t WHERE t.conindid = i.indexrelid AND t.contype IN ('u', 'x'))
    FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
    WHERE i.indrelid = $1::oid ORDER BY c.relname
    """

  fileprivate static func all(_ rows: PostgresResult) -> [PostgresTable.Index] {
    (0..<rows.count).map { row in
      PostgresTable.Index(
        name: rows.text(row, 0) ?? "",
        columns: rows.names(row, 7),
        isDescending: (rows.text(row, 8) ?? "").split(separator: ",").map { $0 == "t" },
        isPrimary: rows.isTrue(row, 1),
        isUnique: rows.isTrue(row, 2),
        isValid: rows.isTrue(row, 3),
        isImmediate: rows.isTrue(row, 4),
        isPartial: rows.isTrue(row, 5),
        isOfConstraint: rows.isTrue(row, 9),
        definition: rows.text(row, 6) ?? ""
      )
    }
  }
}

extension PostgresTable.Trigger {
  fileprivate static let sql = """
    SELECT t.tgname, t.tgfoid::regproc, t.tgtype, t.tgenabled, pg_get_triggerdef(t.oid), to_json(ARRAY (
      SELECT a.attname FROM unnest(t.tgattr::int2[]) WITH ORDINALITY AS k (number, place)
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = t.tgrelid AND a.attnum = k.number ORDER BY k.place))
    FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid = $1::oid AND NOT t.tgisinternal ORDER BY t.tgname
    """

  fileprivate static func all(_ rows: PostgresResult) -> [PostgresTable.Trigger] {
    (0..<rows.count).map { row in
      // The bits of pg_trigger.tgtype: https://doxygen.postgresql.org/pg__trigger_8h.html
      let bits = rows.integer(row, 2) ?? 0
      let events =
        [(4, "INSERT"), (16, "UPDATE"), (8, "DELETE"), (32, "TRUNCATE")] as [(Int64, String)]
      return PostgresTable.Trigger(
        name: rows.text(row, 0) ?? "",
        function: rows.text(row, 1) ?? "",
        events: events.filter { bits & $0.0 != 0 }.map(\.1),
        columns: rows.names(row, 5).compactMap(\.self),
        time: bits & 64 != 0 ? "INSTEAD OF" : bits & 2 != 0 ? "BEFORE" : "AFTER",
        isForEachRow: bits & 1 != 0,
        isEnabled: ["O", "A"].contains(rows.text(row, 3)),
        definition: rows.text(row, 4) ?? ""
      )
    }
  }
}

extension PostgresTable.ForeignKey {
  /// Selects the foreign keys that have the table in the given column of `pg_constraint`.
  fileprivate static func sql(_ side: StaticString) -> String {
    func names(_ numbers: String, _ table: String) -> String {
      """
      to_json(ARRAY (
        SELECT a.attname FROM unnest(c.\(numbers)) WITH ORDINALITY AS k (number, place)
          JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.\(table) AND a.attnum = k.number
        ORDER BY k.place))
      """
    }
    // Excludes the copies that a partition inherits.
    return """
      SELECT c.conname, c.conrelid::regclass, \(names("conkey", "conrelid")), c.confrelid::regclass,
        \(names("confkey", "confrelid")), c.confdeltype, c.condeferred, c.confupdtype
      FROM pg_catalog.pg_constraint AS c
      WHERE c.contype = 'f' AND c.conparentid = 0 AND c.\(side) = $1::oid ORDER BY c.conname, c.oid
      """
  }

  fileprivate static func all(_ rows: PostgresResult) -> [PostgresTable.ForeignKey] {
    let actions = [
      "a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT",
    ]
    return (0..<rows.count).map { row in
      PostgresTable.ForeignKey(
        name: rows.text(row, 0) ?? "",
        table: rows.text(row, 1) ?? "",
        columns: rows.names(row, 2).compactMap(\.self),
        target: rows.text(row, 3) ?? "",
        targetColumns: rows.names(row, 4).compactMap(\.self),
        onDelete: actions[rows.text(row, 5) ?? ""] ?? "NO ACTION",
        onUpdate: actions[rows.text(row, 7) ?? ""] ?? "NO ACTION",
        isDeferred: rows.isTrue(row, 6)
      )
    }
  }
}

extension PostgresResult {
  fileprivate func names(_ row: Int, _ column: Int) -> [String?] {
    (try? JSONDecoder().decode([String?].self, from: Data((text(row, column) ?? "").utf8))) ?? []
  }
}
#endif
