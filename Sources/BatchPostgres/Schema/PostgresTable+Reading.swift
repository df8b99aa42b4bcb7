#if PostgreSQL
package import BatchIdentifiers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension PostgresTable {
  /// Reads a table's description from the catalog, inside the caller's transaction.
  ///
  /// - Parameters:
  ///   - name: `orders`, `sales.orders`, `"Orders"`; without a schema it is looked up in the session's `search_path`.
  ///   - session: The session to use.
  /// - Throws: `BatchError` of code `unknownEntity` with the nearest existing name.
  package init(named name: String, in session: PostgresSession) throws(BatchError) {
    let written = try WrittenName(name)
    let found = try session.execute(
      """
      SELECT c.oid, n.nspname, c.relname, c.relkind, row_security_active(c.oid), c.reltuples::bigint,
        has_schema_privilege(n.oid, 'USAGE'),
        has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'),
        has_table_privilege(c.oid, 'UPDATE') OR has_any_column_privilege(c.oid, 'UPDATE'),
        has_table_privilege(c.oid, 'INSERT') OR has_any_column_privilege(c.oid, 'INSERT'),
        has_table_privilege(c.oid, 'DELETE'),
        CASE c.relkind WHEN 'p' THEN (SELECT count(*) FROM pg_partition_tree(c.oid) WHERE isleaf) ELSE 0 END,
        c.relkind <> 'p' AND EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid)
      FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
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
    guard found.count == 1, let oid = found.integer(0, 0),
      let kind = Kind(rawValue: found.text(0, 3) ?? "")
    else { throw try Self.unknown(name, in: session) }
    self.oid = oid
    schema = found.text(0, 1) ?? ""
    self.name = found.text(0, 2) ?? ""
    self.kind = kind
    hasRowSecurity = found.isTrue(0, 4)
    estimatedCount = found.integer(0, 5).flatMap { $0 < 0 ? nil : Int($0) }
    rights = Rights(
      usesSchema: found.isTrue(0, 6),
      selects: found.isTrue(0, 7),
      updates: found.isTrue(0, 8),
      inserts: found.isTrue(0, 9),
      deletes: found.isTrue(0, 10)
    )
    partitionCount = Int(found.integer(0, 11) ?? 0)
    hasChildren = found.isTrue(0, 12)
    columns = try PostgresColumn.read(of: oid, in: session)
    indexes = try Index.read(of: oid, in: session)
    triggers = try Trigger.read(of: oid, in: session)
    rules = try Self.rules(of: oid, in: session)
    references = try ForeignKey.read("conrelid", oid, in: session)
    referrers = try ForeignKey.read("confrelid", oid, in: session)
  }

  private static func unknown(
    _ name: String,
    in session: PostgresSession
  ) throws(BatchError) -> BatchError {
    // Bounded: some databases have a hundred thousand tables.
    let rows = try session.execute(
      """
      SELECT CASE WHEN n.nspname = ANY (current_schemas(false)) THEN '' ELSE n.nspname || '.' END || c.relname
      FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
        AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
        AND c.relname NOT LIKE '\\_batch\\_%'
      ORDER BY 1 LIMIT 10000
      """
    )
    let names = (0..<rows.count).compactMap { rows.text($0, 0) }
    return BatchError(
      .unknownEntity,
      "there is no entity \(name.quotedForMessage)",
      remedy: remedyForUnknownName(name, among: names, kind: "entities")
    ).about(.entity(name))
  }

  private static func rules(
    of table: Int64,
    in session: PostgresSession
  ) throws(BatchError) -> [String] {
    let rows = try session.execute(
      """
      SELECT rulename FROM pg_catalog.pg_rewrite
      WHERE ev_class = $1::oid AND rulename <> '_RETURN' ORDER BY rulename
      """,
      .literal(String(table))
    )
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }
}

extension PostgresColumn {
  fileprivate static func read(
    of table: Int64,
    in session: PostgresSession
  ) throws(BatchError) -> [PostgresColumn] {
    let rows = try session.execute(
      """
      SELECT a.attname, format_type(a.atttypid, a.atttypmod), b.oid, b.typtype, t.typtype = 'd',
        NOT (a.attnotnull OR t.typnotnull), a.attgenerated <> '', a.attidentity, a.atthasdef,
        a.attcollation IN (950, 951) OR a.attcollation = 100 AND EXISTS (
          SELECT FROM pg_catalog.pg_database AS d
          WHERE d.datname = current_database() AND d.datcollate IN ('C', 'POSIX')
            AND coalesce(to_jsonb(d) ->> 'datlocprovider', 'c') = 'c'),
        has_column_privilege(a.attrelid, a.attnum, 'UPDATE')
      FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
        JOIN pg_catalog.pg_type AS b ON b.oid = (
          WITH RECURSIVE base (oid, kind, next) AS (
            SELECT t.oid, t.typtype, t.typbasetype
            UNION ALL
            SELECT n.oid, n.typtype, n.typbasetype
            FROM base JOIN pg_catalog.pg_type AS n ON n.oid = base.next WHERE base.kind = 'd')
          SELECT base.oid FROM base WHERE base.kind <> 'd')
      WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
      """,
      .literal(String(table))
    )
    return (0..<rows.count).map { row in
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
  fileprivate static func read(
    of table: Int64,
    in session: PostgresSession
  ) throws(BatchError) -> [PostgresTable.Index] {
    let rows = try session.execute(
      """
      SELECT c.relname, i.indisprimary, i.indisunique, i.indisvalid, i.indimmediate, i.indpred IS NOT NULL,
        pg_get_indexdef(i.indexrelid), to_json(ARRAY (
          SELECT a.attname FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
            LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number
          WHERE k.place <= i.indnkeyatts ORDER BY k.place))
      FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
      WHERE i.indrelid = $1::oid ORDER BY c.relname
      """,
      .literal(String(table))
    )
    return (0..<rows.count).map { row in
      PostgresTable.Index(
        name: rows.text(row, 0) ?? "",
        columns: rows.names(row, 7),
        isPrimary: rows.isTrue(row, 1),
        isUnique: rows.isTrue(row, 2),
        isValid: rows.isTrue(row, 3),
        isImmediate: rows.isTrue(row, 4),
        isPartial: rows.isTrue(row, 5),
        definition: rows.text(row, 6) ?? ""
      )
    }
  }
}

extension PostgresTable.Trigger {
  fileprivate static func read(
    of table: Int64,
    in session: PostgresSession
  ) throws(BatchError) -> [PostgresTable.Trigger] {
    let rows = try session.execute(
      """
      SELECT tgname, tgfoid::regproc, tgtype, tgenabled FROM pg_catalog.pg_trigger
      WHERE tgrelid = $1::oid AND NOT tgisinternal ORDER BY tgname
      """,
      .literal(String(table))
    )
    return (0..<rows.count).map { row in
      // The bits of pg_trigger.tgtype: https://doxygen.postgresql.org/pg__trigger_8h.html
      let bits = rows.integer(row, 2) ?? 0
      let events =
        [(4, "INSERT"), (16, "UPDATE"), (8, "DELETE"), (32, "TRUNCATE")] as [(Int64, String)]
      return PostgresTable.Trigger(
        name: rows.text(row, 0) ?? "",
        function: rows.text(row, 1) ?? "",
        events: events.filter { bits & $0.0 != 0 }.map(\.1),
        isForEachRow: bits & 1 != 0,
        isEnabled: ["O", "A"].contains(rows.text(row, 3))
      )
    }
  }
}

extension PostgresTable.ForeignKey {
  /// Reads the foreign keys that have the table in the given column of `pg_constraint`.
  fileprivate static func read(
    _ side: StaticString,
    _ table: Int64,
    in session: PostgresSession
  ) throws(BatchError) -> [PostgresTable.ForeignKey] {
    func names(_ numbers: String, _ table: String) -> String {
      """
      to_json(ARRAY (
        SELECT a.attname FROM unnest(c.\(numbers)) WITH ORDINALITY AS k (number, place)
          JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.\(table) AND a.attnum = k.number
        ORDER BY k.place))
      """
    }
    // Without the copies that a partition inherits.
    let rows = try session.execute(
      """
      SELECT c.conname, c.conrelid::regclass, \(names("conkey", "conrelid")), c.confrelid::regclass,
        \(names("confkey", "confrelid")), c.confdeltype, c.condeferred
      FROM pg_catalog.pg_constraint AS c
      WHERE c.contype = 'f' AND c.conparentid = 0 AND c.\(side) = $1::oid ORDER BY c.conname, c.oid
      """,
      .literal(String(table))
    )
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
        isDeferred: rows.isTrue(row, 6)
      )
    }
  }
}

extension PostgresResult {
  /// A value that is a JSON array of names.
  fileprivate func names(_ row: Int, _ column: Int) -> [String?] {
    (try? JSONDecoder().decode([String?].self, from: Data((text(row, column) ?? "").utf8))) ?? []
  }
}
#endif
