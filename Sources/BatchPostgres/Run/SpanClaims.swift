#if PostgreSQL
import BatchRuns
package import BatchIdentifiers

/// Claims spans of a run for a process, and records that they are done.
///
/// A span is free if no process has it, or if its process has sent no heartbeat for the duration of
/// a lease. A heartbeat that far in the future does not count either: the server's clock was set
/// back, or another server has taken over. A lease only decides who works on what, which affects
/// speed. ``SpanFence`` and the ledger ensure that nothing is done twice.
package struct SpanClaims: Sendable {
  package enum Answer: Sendable, Hashable {
    /// The process gets the span; these positions remain to be done.
    case granted(SpanLease, remaining: [Range<Int>])
    /// Other processes are working on all unfinished spans.
    case noneFree
    case exhausted
  }

  package let tables: RunTables
  package let run: String
  package let host: String
  /// How long a process keeps its spans without a heartbeat.
  package let lease: Duration
  /// Whether a span is free only once all spans before it are done, so that processes take turns.
  package let inOrder: Bool

  package init(_ heartbeat: HostHeartbeat, lease: Duration, inOrder: Bool = false) {
    tables = heartbeat.tables
    run = heartbeat.run
    host = heartbeat.host
    self.lease = lease
    self.inOrder = inOrder
  }

  /// `known` contains the first positions of the spans that the process believes it has.
  ///
  /// The server grants none of them, even if it disagrees: the process finds out at the fence, and
  /// asks again. If the server records a span for the process that is not in `known`, an answer was
  /// lost, and the span is granted again.
  ///
  /// `trial` has the only positions that may be granted; nil for all.
  package func claim(
    knowing known: some Collection<Int>,
    only trial: [Range<Int>]? = nil,
    in session: PostgresSession
  ) throws(BatchError) -> Answer {
    // The statement after the lock must see everything committed before it, which only this
    // isolation level ensures.
    try session.transaction(.bookkeeping) { () throws(BatchError) in
      // A transaction that sets the run aside waits for this one, and then revokes the span.
      let running = PostgresStatement(
        sql: "SELECT FROM \(tables.run) WHERE run = $1::uuid AND state = 'running' FOR SHARE",
        values: [.text(run)]
      )
      // A process that asks is alive, and must not lose its new span immediately.
      let seen = PostgresStatement(
        sql:
          "UPDATE \(tables.host) SET seen_at = clock_timestamp() WHERE run = $1::uuid AND host = $2::uuid",
        values: [.text(run), .text(host)]
      )
      let turn =
        inOrder
        ? "AND NOT EXISTS (SELECT FROM \(tables.span) AS e WHERE e.run = s.run AND e.first < s.first AND NOT e.done)"
        : ""
      let part = trial.map { trial in
        trial.map { "s.first >= \($0.lowerBound) AND s.first < \($0.upperBound)" }
          .joined(separator: " OR ")
      }
      let tried = part.map { "AND (\($0))" } ?? ""
      let claimed = PostgresStatement(
        sql: """
          WITH free AS MATERIALIZED (
            -- A subquery, not a join: if a span was claimed since the statement began, the server checks the condition
            -- again with the new version of the span, but with the old versions of rows joined to it.
            SELECT s.first FROM \(tables.span) AS s
            WHERE s.run = $1::uuid AND NOT s.done AND s.first <> ALL ($3)
              AND EXISTS (SELECT FROM \(tables.run) WHERE run = $1::uuid AND state = 'running')
              AND (s.host IS NULL OR s.host = $2::uuid OR NOT EXISTS (
                SELECT FROM \(tables.host) AS h WHERE h.run = s.run AND h.host = s.host
                  AND abs(extract(epoch FROM clock_timestamp() - h.seen_at)) * 1000 <= $4))
              \(tried) \(turn)
            ORDER BY s.first LIMIT 1 FOR UPDATE OF s SKIP LOCKED)
          UPDATE \(tables.span) AS s SET host = $2::uuid, token = s.token + 1 FROM free
          WHERE s.run = $1::uuid AND s.first = free.first RETURNING s.first, s.next, s.token
          """,
        values: [
          .text(run), .text(host), .array(PostgresArray(known.map { Int64($0) })),
          .integer(Int64(lease.milliseconds)),
        ]
      )
      let answers = try session.execute(together: [running, seen, claimed])
      guard answers[0].count == 1 else { return .exhausted }
      let found = answers[2]
      if found.count == 1, let first = found.integer(0, 0), let next = found.integer(0, 1),
        let token = found.integer(0, 2), first < next
      {
        let lease = SpanLease(positions: Int(first)..<Int(next), token: token)
        let done = try tables.doneRanges(of: lease.positions, ofRun: run, in: session)
        let remaining = done.remaining(of: lease.positions.upperBound)
          .map { $0.clamped(to: lease.positions) }.filter { !$0.isEmpty }
        return .granted(lease, remaining: remaining)
      }
      let rest = try session.execute(
        "SELECT 1 FROM \(tables.span) AS s WHERE run = $1::uuid AND NOT done \(tried) LIMIT 1",
        .text(run)
      )
      return rest.count == 0 ? .exhausted : .noneFree
    }
  }

  /// Records that a span is done, and moves its chunks from the ledger to the span's row.
  ///
  /// - Throws: `BatchError` of code `leaseLost` if another process has taken over the span, if the
  ///   span is already recorded as done, or if part of it is not done because a crashed server or a
  ///   promoted standby has lost the last chunks; `damagedFile` if the ledger was changed by hand.
  package func close(_ lease: SpanLease, in session: PostgresSession) throws(BatchError) {
    try session.transaction(.bookkeeping) { () throws(BatchError) in
      // This changes a key, so it waits for the span's uncommitted chunks.
      let locked = PostgresStatement(
        sql: """
          UPDATE \(tables.span) SET token = token + 1, host = NULL
          WHERE run = $1::uuid AND first = $2 AND token = $3 AND NOT done
          """,
        values: [
          .text(run), .integer(Int64(lease.positions.lowerBound)), .integer(lease.token),
        ]
      )
      let answers = try session.execute(
        together: [locked] + tables.doneStatements(of: lease.positions, ofRun: run)
      )
      guard let answer = answers.first, answer.affectedCount == 1 else {
        throw SpanFence.lost(lease, ofRun: run)
      }
      // Chunks missing from the ledger may have been removed by hand, and must not be done again.
      _ = try tables.doneRanges(answers.dropFirst(), of: lease.positions, ofRun: run)
      let sums = RunTables.outcomes.map { "coalesce(sum(\($0)), 0) AS \($0)" }
      let closed = try session.execute(
        """
        WITH gone AS (
          DELETE FROM \(tables.ledger) WHERE run = $1::uuid AND first >= $2 AND first < $3 RETURNING *),
        counted AS (DELETE FROM \(tables.tally) WHERE run = $1::uuid AND first = $2),
        sums AS (SELECT sum(next - first) AS count, \(sums.joined(separator: ", ")) FROM gone)
        UPDATE \(tables.span) AS s SET done = true,
          \(RunTables.outcomes.map { "\($0) = sums.\($0)" }.joined(separator: ", "))
        FROM sums WHERE s.run = $1::uuid AND s.first = $2 AND sums.count = $3 - $2
        """,
        .text(run),
        .integer(Int64(lease.positions.lowerBound)),
        .integer(Int64(lease.positions.upperBound))
      )
      // In that case, nothing is recorded, and the process that claims the span next does the rest.
      guard closed.affectedCount == 1 else { throw SpanFence.lost(lease, ofRun: run) }
    }
  }
}
#endif
