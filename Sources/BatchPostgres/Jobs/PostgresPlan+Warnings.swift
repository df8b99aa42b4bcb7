#if PostgreSQL
import BatchJobs
import BatchRuns
import BatchIdentifiers

extension PostgresPlan {
  /// What the job and the catalog say without another question to the server.
  var warnings: [String] {
    var warnings: [String] = []
    let moving = key.columns.map(\.name).filter(table.partitionColumns.contains)
    if !moving.isEmpty, key.columns.count > 1 {
      warnings.append(
        "a row that somebody moves to another partition during the run counts as vanished: the key has"
          + " \(moving.joined(separator: ", ")), by which \(table.title.quotedForMessage) is partitioned;"
          + " if columns that stay as they are identify a row, name only these in source.key"
      )
    }
    if !cascades.isEmpty {
      let tables = Set(cascades.map(\.table)).sorted().joined(separator: ", ")
      var isArchived = false
      if case .delete(let delete) = job.action { isArchived = delete.archive != nil }
      warnings.append(
        "rows of \(tables) are changed or deleted too, by their foreign keys"
          + (isArchived ? ", without a copy in the archive" : "")
      )
    }
    if isInOrder {
      warnings.append(
        "rows change in the order of the list (source), by one process at a time: others wait, and go on when it"
          + " ends"
      )
    }
    if condition != nil, recheck.predicate == nil, job.source.recheck == .row, job.action.writes {
      warnings.append(
        "a row that somebody changes after it was selected is written anyway: where reads other rows;"
          + " source.recheck \"skip\" applies it again"
      )
    }
    return warnings
  }

  /// What the server says about rows that the run reaches beside its own, and about better ways.
  func warnings(in session: PostgresSession) throws(BatchError) -> [String] {
    guard event != nil else { return [] }
    return try warningsAboutOrder(in: session) + warningsAboutReferrers(in: session)
      + warningsAboutPartitions(in: session)
  }

  /// The answer to a question with the job's parameters; nil if it fails or takes too long.
  func answer(
    to sql: String,
    within time: Duration,
    in session: PostgresSession
  ) throws(BatchError) -> PostgresResult? {
    do throws(BatchError) {
      return try session.savepoint { () throws(BatchError) in
        try session.execute("SET LOCAL statement_timeout = \(max(1, time.milliseconds))")
        let answer = try session.execute(sql, query.parameters.values)
        try session.execute("SET LOCAL statement_timeout TO DEFAULT")
        return answer
      }
    } catch {
      guard !session.isLost else { throw error }
      return nil
    }
  }

  /// Warnings about tables that the server reads whole for each row, since no index leads to the
  /// rows that refer to it.
  private func warningsAboutReferrers(
    in session: PostgresSession
  ) throws(BatchError) -> [String] {
    let deletes = event == "DELETE"
    let found = try session.execute(
      """
      WITH RECURSIVE reached AS (
        SELECT $1::pg_catalog.oid AS oid
        UNION SELECT next.oid FROM reached AS r CROSS JOIN LATERAL (
          SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = r.oid
          UNION ALL SELECT c.conrelid FROM pg_catalog.pg_constraint AS c
          WHERE c.confrelid = r.oid AND c.contype = 'f' AND c.confdeltype = 'c' AND \(deletes)) AS next (oid)),
      keys AS (
        SELECT DISTINCT c.conrelid, c.conkey FROM reached AS r JOIN pg_catalog.pg_constraint AS c
          ON c.confrelid = r.oid AND c.contype = 'f' AND c.conparentid = 0
        WHERE \(deletes) OR EXISTS (
          SELECT FROM pg_catalog.pg_attribute AS a
          WHERE a.attrelid = c.confrelid AND a.attnum = ANY (c.confkey) AND a.attname = ANY ($2)))
      SELECT k.conrelid::pg_catalog.regclass::text, (
          SELECT string_agg(pg_catalog.quote_ident(a.attname), ', ' ORDER BY array_position(k.conkey, a.attnum))
          FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)),
        c.reltuples::int8
      FROM keys AS k JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
      WHERE NOT EXISTS (
        SELECT FROM pg_catalog.pg_index AS i WHERE i.indrelid = k.conrelid AND i.indisvalid
          AND i.indpred IS NULL AND (i.indkey::int2[])[0] = ANY (k.conkey))
      ORDER BY 1, 2
      """,
      .literal(String(table.oid)),
      .array(PostgresArray(changedColumns))
    )
    return (0..<found.count).map { row in
      let (name, columns) = (found.text(row, 0) ?? "", found.text(row, 1) ?? "")
      let count = found.integer(row, 2) ?? -1
      let size = count > 0 ? " (about \(Int(count).grouped) rows)" : ""
      return
        "for each row, the server reads all of \(name)\(size) to find what refers to it, since no index begins"
        + " with \(columns): CREATE INDEX CONCURRENTLY ON \(name) (\(columns)) avoids that"
    }
  }

  /// The longest time to look for partitions of which all rows are selected.
  private static let partitionTime = Duration.seconds(2)

  /// A warning about partitions that would better be dropped, since all their rows are deleted.
  private func warningsAboutPartitions(
    in session: PostgresSession
  ) throws(BatchError) -> [String] {
    // What else a deletion does, dropping a partition would not do.
    guard case .delete(let delete) = job.action, delete.archive == nil, firingTriggers.isEmpty,
      table.referrers.isEmpty, table.kind == .partitionedTable, identifiers == nil,
      job.source.limit == nil
    else { return [] }
    let parts = try session.execute(
      """
      SELECT c.oid::pg_catalog.regclass::text, NOT EXISTS (
        SELECT FROM pg_catalog.pg_partitioned_table AS p WHERE p.partrelid = $1 AND p.partdefid <> 0)
      FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
      WHERE i.inhparent = $1 AND c.relkind = 'r' ORDER BY 1 LIMIT 1000
      """,
      .literal(String(table.oid))
    )
    // A table with a default partition is locked for the moment that it takes.
    let mode = parts.count > 0 && parts.isTrue(0, 1) ? " CONCURRENTLY" : ""
    let deadline = ContinuousClock.now + Self.partitionTime
    var whole: [String] = []
    for part in (0..<parts.count).compactMap({ parts.text($0, 0) }) {
      let time = ContinuousClock.now.duration(to: deadline)
      guard time > .zero else { break }
      if try isSelected(part, within: time, in: session) { whole.append(part) }
    }
    guard let first = whole.first else { return [] }
    let names = whole.prefix(3).joined(separator: ", ") + (whole.count > 3 ? ", …" : "")
    return [
      "every row of \(whole.count == 1 ? "the partition" : "\(whole.count) partitions:") \(names) is selected:"
        + " ALTER TABLE \(table.title) DETACH PARTITION \(first)\(mode), then DROP TABLE, takes a moment and"
        + " gives the space back"
    ]
  }

  /// Whether a partition has rows, and all of them are selected; false if that takes too long.
  private func isSelected(
    _ part: String,
    within time: Duration,
    in session: PostgresSession
  ) throws(BatchError) -> Bool {
    let selects = condition?.sql(query.parameters, .place) ?? "true"
    let found = try answer(
      to: """
        SELECT EXISTS (SELECT FROM \(part)),
          EXISTS (SELECT FROM \(part) AS \(PostgresName.quoted(table.name)) WHERE (\(selects)) IS NOT TRUE)
        """,
      within: time,
      in: session
    )
    return found.map { $0.isTrue(0, 0) && !$0.isTrue(0, 1) } ?? false
  }
}
#endif
