#if PostgreSQL
package import BatchIdentifiers

extension ServerHealth {
  /// Warnings about what the role may not see of the server's health; empty if it may see
  /// everything.
  package static func notes(for session: PostgresSession) throws(BatchError) -> [String] {
    try notesOnRights(of: session) + notesOnRemains(in: session)
  }

  /// Warnings about what keeps the server from removing what runs leave: a replication slot without
  /// a reader, a transaction that has been open for long, or a prepared one.
  private static func notesOnRemains(in session: PostgresSession) throws(BatchError) -> [String] {
    let found = try session.execute(
      """
      SELECT 'slot', slot_name::text,
        pg_catalog.pg_size_pretty(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), restart_lsn))
      FROM pg_catalog.pg_replication_slots WHERE NOT active AND NOT temporary AND restart_lsn IS NOT NULL
      UNION ALL
      (SELECT 'transaction', pg_catalog.format('process %s (%s)', pid,
          pg_catalog.concat_ws(' of ', nullif(application_name, ''), usename)),
        to_char(xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')
      FROM pg_catalog.pg_stat_activity
      WHERE xact_start < pg_catalog.clock_timestamp() - interval '5 minutes' AND pid <> pg_catalog.pg_backend_pid()
        AND datname = pg_catalog.current_database() AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL) AND backend_type = 'client backend'
      ORDER BY xact_start LIMIT 1)
      UNION ALL
      (SELECT 'transaction', pg_catalog.format('the prepared transaction %L', gid),
        to_char(prepared AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')
      FROM pg_catalog.pg_prepared_xacts WHERE database = pg_catalog.current_database() ORDER BY prepared LIMIT 1)
      """
    )
    return (0..<found.count).map { row in
      let (name, fact) = (found.text(row, 1) ?? "", found.text(row, 2) ?? "")
      return found.text(row, 0) == "slot"
        ? "nobody reads the replication slot \(name.quotedForMessage), for which the server keeps \(fact) of its log, and"
          + " all that the run adds: have it read, or drop it (pg_drop_replication_slot)"
        : "\(name) has been open since \(fact) UTC: until it ends, no vacuum removes the dead rows that the run leaves"
    }
  }

  private static func notesOnRights(of session: PostgresSession) throws(BatchError) -> [String] {
    let sees = try session.text(
      "SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')"
    )
    guard sees == "f" else { return [] }
    return [
      "the role cannot see the lag of standbys or a vacuum of the table, so neither will hold the run:"
        + " have it granted pg_read_all_stats"
    ]
  }

  /// Asks the server in one round trip, without a transaction; what a role may not see is NULL, not
  /// an error.
  ///
  /// `table` is the OID of the written table.
  package init(of table: Int64, in session: PostgresSession) throws(BatchError) {
    let row = try session.execute(Self.query, .literal(String(table)))
    self.init()
    if let name = row.text(0, 0) {
      standby = Standby(
        name: name,
        lag: .seconds(row.text(0, 1).flatMap(Double.init) ?? 0),
        bytes: row.integer(0, 2) ?? 0
      )
    }
    unarchived = row.integer(0, 3).map { Int($0) }
    vacuum = row.integer(0, 4).map { Int($0) }
    if let mode = row.text(0, 5), let process = row.integer(0, 6) {
      lock = Lock(mode: mode, process: Int(process), isAwaited: row.isTrue(0, 7))
    }
    spareConnections = row.integer(0, 8).map { Int($0) }
  }

  private static let query = """
    -- From the catalog only: pg_partition_tree would wait for a lock on a partition.
    WITH RECURSIVE tables AS (
        SELECT $1::pg_catalog.oid AS oid
        UNION SELECT i.inhrelid FROM tables AS t JOIN pg_catalog.pg_inherits AS i ON i.inhparent = t.oid),
      standby AS (
        -- By name only; of standbys with the same name, the one with the greatest lag.
        SELECT coalesce(nullif(application_name, ''), host(client_addr), 'without a name') AS name,
          coalesce(extract(epoch FROM replay_lag), 0) AS lag,
          coalesce(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), replay_lsn), 0) AS bytes
        FROM pg_catalog.pg_stat_replication
        WHERE state IN ('streaming', 'catchup') ORDER BY 2 DESC, 3 DESC LIMIT 1),
      archiver AS (
        SELECT pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()) AS current, last_archived_wal AS last,
          4294967296 / pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size')) AS per_log
        FROM pg_catalog.pg_stat_archiver
        WHERE pg_catalog.current_setting('archive_mode') <> 'off' AND last_archived_wal ~ '^[0-9A-F]{24}$'),
      -- A file name consists of the timeline, the number of the 4 GB log, and the segment in it.
      files AS (
        SELECT (('x' || substr(current, 9, 8))::bit(32)::int8 - ('x' || substr(last, 9, 8))::bit(32)::int8) * per_log
          + ('x' || substr(current, 17))::bit(32)::int8 - ('x' || substr(last, 17))::bit(32)::int8 - 1 AS count
        FROM archiver),
      vacuum AS (
        SELECT min(v.pid) AS pid FROM pg_catalog.pg_stat_progress_vacuum AS v
          JOIN tables AS t ON t.oid = v.relid JOIN pg_catalog.pg_class AS c ON c.oid = v.relid
        WHERE pg_catalog.age(c.relfrozenxid) <= pg_catalog.current_setting('autovacuum_freeze_max_age')::int8),
      locks AS (
        SELECT l.mode, l.pid, NOT l.granted AS is_awaited FROM pg_catalog.pg_locks AS l
          JOIN tables AS t ON t.oid = l.relation
        WHERE l.locktype = 'relation' AND l.database = (
            SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
          AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
        ORDER BY l.granted, l.pid LIMIT 1)
    SELECT (SELECT name FROM standby), (SELECT lag FROM standby), (SELECT bytes::int8 FROM standby),
      (SELECT greatest(count, 0) FROM files), (SELECT pid FROM vacuum),
      (SELECT mode FROM locks), (SELECT pid FROM locks), (SELECT is_awaited FROM locks),
      -- Also for this role and this database; -1 is no limit.
      least(
        pg_catalog.current_setting('max_connections')::int8
          - pg_catalog.current_setting('superuser_reserved_connections')::int8
          - (SELECT sum(numbackends) FROM pg_catalog.pg_stat_database),
        (SELECT rolconnlimit - (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE usename = rolname)
          FROM pg_catalog.pg_roles WHERE rolname = session_user AND rolconnlimit >= 0 AND NOT rolsuper),
        (SELECT d.datconnlimit - s.numbackends
          FROM pg_catalog.pg_database AS d JOIN pg_catalog.pg_stat_database AS s ON s.datid = d.oid
          WHERE d.datname = pg_catalog.current_database() AND d.datconnlimit >= 0))
    """
}
#endif
