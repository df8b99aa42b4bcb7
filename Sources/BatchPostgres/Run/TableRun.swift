#if PostgreSQL
package import BatchIdentifiers

/// A run shared by any number of hosts: its row of `_batch_run`.
package struct TableRun: Sendable, Hashable {
  package enum State: String, Sendable {
    /// Some spans are not done.
    case running
    /// All spans are done, but the requester of the run may not know.
    case finished
    /// All spans are done, and the requester of the run knows.
    case acknowledged
    case setAside
  }

  package let run: String
  package let job: String
  /// The caller's identifier of the work, if any.
  package let runID: String?
  package let state: State
  /// The fingerprint of what determines the run's rows and what it writes.
  package let fingerprint: String
  /// Other facts about the job, in the form of the host that began the run.
  package let metadata: [UInt8]
  package let total: Int
  /// When it began, by the server's clock: ISO 8601 in UTC.
  package let startedAt: String

  package struct Description: Sendable {
    package var job: String
    package var runID: String?
    package var fingerprint: String
    package var metadata: [UInt8]

    package init(job: String, runID: String? = nil, fingerprint: String, metadata: [UInt8] = []) {
      self.job = job
      self.runID = runID
      self.fingerprint = fingerprint
      self.metadata = metadata
    }
  }
}

extension TableRun {
  static let columns = """
    r.run, r.version, r.job, r.run_id, r.state, r.fingerprint, r.metadata, r.total,
    to_char(r.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    """
  static let columnCount = 9

  /// - Throws: `BatchError` of code `unsupportedVersion` for a run that a newer version began.
  init(_ rows: PostgresResult, _ row: Int, from session: PostgresSession) throws(BatchError) {
    let version = rows.integer(row, 1) ?? 0
    guard version <= Int64(RunTables.version), let state = State(rawValue: rows.text(row, 4) ?? "")
    else {
      throw BatchError(
        .unsupportedVersion,
        "a newer version of batch works on this job: its tables have version \(version),"
          + " and this program reads up to \(RunTables.version)",
        at: session.address.description,
        remedy: "install the same version on all hosts"
      )
    }
    run = rows.text(row, 0) ?? ""
    job = rows.text(row, 2) ?? ""
    runID = rows.text(row, 3)
    self.state = state
    fingerprint = rows.text(row, 5) ?? ""
    metadata = rows.blob(row, 6) ?? []
    total = Int(rows.integer(row, 7) ?? 0)
    startedAt = rows.text(row, 8) ?? ""
  }
}

extension RunTables {
  /// Lets one host at a time decide whether to begin a run of a job, until the end of the
  /// transaction.
  package func lock(job: String, in session: PostgresSession) throws(BatchError) {
    try session.execute(
      "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
      .text("batch job \(schema) \(job)")
    )
  }

  /// Lets one host at a time decide whether to begin a run of a job over a table, until the end of
  /// the transaction; covers all schemas with tables of runs.
  package func lock(
    job: String,
    over table: PostgresTable,
    in session: PostgresSession
  ) throws(BatchError) {
    try session.execute(
      "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
      .text("batch job over \(table.oid) \(job)")
    )
  }

  /// The unfinished runs of a job in the tables of other schemas, and the schemas that the role may
  /// not read.
  ///
  /// A role whose `search_path` begins with another schema has other tables of runs, and does not
  /// find the runs in these.
  package func runsElsewhere(
    ofJob job: String,
    in session: PostgresSession
  ) throws(BatchError) -> (runs: [(schema: String, run: TableRun)], unreadable: [String]) {
    let found = try session.execute(
      """
      SELECT n.nspname, has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
      FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      WHERE c.relname = '_batch_run' AND c.relkind = 'r' AND n.nspname <> $1 AND EXISTS (
        SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'fingerprint')
      ORDER BY 1
      """,
      .text(schema)
    )
    var runs: [(schema: String, run: TableRun)] = []
    var unreadable: [String] = []
    for row in 0..<found.count {
      let schema = found.text(row, 0) ?? ""
      if found.isTrue(row, 1) {
        let others = try RunTables(schema: schema).runs(ofJob: job, in: session)
        runs += others.filter { $0.state == .running }.map { (schema, $0) }
      } else {
        unreadable.append(schema)
      }
    }
    return (runs, unreadable)
  }

  /// Whether a host is deciding whether to begin a run of a job, or is selecting its identifiers.
  package func isLocked(job: String, in session: PostgresSession) throws(BatchError) -> Bool {
    let isFree = try session.text(
      "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))",
      .text("batch job \(schema) \(job)")
    )
    return isFree != "t"
  }

  /// Begins a run inside the caller's transaction, which must have locked the job: adds its row,
  /// its spans and their lists.
  ///
  /// A run without identifiers has no spans; the process that reports it ends it. `length` is the
  /// number of positions in a span; nil to choose one for the list. `canary` has positions that are spans
  /// of their own.
  package func begin(
    _ run: String,
    _ description: TableRun.Description,
    over list: PackedIdentifiers,
    spansOf length: Int? = nil,
    canary: [Range<Int>] = [],
    in session: PostgresSession
  ) throws(BatchError) {
    try session.execute(
      """
      INSERT INTO \(self.run) (
        run, version, job, run_id, state, fingerprint, metadata, total, started_at)
      VALUES ($1::uuid, $2, $3, $4, 'running', $5, $6, $7, clock_timestamp())
      """,
      .text(run),
      .integer(Int64(Self.version)),
      .text(description.job),
      description.runID.map { .text($0) } ?? .null,
      .text(description.fingerprint),
      .blob(description.metadata),
      .integer(Int64(list.count))
    )
    let length = length ?? SpanList.length(for: list)
    // Sent together, so that a distant server takes no longer than a near one, but a few at a time,
    // since they are in memory.
    var spans: [PostgresStatement] = []
    var byteCount = 0
    for positions in SpanList.spans(of: list.count, atMost: length, apart: canary) {
      let bytes = try SpanList.packed(list, positions)
      let begun = PostgresStatement(
        sql: """
          WITH begun AS (INSERT INTO \(span) (run, first, next) VALUES ($1::uuid, $2, $3) RETURNING run, first)
          INSERT INTO \(tally) (run, first, backend, entered) SELECT run, first, 0, 0 FROM begun
          """,
        values: [
          .text(run), .integer(Int64(positions.lowerBound)), .integer(Int64(positions.upperBound)),
        ]
      )
      let packed = PostgresStatement(
        sql: "INSERT INTO \(self.list) (run, first, bytes) VALUES ($1::uuid, $2, $3)",
        values: [.text(run), .integer(Int64(positions.lowerBound)), .blob(bytes)]
      )
      spans += [begun, packed]
      byteCount += bytes.count
      if byteCount >= SpanList.sentLimit || positions.upperBound == list.count {
        try session.execute(together: spans)
        spans.removeAll()
        byteCount = 0
      }
    }
  }

  /// The runs of a job, the newest last; throws for a run that a newer version began.
  package func runs(
    ofJob job: String,
    in session: PostgresSession
  ) throws(BatchError) -> [TableRun] {
    let rows = try session.execute(
      "SELECT \(TableRun.columns) FROM \(run) AS r WHERE r.job = $1 ORDER BY r.started_at, r.run",
      .text(job)
    )
    var runs: [TableRun] = []
    for row in 0..<rows.count { runs.append(try TableRun(rows, row, from: session)) }
    return runs
  }

  /// Sets aside an unfinished run so that another can replace it, inside the caller's transaction,
  /// which must have locked the job.
  ///
  /// A process that still has a span finds out before its next chunk.
  package func setAside(_ run: String, in session: PostgresSession) throws(BatchError) {
    // Update the run first, so that no more spans are granted. Updating the spans then waits for
    // chunks in progress.
    try session.execute(
      """
      UPDATE \(self.run) SET state = 'setAside', ended_at = clock_timestamp()
      WHERE run = $1::uuid AND state = 'running'
      """,
      .text(run)
    )
    try session.execute(
      "UPDATE \(span) SET token = token + 1, host = NULL WHERE run = $1::uuid AND NOT done",
      .text(run)
    )
  }

  /// Records that all spans of a run are done; `host` is the process that does so.
  ///
  /// - Returns: Whether this call ended the run, which is true for only one host. That host reports
  ///   the end.
  /// - Throws: `BatchError` of code `damagedFile` if spans of the run are missing, or a span is
  ///   recorded as done without the outcome of each of its positions.
  package func finish(
    _ run: String,
    by host: String,
    in session: PostgresSession
  ) throws(BatchError) -> Bool {
    try session.transaction(.bookkeeping) { () throws(BatchError) in
      // A reported end must be on disk, with everything committed before, whatever the role's
      // setting.
      try session.execute(
        """
        SELECT set_config('synchronous_commit', 'on', true)
        WHERE current_setting('synchronous_commit') = 'off'
        """
      )
      let missing = try session.execute(
        """
        SELECT total - (SELECT coalesce(sum(next - first), 0) FROM \(span) WHERE run = $1::uuid)
        FROM \(self.run) WHERE run = $1::uuid
        """,
        .text(run)
      )
      if missing.count == 1, missing.text(0, 0) != "0" {
        throw Self.damaged("spans of run \(run) are missing in _batch_span")
      }
      let counted = Self.outcomes.filter { $0 != "chunks" }.joined(separator: " + ")
      let partial = try session.execute(
        "SELECT first, next FROM \(span) WHERE run = $1::uuid AND done AND \(counted) <> next - first LIMIT 1",
        .text(run)
      )
      if partial.count == 1, let first = partial.integer(0, 0), let next = partial.integer(0, 1) {
        let place =
          first < next ? Self.place(of: Int(first)..<Int(next), run) : "spans of run \(run)"
        throw Self.damaged("\(place) count as done in _batch_span, but not each has an outcome")
      }
      return try session.execute(
        """
        UPDATE \(self.run) AS r SET state = 'finished', ended_at = clock_timestamp(),
          elapsed = r.elapsed + coalesce((
            SELECT \(HostHeartbeat.uncounted) FROM \(self.host) AS h
            WHERE h.run = r.run AND h.host = $2::uuid), 0)
        WHERE run = $1::uuid AND state = 'running'
          AND NOT EXISTS (SELECT FROM \(span) WHERE run = $1::uuid AND NOT done)
        """,
        .text(run),
        .text(host)
      ).affectedCount == 1
    }
  }

  /// Records that the requester of a run knows that it has ended.
  package func acknowledge(_ run: String, in session: PostgresSession) throws(BatchError) {
    try session.execute(
      "UPDATE \(self.run) SET state = 'acknowledged' WHERE run = $1::uuid AND state = 'finished'",
      .text(run)
    )
  }

  /// Sets the operator's request, which hosts receive with their next heartbeats; nil withdraws it.
  package func request(
    _ control: String?,
    of run: String,
    in session: PostgresSession
  ) throws(BatchError) {
    try session.execute(
      "UPDATE \(self.run) SET control = $2 WHERE run = $1::uuid",
      .text(run),
      control.map { .text($0) } ?? .null
    )
  }
}
#endif
