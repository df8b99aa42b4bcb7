#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers

/// Admits a chunk's transaction only if its process still has the span, and enters the chunk in the
/// ledger.
///
/// A transaction locks the row of its span with `FOR KEY SHARE`, if the row still has the process's
/// token. Such locks do not block each other, and heartbeats do not touch the row. A takeover
/// changes the token, which is part of a unique key, so it needs a lock that waits for all of
/// these. Once a span has changed hands, each transaction of the former holder is therefore either
/// committed and visible to the new holder, or will find another token.
///
/// The chunk is entered before its rows are changed. If the connection breaks at COMMIT, the
/// process does not know whether the chunk is done, and the server may still be working on it. A
/// second entry of the same chunk waits for the first attempt, and finds out.
///
/// Entries are also counted, in `_batch_tally`, so that removing rows from the ledger is noticed:
/// see ``RunTables/doneRanges(of:ofRun:in:)``. Each server process counts in its own row. With a
/// shared row, each chunk would wait for the COMMIT of the others.
package struct SpanFence: Sendable {
  package enum Entry: Sendable, Hashable {
    case entered
    /// The chunk is already done, with these outcomes.
    case isThere(Outcomes)
  }

  package let tables: RunTables
  package let run: String

  package init(_ tables: RunTables, run: String) {
    self.tables = tables
    self.run = run
  }

  /// - Throws: `BatchError` of code `leaseLost` if another process has taken over the span, or the
  ///   ledger divides the positions differently.
  package func enter(
    _ positions: Range<Int>,
    under lease: SpanLease,
    in session: PostgresSession
  ) throws(BatchError) -> Entry {
    let entry = entry(of: positions, under: lease)
    if try session.execute(entry.sql, entry.values).affectedCount == 1 { return .entered }
    // A new statement sees what the previous one waited for.
    let found = try session.execute(
      """
      SELECT l.succeeded, l.unchanged, l.vanished, l.no_longer_matching, l.failed
      FROM \(tables.ledger) AS l JOIN \(tables.span) AS s ON s.run = l.run AND s.first = $2 AND s.token = $3
      WHERE l.run = $1::uuid AND l.first = $4 AND l.next = $5
      """,
      entry.values
    )
    guard found.count == 1 else { throw Self.lost(lease, ofRun: run) }
    return .isThere(found.outcomes(0, from: 0))
  }

  /// The statement that enters a chunk as fully successful; it affects one row, or none if another
  /// process has the span or the chunk is already entered.
  func entry(of positions: Range<Int>, under lease: SpanLease) -> PostgresStatement {
    PostgresStatement(
      sql: """
        WITH fence AS MATERIALIZED (
          SELECT FROM \(tables.span) WHERE run = $1::uuid AND first = $2 AND token = $3 FOR KEY SHARE),
        entry AS (
          INSERT INTO \(tables.ledger) (run, first, next, chunks, succeeded, unchanged, vanished, no_longer_matching,
            failed)
          SELECT $1::uuid, $4, $5, 1, $5 - $4, 0, 0, 0, 0 FROM fence ON CONFLICT (run, first) DO NOTHING
          RETURNING next - first AS count)
        INSERT INTO \(tables.tally) AS t (run, first, backend, entered)
        SELECT $1::uuid, $2, pg_catalog.pg_backend_pid(), count FROM entry
        ON CONFLICT (run, first, backend) DO UPDATE SET entered = t.entered + excluded.entered
        """,
      values: [
        .text(run), .integer(Int64(lease.positions.lowerBound)), .integer(lease.token),
        .integer(Int64(positions.lowerBound)), .integer(Int64(positions.upperBound)),
      ]
    )
  }

  /// The statement that reads how many positions of a span are in the ledger, and how many were
  /// counted.
  ///
  /// It must follow the entry of a chunk; otherwise, a row removed between this check and the entry
  /// would go unnoticed.
  func counts(under lease: SpanLease) -> PostgresStatement {
    // One statement sees each chunk of other processes in both tables or in neither.
    PostgresStatement(
      sql: """
        SELECT (SELECT coalesce(sum(next - first), 0) FROM \(tables.ledger)
            WHERE run = $1::uuid AND first >= $2 AND first < $3),
          (SELECT CASE WHEN bool_or(backend = 0) THEN sum(entered) END FROM \(tables.tally)
            WHERE run = $1::uuid AND first = $2)
        """,
      values: [
        .text(run), .integer(Int64(lease.positions.lowerBound)),
        .integer(Int64(lease.positions.upperBound)),
      ]
    )
  }

  /// Refuses a ledger whose chunks of a span differ from their count, by the answer to
  /// ``counts(under:)``.
  func requireCounted(_ lease: SpanLease, by counts: PostgresResult) throws(BatchError) {
    try RunTables.requireCounted(
      done: counts.integer(0, 0) ?? 0,
      entered: counts.integer(0, 1),
      of: lease.positions,
      ofRun: run
    )
  }

  static func lost(_ lease: SpanLease, ofRun run: String) -> BatchError {
    BatchError(
      .leaseLost,
      "another process has taken over positions \(lease.positions.lowerBound) to"
        + " \(lease.positions.upperBound - 1)",
      at: "run \(run)"
    )
  }

  /// Enters the outcomes of a chunk that was entered in the same transaction, unless all its
  /// identifiers succeeded.
  package func complete(
    _ positions: Range<Int>,
    _ written: ChunkResult,
    in session: PostgresSession
  ) throws(BatchError) {
    let outcomes = written.outcomes
    guard outcomes.succeeded != positions.count else { return }
    var statements = [
      PostgresStatement(
        sql: """
          UPDATE \(tables.ledger)
          SET succeeded = $3, unchanged = $4, vanished = $5, no_longer_matching = $6, failed = $7
          WHERE run = $1::uuid AND first = $2
          """,
        values: [
          .text(run),
          .integer(Int64(positions.lowerBound)),
          .integer(Int64(outcomes.succeeded)),
          .integer(Int64(outcomes.unchanged)),
          .integer(Int64(outcomes.vanished)),
          .integer(Int64(outcomes.noLongerMatching)),
          .integer(Int64(outcomes.failed)),
        ]
      )
    ]
    if !written.passedOver.isEmpty {
      statements.append(
        PostgresStatement(
          sql: "INSERT INTO \(tables.passedOver) (run, first, bytes) VALUES ($1::uuid, $2, $3)",
          values: [
            .text(run),
            .integer(Int64(positions.lowerBound)),
            .blob(written.passedOver.packed(from: 0)),
          ]
        )
      )
    }
    if !written.failures.isEmpty {
      statements.append(
        PostgresStatement(
          sql: """
            INSERT INTO \(tables.failure) (run, position, code, message, attempt, failed_at)
            SELECT $1::uuid, f.*, (SELECT attempt FROM \(tables.run) WHERE run = $1::uuid), clock_timestamp()
            FROM unnest($2::int8[], $3::text[], $4::text[]) AS f
            """,
          values: [
            .text(run),
            .array(PostgresArray(written.failures.map { Int64(positions.lowerBound + $0.number) })),
            .array(PostgresArray(written.failures.map(\.error.code.rawValue))),
            .array(
              PostgresArray(
                written.failures.map {
                  FailedIdentifier.message(of: $0.error).replacing("\0", with: "\u{FFFD}")
                }
              )
            ),
          ]
        )
      )
    }
    try session.execute(together: statements)
  }
}

extension PostgresResult {
  func outcomes(_ row: Int, from column: Int) -> Outcomes {
    func count(_ offset: Int) -> Int { Int(integer(row, column + offset) ?? 0) }
    var outcomes = Outcomes()
    outcomes.succeeded = count(0)
    outcomes.unchanged = count(1)
    outcomes.vanished = count(2)
    outcomes.noLongerMatching = count(3)
    outcomes.failed = count(4)
    return outcomes
  }
}
#endif
