#if PostgreSQL
package import BatchIdentifiers

/// What a session waits for in the server, and who holds it.
package struct ServerWait: Sendable, Hashable {
  /// Whether it is a lock, for which a time limit applies.
  let isLock: Bool
  /// `a lock on t, held by process 4711 (psql of bob, since 10:00:00 UTC)`.
  let words: String

  private init(isLock: Bool = false, _ words: String) {
    self.isLock = isLock
    self.words = words
  }

  /// The wait for a server that does not answer even when asked about it.
  static let silence = ServerWait("the server, which does not answer")

  /// Asks on another session what a process of the server waits for; nil for nothing.
  init?(of process: Int32, in session: PostgresSession) throws(BatchError) {
    let found = try session.execute(Self.query, .integer(Int64(process)))
    if let lock = found.text(0, 0) {
      let holders = [2, 3].compactMap { found.text(0, $0) }.joined(separator: ", ")
      let held = holders.isEmpty ? "" : ", held by \(holders)"
      self.init(isLock: found.isTrue(0, 1), "\(lock)\(held)")
    } else if let names = found.text(0, 4) {
      self.init("a synchronous standby to confirm a commit (synchronous_standby_names is \(names))")
    } else {
      return nil
    }
  }

  /// Describes what other processes with an application name do in this database; nil without any.
  package static func words(ofApplication name: String, in session: PostgresSession)
    throws(BatchError)
    -> String?
  {
    let found = try session.execute(
      """
      SELECT pid FROM pg_catalog.pg_stat_activity
      WHERE application_name = $1 AND datname = pg_catalog.current_database() ORDER BY backend_start LIMIT 1
      """,
      .text(name)
    )
    guard found.count == 1, let process = found.integer(0, 0) else { return nil }
    let wait = try ServerWait(of: Int32(clamping: process), in: session)
    return "process \(process) of the server is "
      + (wait.map { "waiting for \($0.words)" } ?? "at work")
  }

  private static let query = """
    WITH awaited AS (SELECT * FROM pg_catalog.pg_locks WHERE pid = $1::int4 AND NOT granted LIMIT 1),
      holders AS (
        SELECT b.pid, s.application_name, s.usename, s.query_start
        FROM (SELECT DISTINCT pid FROM pg_catalog.unnest(pg_catalog.pg_blocking_pids($1::int4)) AS u(pid)) AS b
          LEFT JOIN pg_catalog.pg_stat_activity AS s ON s.pid = b.pid
        WHERE b.pid <> 0 ORDER BY s.query_start, b.pid LIMIT 3),
      -- They have no process, but a lock on their own number.
      prepared AS (
        SELECT DISTINCT x.gid FROM awaited AS a
          JOIN pg_catalog.pg_locks AS l ON l.granted AND l.pid IS NULL AND l.locktype = a.locktype
            AND l.database IS NOT DISTINCT FROM a.database AND l.relation IS NOT DISTINCT FROM a.relation
            AND l.transactionid IS NOT DISTINCT FROM a.transactionid
          JOIN pg_catalog.pg_locks AS o
            ON o.pid IS NULL AND o.locktype = 'transactionid' AND o.virtualtransaction = l.virtualtransaction
          JOIN pg_catalog.pg_prepared_xacts AS x ON x.transaction = o.transactionid
        WHERE 0 = ANY (pg_catalog.pg_blocking_pids($1::int4)) ORDER BY 1 LIMIT 3)
    SELECT
      (SELECT CASE WHEN locktype = 'advisory' THEN 'another process to begin a run of this job'
        WHEN locktype = 'relation' THEN 'a lock on ' || relation::pg_catalog.regclass ELSE 'a lock on a row' END
        FROM awaited),
      (SELECT locktype <> 'advisory' FROM awaited),
      (SELECT pg_catalog.string_agg(pg_catalog.format('process %s (%s)', pid, pg_catalog.concat_ws(', ',
          pg_catalog.concat_ws(' of ', nullif(application_name, ''), usename),
          'since ' || pg_catalog.to_char(query_start AT TIME ZONE 'UTC', 'HH24:MI:SS') || ' UTC')), ', ')
        FROM holders),
      (SELECT pg_catalog.string_agg(pg_catalog.format('the prepared transaction ''%s''', gid), ', ') FROM prepared),
      (SELECT pg_catalog.quote_literal(pg_catalog.current_setting('synchronous_standby_names'))
        FROM pg_catalog.pg_stat_activity WHERE pid = $1::int4 AND wait_event = 'SyncRep')
    """
}
#endif
