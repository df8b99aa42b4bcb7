#if PostgreSQL
import BatchJobs
package import BatchRuns
package import BatchIdentifiers

extension RunTables {
  /// The completed ranges of an unfinished span, according to the ledger; the caller's transaction
  /// must have locked the span.
  ///
  /// - Throws: `BatchError` of code `damagedFile` if the ledger was changed by hand. A chunk
  ///   missing from it would be done again.
  func doneRanges(
    of span: Range<Int>,
    ofRun run: String,
    in session: PostgresSession
  ) throws(BatchError) -> DoneRanges {
    try doneRanges(
      session.execute(together: doneStatements(of: span, ofRun: run))[...],
      of: span,
      ofRun: run
    )
  }

  /// The statements that read which positions of a span are done, and how many were counted.
  func doneStatements(of span: Range<Int>, ofRun run: String) -> [PostgresStatement] {
    let (first, next) = (Int64(span.lowerBound), Int64(span.upperBound))
    return [
      PostgresStatement(
        sql: """
          SELECT first, next, chunks, succeeded, unchanged, vanished, no_longer_matching, failed FROM \(ledger)
          WHERE run = $1::uuid AND first >= $2 AND first < $3 ORDER BY first
          """,
        values: [.text(run), .integer(first), .integer(next)]
      ),
      PostgresStatement(
        // The row of backend 0 exists from the beginning of the run.
        sql: """
          SELECT CASE WHEN bool_or(backend = 0) THEN sum(entered) END FROM \(tally) WHERE run = $1::uuid AND first = $2
          """,
        values: [.text(run), .integer(first)]
      ),
    ]
  }

  /// The completed ranges of a span, by the answers to ``doneStatements(of:ofRun:)``; see
  /// ``doneRanges(of:ofRun:in:)``.
  func doneRanges(
    _ answers: ArraySlice<PostgresResult>,
    of span: Range<Int>,
    ofRun run: String
  ) throws(BatchError) -> DoneRanges {
    guard let ledger = answers.first, let counts = answers.last, answers.count == 2 else {
      preconditionFailure("a statement without an answer")
    }
    let done = try Self.doneRanges(ledger, ofRun: run)
    try Self.requireCounted(
      done: Int64(done.count),
      entered: counts.integer(0, 0),
      of: span,
      ofRun: run
    )
    return done
  }

  /// Refuses a ledger that has more or fewer positions of a span than were counted; `entered` is
  /// nil if there is no count.
  static func requireCounted(
    done: Int64,
    entered: Int64?,
    of span: Range<Int>,
    ofRun run: String
  ) throws(BatchError) {
    guard let entered else {
      throw damaged("\(place(of: span, run)) have no count in _batch_tally")
    }
    guard entered == done else {
      throw damaged(
        "\(place(of: span, run)): _batch_ledger has \(done.grouped) of them, but _batch_tally \(entered.grouped)"
      )
    }
  }

  private static func doneRanges(
    _ rows: PostgresResult,
    ofRun run: String
  ) throws(BatchError) -> DoneRanges {
    var done: [DoneRanges.Row] = []
    for row in 0..<rows.count {
      let (first, next) = (Int(rows.integer(row, 0) ?? 0), Int(rows.integer(row, 1) ?? 0))
      guard first >= 0, first < next, next <= IdentifierList.maximumCount else {
        throw damaged("_batch_ledger contradicts itself in run \(run)")
      }
      let chunk = DoneRanges.Row(
        first..<next,
        outcomes: rows.outcomes(row, from: 3),
        chunks: Int(rows.integer(row, 2) ?? 0)
      )
      // Adjacent ranges are merged to keep the list short.
      if let last = done.last, last.next == first {
        done[done.count - 1].next = next
        done[done.count - 1].outcomes += chunk.outcomes
        done[done.count - 1].chunks += chunk.chunks
      } else {
        done.append(chunk)
      }
    }
    guard let ranges = DoneRanges(done) else {
      throw damaged("_batch_ledger contradicts itself in run \(run)")
    }
    return ranges
  }

  package func done(
    ofRun run: String,
    in session: PostgresSession
  ) throws(BatchError) -> DoneRanges {
    let rows = try session.execute(
      """
      SELECT first, next, chunks, succeeded, unchanged, vanished, no_longer_matching, failed
      FROM \(span) WHERE run = $1::uuid AND done
      UNION ALL
      SELECT first, next, chunks, succeeded, unchanged, vanished, no_longer_matching, failed
      FROM \(ledger) WHERE run = $1::uuid ORDER BY first
      """,
      .text(run)
    )
    return try Self.doneRanges(rows, ofRun: run)
  }

  func failureCount(ofRun run: String, in session: PostgresSession) throws(BatchError) -> Int {
    Int(
      try session.integer("SELECT count(*) FROM \(failure) WHERE run = $1::uuid", .text(run)) ?? 0
    )
  }

  /// Why identifiers of a run failed, the most frequent reasons first.
  func failureCounts(
    ofRun run: String,
    atMost limit: Int,
    in session: PostgresSession
  ) throws(BatchError) -> [FailureCount] {
    var counter = FailureCounter()
    try session.forEachRow(
      "SELECT min(position), code, message, count(*) FROM \(failure) WHERE run = $1::uuid"
        + " GROUP BY code, message ORDER BY 1",
      [.text(run)]
    ) { row throws(BatchError) in
      let failed = FailedIdentifier(
        position: row.text(0).flatMap { Int($0) } ?? 0,
        code: row.text(1) ?? "",
        message: row.text(2) ?? "",
        attempt: 1,
        failedAt: ""
      )
      counter.add(failed, count: row.text(3).flatMap { Int($0) } ?? 1)
    }
    return try counter.counts(atMost: limit) { failed throws(BatchError) in
      try span(of: failed.position, ofRun: run, in: session).key(at: failed.position)
    }
  }

  /// A span of a run with its identifiers.
  private struct ListedSpan {
    let positions: Range<Int>
    let list: IdentifierList

    func key(at position: Int) throws(BatchError) -> String {
      try list.key(at: position - positions.lowerBound).description
    }
  }

  private func span(
    of position: Int,
    ofRun run: String,
    in session: PostgresSession
  ) throws(BatchError) -> ListedSpan {
    let span = try session.execute(
      "SELECT first, next FROM \(span) WHERE run = $1::uuid AND first <= $2 ORDER BY first DESC LIMIT 1",
      .text(run),
      .integer(Int64(position))
    )
    guard let first = span.integer(0, 0), let next = span.integer(0, 1), position < next else {
      throw Self.damaged("run \(run) has failures in no span")
    }
    let positions = Int(first)..<Int(next)
    return ListedSpan(
      positions: positions,
      list: try list(of: positions, ofRun: run, in: session)
    )
  }

  /// The first failures of a run, for its report.
  func reportedFailures(
    ofRun run: String,
    in session: PostgresSession
  ) throws(BatchError) -> [RunReport.Failure] {
    var last: ListedSpan?
    var failures: [RunReport.Failure] = []
    for failed in try failed(ofRun: run, atMost: RunReport.failureLimit, in: session) {
      var span = last
      if span?.positions.contains(failed.position) != true {
        span = try self.span(of: failed.position, ofRun: run, in: session)
      }
      guard let span else { continue }
      failures.append(RunReport.Failure(failed, try span.key(at: failed.position)))
      last = span
    }
    return failures
  }

  /// The outcome of each identifier of a run, in one snapshot.
  package func rowOutcomes(
    ofRun run: String,
    in session: PostgresSession
  ) throws(BatchError) -> RowOutcomes {
    try session.transaction(TransactionOptions(.repeatableRead, isReadOnly: true)) {
      () throws(BatchError) in
      var passedOver = RowOutcomes.PassedOverPositions()
      try session.forEachRow(
        "SELECT first, bytes FROM \(self.passedOver) WHERE run = $1::uuid ORDER BY first",
        [.text(run)]
      ) { row throws(BatchError) in
        guard let first = row.text(0).flatMap({ Int($0) }), let bytes = row.blob(1) else { return }
        var chunk = PassedOver()
        do throws(ByteReader.Damage) {
          try chunk.unpack(bytes.span, from: first)
        } catch {
          throw Self.damaged("the identifiers that run \(run) passed over cannot be read")
        }
        passedOver.formUnion(chunk)
      }
      return RowOutcomes(
        done: try done(ofRun: run, in: session),
        passedOver: passedOver,
        failed: try failed(ofRun: run, in: session)
      )
    }
  }

  /// The identifiers of a run that failed, ascending.
  package func failed(
    ofRun run: String,
    atMost limit: Int = .max,
    in session: PostgresSession
  ) throws(BatchError) -> [FailedIdentifier] {
    let rows = try session.execute(
      """
      SELECT position, code, message, attempt,
        to_char(failed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
      FROM \(failure) WHERE run = $1::uuid ORDER BY position LIMIT \(limit)
      """,
      .text(run)
    )
    return (0..<rows.count).map { row in
      FailedIdentifier(
        position: Int(rows.integer(row, 0) ?? 0),
        code: rows.text(row, 1) ?? "",
        message: rows.text(row, 2) ?? "",
        attempt: Int(rows.integer(row, 3) ?? 1),
        failedAt: rows.text(row, 4) ?? ""
      )
    }
  }
}
#endif
