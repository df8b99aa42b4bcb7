#if PostgreSQL
import BatchRuns
package import BatchIdentifiers
import BatchPlatform

/// Advice on how to spare the server work during and after a run, based on its catalog and
/// settings.
package struct ServerAdvice: Sendable {
  /// A run over fewer rows ends too soon for any of it to matter.
  package static let fewestRows = 10_000
  /// The longest total pause of a vacuum that is not mentioned; by default, the server itself waits
  /// as long before it checks which tables need a vacuum.
  private static let longestPause = Duration.seconds(60)

  /// A table with its own rows: the job's table, a partition, or a table that inherits from it.
  private struct Part: Decodable {
    let name: String
    /// The number of rows at the last ANALYZE; not positive if there was none.
    let rows: Double
    let pages: Double
    let indexPages: Double
    let fillfactor: Double
    /// Whether autovacuum applies to it, and above how many dead rows.
    let isVacuumed: Bool
    let threshold: Double
    /// How long a vacuum pauses for each page that it reads and changes, in milliseconds, and
    /// because of which limits.
    let pausePerPage: Double
    let limits: String
  }

  private let parts: [Part]
  /// The indexes on changing columns, and those columns.
  private let indexes: [(name: String, columns: String)]
  private let indexCount: Int
  private let count: Double
  private let isDeletion: Bool
  private let hasTrigger: Bool

  /// Asks the server, inside the caller's transaction, about a change of `count` rows; `columns` is
  /// nil if rows are deleted.
  package init(
    on table: PostgresTable,
    setting columns: [String]?,
    count: Int,
    in session: PostgresSession
  ) throws(BatchError) {
    let oid = PostgresValue.literal(String(table.oid))
    let found = try session.execute(together: [
      PostgresStatement(sql: Self.partSQL, values: [oid]),
      PostgresStatement(sql: Self.indexSQL, values: [oid, .array(PostgresArray(columns ?? []))]),
    ])
    parts = (0..<found[0].count).compactMap { row in
      found[0].text(row, 0).flatMap {
        try? JSONDecoder().decode(Part.self, from: Data($0.utf8))
      }
    }
    indexes = (0..<found[1].count).map { row in
      (found[1].text(row, 0) ?? "", found[1].text(row, 1) ?? "")
    }
    indexCount = table.indexes.count
    self.count = Double(count)
    isDeletion = columns == nil
    hasTrigger = table.triggers.contains {
      $0.isEnabled && $0.isForEachRow && $0.time == "BEFORE" && $0.events.contains("UPDATE")
    }
  }

  /// The advice, one line each; empty if nothing is known to help.
  package var lines: [String] {
    guard count >= Double(Self.fewestRows), !parts.isEmpty else { return [] }
    return (isDeletion ? [] : indexes.isEmpty ? roomLines : indexLines) + vacuumLines
  }

  private var share: Double {
    let rows = parts.reduce(0) { $0 + max(0, $1.rows) }
    return rows > 0 ? min(1, count / rows) : 1
  }

  private var entries: String {
    "each row that changes gets a new entry in every index (\(indexCount) of them), as no HOT update needs"
  }

  private var indexLines: [String] {
    indexes.map { name, columns in
      "the index \(name) has \(columns), which the job changes: \(entries). A run without that index is shorter, if pages"
        + " have room (fillfactor) and nothing else needs it meanwhile"
    }
  }

  private var roomLines: [String] {
    let full = parts.filter { $0.fillfactor == 100 && $0.pages > 0 }
    guard indexCount > 0, let first = full.first else { return [] }
    // A page with room for a new version of each of its rows that change.
    let factor = max(50, Int(100 / (1 + share)))
    let condition = hasTrigger ? ", unless a trigger changes an indexed column" : ""
    return [
      "pages of \(Self.names(full)) are filled to the last byte (fillfactor 100): \(entries)\(condition)."
        + " ALTER TABLE \(first.name) SET (fillfactor = \(factor)) leaves room in pages that are written from then on;"
        + " existing rows get it only by a rewrite, as VACUUM FULL does, which locks everybody out"
    ]
  }

  private var vacuumLines: [String] {
    // The tables in which the run leaves enough dead rows for a vacuum.
    let due = parts.filter { $0.rows <= 0 || share * $0.rows > $0.threshold }
    let forgotten = due.filter { !$0.isVacuumed }
    var lines: [String] = []
    if let first = forgotten.first {
      lines.append(
        "autovacuum is off for \(Self.names(forgotten)): the dead rows that the run leaves stay until somebody runs"
          + " VACUUM \(first.name)"
      )
    }
    let slow = due.filter { $0.isVacuumed && pause(of: $0) > Self.longestPause }
    if let worst = slow.max(by: { pause(of: $0) < pause(of: $1) }) {
      lines.append(
        "dead rows of \(Self.names(slow)) pile up during the run: of what it leaves, the autovacuum of \(worst.name) has"
          + " to pause for \(pause(of: worst).shown) in all (\(worst.limits)). ALTER TABLE \(worst.name) SET"
          + " (autovacuum_vacuum_cost_delay = 0) spares it that, RESET (autovacuum_vacuum_cost_delay) undoes it"
      )
    }
    return lines
  }

  /// The approximate total pause of a vacuum of the table after the run.
  ///
  /// A vacuum changes the pages with dead rows twice, to find and to free them, and in between
  /// those of the indexes. An update also adds pages of new rows, and of their index entries, which
  /// a vacuum marks as visible.
  private func pause(of part: Part) -> Duration {
    let dead = part.rows > 0 ? share * part.rows : count
    let new = isDeletion ? 0 : share
    let pages =
      2 * min(part.pages, dead) + part.pages * new
      + min(part.indexPages, dead * Double(indexCount)) * (1 + new)
    return .milliseconds(pages * part.pausePerPage)
  }

  private static func names(_ parts: [Part]) -> String {
    let others = parts.count - 1
    return (parts.first?.name ?? "") + (others > 0 ? " and \(others.grouped) more" : "")
  }
}

extension ServerAdvice {
  private static let tables = """
    WITH RECURSIVE tables AS (
      SELECT $1::pg_catalog.oid AS oid
      UNION SELECT i.inhrelid FROM tables AS t JOIN pg_catalog.pg_inherits AS i ON i.inhparent = t.oid)
    """

  /// One row of JSON for each part; options of a table override the server's settings.
  private static let partSQL = """
    \(tables), server AS (
      SELECT jsonb_object_agg(name, setting) AS s FROM pg_catalog.pg_settings
      WHERE name LIKE '%vacuum%' OR name IN ('track_counts', 'block_size'))
    SELECT json_build_object(
      'name', c.oid::regclass::text, 'rows', c.reltuples,
      'pages', pg_relation_size(c.oid) / (s ->> 'block_size')::int,
      'indexPages', pg_indexes_size(c.oid) / (s ->> 'block_size')::int,
      'fillfactor', coalesce(o ->> 'fillfactor', '100')::int,
      'isVacuumed', (s ->> 'autovacuum')::bool AND (s ->> 'track_counts')::bool
        AND coalesce(o ->> 'autovacuum_enabled', 'on')::bool,
      'threshold', coalesce(o ->> 'autovacuum_vacuum_threshold', s ->> 'autovacuum_vacuum_threshold')::float8
        + coalesce(o ->> 'autovacuum_vacuum_scale_factor', s ->> 'autovacuum_vacuum_scale_factor')::float8
        * greatest(c.reltuples, 0),
      'pausePerPage', delay / cost_limit
        * ((s ->> 'vacuum_cost_page_miss')::int + (s ->> 'vacuum_cost_page_dirty')::int),
      'limits', delay || ' ms after each ' || cost_limit || ' of cost')
    FROM tables JOIN pg_catalog.pg_class AS c USING (oid) CROSS JOIN server CROSS JOIN LATERAL (
      SELECT coalesce(jsonb_object_agg(option_name, option_value), '{}') AS o
      FROM pg_options_to_table(c.reloptions)) AS options
    CROSS JOIN LATERAL (
      SELECT coalesce(nullif((o ->> 'autovacuum_vacuum_cost_delay')::float8, -1),
          nullif((s ->> 'autovacuum_vacuum_cost_delay')::float8, -1), (s ->> 'vacuum_cost_delay')::float8) AS delay,
        coalesce(nullif((o ->> 'autovacuum_vacuum_cost_limit')::int, -1),
          nullif((s ->> 'autovacuum_vacuum_cost_limit')::int, -1), (s ->> 'vacuum_cost_limit')::int) AS cost_limit) AS pauses
    WHERE c.relkind = 'r' ORDER BY c.relpages DESC, c.oid
    """

  /// The indexes with a column that changes: one that is set, or that the server computes from it.
  ///
  /// A column may be in an index's key, included beside it, in an expression or in the condition.
  /// From version 16 on, a BRIN index does not prevent HOT updates.
  private static let indexSQL = """
    \(tables), changed AS (
      SELECT a.attrelid, a.attnum, a.attname FROM tables AS t JOIN pg_catalog.pg_attribute AS a ON a.attrelid = t.oid
      WHERE a.attname = ANY ($2)
      UNION
      SELECT g.attrelid, g.attnum, g.attname
      FROM tables AS t JOIN pg_catalog.pg_attribute AS a ON a.attrelid = t.oid AND a.attname = ANY ($2)
        JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = t.oid
          AND d.refobjsubid = a.attnum
        LEFT JOIN pg_catalog.pg_attrdef AS f ON d.classid = 'pg_catalog.pg_attrdef'::regclass AND f.oid = d.objid
        JOIN pg_catalog.pg_attribute AS g ON g.attrelid = t.oid AND g.attgenerated <> '' AND g.attnum = CASE
          WHEN f.oid IS NOT NULL THEN f.adnum WHEN d.classid = d.refclassid AND d.objid = t.oid THEN d.objsubid END)
    SELECT coalesce(pg_partition_root(i.indexrelid), i.indexrelid)::regclass::text AS name,
      string_agg(DISTINCT c.attname, ', ' ORDER BY c.attname)
    FROM changed AS c JOIN pg_catalog.pg_index AS i ON i.indrelid = c.attrelid AND i.indislive
      JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid JOIN pg_catalog.pg_am AS m ON m.oid = x.relam
    WHERE (c.attnum = ANY (i.indkey::int2[]) OR EXISTS (
        SELECT FROM pg_catalog.pg_depend AS d
        WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = i.indexrelid AND d.refclassid = d.classid
          AND d.refobjid = i.indrelid AND d.refobjsubid = c.attnum))
      AND (m.amname <> 'brin' OR current_setting('server_version_num')::int < 160000)
    GROUP BY 1 ORDER BY 1
    """
}
#endif
