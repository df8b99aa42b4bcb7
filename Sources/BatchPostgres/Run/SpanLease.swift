#if PostgreSQL
import BatchEngine
package import BatchIdentifiers

/// A part of the positions of a run that a process has, and what proves it: the token changes whenever somebody else
/// gets the span.
package struct SpanLease: Sendable, Hashable {
  package let positions: Range<Int>
  package let token: Int64

  package init(positions: Range<Int>, token: Int64) {
    self.positions = positions
    self.token = token
  }
}

/// Claims spans of a run for a process, and records that they are done.
///
/// A span is free if nobody has it, or if whoever has it was not heard of for the time of a lease. A lease only decides who
/// works on what, which is a matter of speed: that nothing is done twice is the matter of ``SpanFence`` and of
/// the ledger.
package struct SpanClaims: Sendable {
  /// What comes of a claim.
  package enum Answer: Sendable, Hashable {
    /// The span is the process's own, and some of its positions are still to do.
    case granted(SpanLease, remaining: [Range<Int>])
    /// Others are at work on all that is not done.
    case noneFree
    /// All spans are done.
    case exhausted
  }

  package let tables: RunTables
  package let run: String
  package let host: String
  /// How long a process may be silent and keep its spans.
  package let lease: Duration

  package init(_ heartbeat: HostHeartbeat, lease: Duration) {
    tables = heartbeat.tables
    run = heartbeat.run
    host = heartbeat.host
    self.lease = lease
  }

  /// Asks for a span.
  ///
  /// - Parameters:
  ///   - known: The first positions of the spans that the process thinks to be its own. It is granted none of them, whoever
  ///     has them by the server's word: it finds out by the fence, and asks again. What the server thinks to be the
  ///     process's own, and the process does not know of, it is granted: an answer was lost.
  ///   - session: The session.
  /// - Returns: The span, or why there is none.
  /// - Throws: `BatchError` of code `damagedFile` if somebody has changed the ledger; what the server says.
  package func claim(
    knowing known: some Collection<Int>,
    in session: PostgresSession
  ) throws(BatchError) -> Answer {
    // What was committed before the span was locked is to be seen by the statement after it, and only that isolation
    // has it so.
    try session.transaction(.bookkeeping) { () throws(BatchError) in
      // Whoever sets the run aside waits for this, and takes back what it has granted.
      let run = try session.execute(
        "SELECT FROM \(tables.run) WHERE run = $1::uuid AND state = 'running' FOR SHARE",
        .text(self.run)
      )
      guard run.count == 1 else { return .exhausted }
      // Whoever asks is alive, and must not lose at once what it is given.
      try session.execute(
        "UPDATE \(tables.host) SET seen_at = clock_timestamp() WHERE run = $1::uuid AND host = $2::uuid",
        .text(self.run),
        .text(host)
      )
      let found = try session.execute(
        """
        WITH free AS MATERIALIZED (
          -- A subquery and no join: of a span that was claimed since the statement began, the condition is looked at
          -- again with the span as it is now, and the rows that it was joined with as they were.
          SELECT s.first FROM \(tables.span) AS s
          WHERE s.run = $1::uuid AND NOT s.done AND s.first <> ALL ($3)
            AND (s.host IS NULL OR s.host = $2::uuid OR NOT EXISTS (
              SELECT FROM \(tables.host) AS h WHERE h.run = s.run AND h.host = s.host
                AND h.seen_at >= clock_timestamp() - $4 * interval '1 millisecond'))
          ORDER BY s.first LIMIT 1 FOR UPDATE OF s SKIP LOCKED)
        UPDATE \(tables.span) AS s SET host = $2::uuid, token = s.token + 1 FROM free
        WHERE s.run = $1::uuid AND s.first = free.first RETURNING s.first, s.next, s.token
        """,
        .text(self.run),
        .text(host),
        .array(PostgresArray(known.map { Int64($0) })),
        .integer(Int64(lease.milliseconds))
      )
      if found.count == 1, let first = found.integer(0, 0), let next = found.integer(0, 1),
        let token = found.integer(0, 2), first < next
      {
        let lease = SpanLease(positions: Int(first)..<Int(next), token: token)
        let done = try tables.doneRanges(of: lease.positions, ofRun: self.run, in: session)
        let remaining = done.remaining(of: lease.positions.upperBound)
          .map { $0.clamped(to: lease.positions) }.filter { !$0.isEmpty }
        return .granted(lease, remaining: remaining)
      }
      let rest = try session.execute(
        "SELECT 1 FROM \(tables.span) WHERE run = $1::uuid AND NOT done LIMIT 1",
        .text(self.run)
      )
      return rest.count == 0 ? .exhausted : .noneFree
    }
  }

  /// Records that all of a span is done: its chunks go from the ledger into the span's row.
  ///
  /// - Throws: `BatchError` of code `leaseLost` if another process has the span by now, if it was recorded before, or if not
  ///   all of it is done: a server that has crashed, or taken over from another one, may have lost the last chunks.
  ///   Of code `damagedFile` if somebody has changed the ledger.
  package func close(_ lease: SpanLease, in session: PostgresSession) throws(BatchError) {
    try session.transaction(.bookkeeping) { () throws(BatchError) in
      // A change of the key, which waits for the chunks of the span that are not committed.
      let locked = try session.execute(
        """
        UPDATE \(tables.span) SET token = token + 1, host = NULL
        WHERE run = $1::uuid AND first = $2 AND token = $3 AND NOT done
        """,
        .text(run),
        .integer(Int64(lease.positions.lowerBound)),
        .integer(lease.token)
      )
      guard locked.affectedCount == 1 else { throw SpanFence.lost(lease, ofRun: run) }
      // What is not there may have been removed by somebody, and is then not to be done again.
      _ = try tables.doneRanges(of: lease.positions, ofRun: run, in: session)
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
      // Nothing is recorded then, and whoever claims the span does what is left of it.
      guard closed.affectedCount == 1 else { throw SpanFence.lost(lease, ofRun: run) }
    }
  }
}
#endif
