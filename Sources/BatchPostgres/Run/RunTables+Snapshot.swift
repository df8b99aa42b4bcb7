#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers
import BatchPlatform

package struct TableRunSnapshot: Sendable {
  package let run: TableRun
  package let outcomes: Outcomes
  package let chunks: Int
  package let spanCount: Int
  package let doneSpanCount: Int
  /// When the run ended: ISO 8601 in UTC.
  package let endedAt: String?
  /// The time in which processes have worked on the run, as far as they have told.
  package let elapsedSeconds: Double
  /// The part of it in which they were held.
  package let heldSeconds: Double
  /// The peak memory of any of them.
  package let peakBytes: Int
  /// The number of identifiers done when the run last went on after a time without processes.
  package let resumedAt: Int
  /// The files of an export, and their bytes.
  package let files: Int
  package let bytes: Int
  /// The time since the run began, in seconds.
  package let age: Double
  /// The operator's request, in the requester's form.
  package let control: String?
  /// What failed before each retry.
  package let failedAttempts: [FailedAttempt]
  /// The three most frequent reasons why identifiers failed, once the run is finished.
  package let reasons: [FailureCount]
  /// How the run went.
  let course: RunCourse
}

extension RunTables {
  /// Nil if the run does not exist.
  ///
  /// - Throws: `BatchError` of code `damagedFile` if the run is finished without an outcome for
  ///   each of its identifiers.
  package func snapshot(
    ofRun run: String,
    in session: PostgresSession
  ) throws(BatchError) -> TableRunSnapshot? {
    let sums = Self.outcomes.map { "coalesce(sum(\($0)), 0)::bigint AS \($0)" }
      .joined(separator: ", ")
    let names = Self.outcomes.joined(separator: ", ")
    let rows = try session.execute(
      """
      WITH done AS (
        SELECT \(names) FROM \(span) WHERE run = $1::uuid AND done
        UNION ALL SELECT \(names) FROM \(ledger) WHERE run = $1::uuid)
      SELECT \(TableRun.columns), to_char(r.ended_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        r.elapsed, extract(epoch FROM clock_timestamp() - r.started_at)::float8, r.control, r.failed_attempts,
        (SELECT count(*) FROM \(span) WHERE run = $1::uuid),
        (SELECT count(*) FROM \(span) WHERE run = $1::uuid AND done), r.held, r.peak_bytes, r.resumed_at,
        parts.*, sums.*
      FROM \(self.run) AS r, (SELECT \(sums) FROM done) AS sums,
        (SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM \(part) WHERE run = $1::uuid AND file <> '') AS parts
      WHERE r.run = $1::uuid
      """,
      .text(run)
    )
    guard rows.count == 1 else { return nil }
    let next = TableRun.columnCount
    let shared = try TableRun(rows, 0, from: session)
    let outcomes = rows.outcomes(0, from: next + 13)
    if shared.state == .finished || shared.state == .acknowledged, outcomes.total != shared.total {
      throw Self.damaged(
        "run \(run) is \(shared.state.rawValue) in _batch_run, with \(outcomes.total.grouped) of"
          + " \(shared.total.grouped) done"
      )
    }
    return TableRunSnapshot(
      run: shared,
      outcomes: outcomes,
      chunks: Int(rows.integer(0, next + 12) ?? 0),
      spanCount: Int(rows.integer(0, next + 5) ?? 0),
      doneSpanCount: Int(rows.integer(0, next + 6) ?? 0),
      endedAt: rows.text(0, next),
      elapsedSeconds: rows.text(0, next + 1).flatMap(Double.init) ?? 0,
      heldSeconds: rows.text(0, next + 7).flatMap(Double.init) ?? 0,
      peakBytes: Int(rows.integer(0, next + 8) ?? 0),
      resumedAt: Int(rows.integer(0, next + 9) ?? 0),
      files: Int(rows.integer(0, next + 10) ?? 0),
      bytes: Int(rows.integer(0, next + 11) ?? 0),
      age: rows.text(0, next + 2).flatMap(Double.init) ?? 0,
      control: rows.text(0, next + 3),
      failedAttempts: rows.text(0, next + 4).map { [FailedAttempt](recorded: $0) } ?? [],
      // The keys are gone once somebody has removed the lists.
      reasons: shared.state != .running && outcomes.failed > 0
        ? (try? failureCounts(ofRun: run, atMost: 3, in: session)) ?? [] : [],
      course: try course(ofRun: run, in: session)
    )
  }

  /// Records that a process takes part in an unfinished run on which no other works.
  func noteResumption(of run: String, in session: PostgresSession) throws(BatchError) {
    let done = Self.outcomes.filter { $0 != "chunks" }.joined(separator: " + ")
    try session.execute(
      """
      UPDATE \(self.run) SET resumed_at = coalesce((
        SELECT sum(done) FROM (
          SELECT \(done) FROM \(span) WHERE run = $1::uuid AND done
          UNION ALL SELECT \(done) FROM \(ledger) WHERE run = $1::uuid) AS all_of_them (done)), 0)
      WHERE run = $1::uuid AND state = 'running'
      """,
      .text(run)
    )
  }

  package func remove(_ run: String, in session: PostgresSession) throws(BatchError) {
    try removeUndo(of: run, in: session)
    for table in [
      approval, action, course, exit, host, list, ledger, tally, failure, passedOver, part, span,
      self.run,
    ] {
      // Tables of an earlier version have no course.
      if table == course,
        try session.text("SELECT pg_catalog.to_regclass($1)", .text(table)) == nil
      {
        continue
      }
      try session.execute("DELETE FROM \(table) WHERE run = $1::uuid", .text(run))
    }
  }
}

extension Array where Element: Codable {
  /// A column such as `failed_attempts`; empty if it was changed by hand.
  init(recorded text: String) {
    self = (try? JSONDecoder().decode(Self.self, from: Data(text.utf8))) ?? []
  }

  var recorded: String {
    (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "[]"
  }
}
#endif
