#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers

package struct TableRunSnapshot: Sendable {
  package let run: TableRun
  package let outcomes: Outcomes
  package let chunks: Int
  package let spanCount: Int
  package let doneSpanCount: Int
  /// When the run ended: ISO 8601 in UTC.
  package let endedAt: String?
  /// The time since the run began, or from its beginning to its end.
  package let elapsedSeconds: Double
  /// The operator's request, in the requester's form.
  package let control: String?
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
        extract(epoch FROM coalesce(r.ended_at, clock_timestamp()) - r.started_at)::float8, r.control,
        (SELECT count(*) FROM \(span) WHERE run = $1::uuid),
        (SELECT count(*) FROM \(span) WHERE run = $1::uuid AND done), sums.*
      FROM \(self.run) AS r, (SELECT \(sums) FROM done) AS sums WHERE r.run = $1::uuid
      """,
      .text(run)
    )
    guard rows.count == 1 else { return nil }
    let next = TableRun.columnCount
    let shared = try TableRun(rows, 0, from: session)
    let outcomes = rows.outcomes(0, from: next + 6)
    if shared.state == .finished || shared.state == .acknowledged, outcomes.total != shared.total {
      throw Self.damaged(
        "run \(run) is \(shared.state.rawValue) in _batch_run, with \(outcomes.total.grouped) of"
          + " \(shared.total.grouped) done"
      )
    }
    return TableRunSnapshot(
      run: shared,
      outcomes: outcomes,
      chunks: Int(rows.integer(0, next + 5) ?? 0),
      spanCount: Int(rows.integer(0, next + 3) ?? 0),
      doneSpanCount: Int(rows.integer(0, next + 4) ?? 0),
      endedAt: rows.text(0, next),
      elapsedSeconds: rows.text(0, next + 1).flatMap(Double.init) ?? 0,
      control: rows.text(0, next + 2)
    )
  }

  package func remove(_ run: String, in session: PostgresSession) throws(BatchError) {
    for table in [exit, host, list, ledger, tally, failure, passedOver, part, span, self.run] {
      try session.execute("DELETE FROM \(table) WHERE run = $1::uuid", .text(run))
    }
  }
}
#endif
