#if PostgreSQL
import BatchRuns
package import BatchIdentifiers

extension RunTables {
  package func isRetry(_ run: String, in session: PostgresSession) throws(BatchError) -> Bool {
    try attempt(of: run, in: session) > 1
  }

  private func attempt(of run: String, in session: PostgresSession) throws(BatchError) -> Int64 {
    let attempt = try session.integer(
      "SELECT attempt FROM \(self.run) WHERE run = $1::uuid",
      .text(run)
    )
    return attempt ?? 1
  }

  /// Reopens the failures of a run that is finished, or on which no process works, and notes who
  /// did; an action is noted once, however often this is repeated because the answer to a COMMIT
  /// was lost.
  ///
  /// - Returns: Whether the run is open; false if none of its identifiers has failed.
  func reopen(
    _ run: String,
    retrying retried: OperatorAction,
    within lease: Duration,
    in session: PostgresSession
  ) throws(BatchError) -> Bool {
    let isAlive = try hosts(ofRun: run, in: session).contains { $0.isAlive(within: lease) }
    if try reopen(run, whileRunning: !isAlive, in: session) {
      try note([retried], of: run, in: session)
      return true
    }
    guard try isOpen(run, in: session) else { return false }
    guard try isRetry(run, in: session) else {
      throw BatchError(
        .unfinishedRun,
        isAlive
          ? "the run is in progress, and what fails in it is retried when no process works on it"
          : "the run is unfinished, and no identifier of it has failed alone",
        at: "run \(run)",
        remedy: isAlive
          ? "wait for its end, or stop it: batch cancel" : "resume it first: batch run"
      )
    }
    if try !noted(of: run, in: session).contains(retried) {
      try note([OperatorAction(.joined)], of: run, in: session)
    }
    return true
  }

  private func isOpen(_ run: String, in session: PostgresSession) throws(BatchError) -> Bool {
    try session.text(
      "SELECT state = 'running' FROM \(self.run) WHERE run = $1::uuid",
      .text(run)
    ) == "t"
  }

  /// Reopens the failures of a run, inside the caller's transaction, which must have locked the job.
  ///
  /// The spans with failures are no longer done, and their other positions return to the ledger.
  /// The trial of a canary is repeated if it was not over.
  ///
  /// - Parameters:
  ///   - run: The run.
  ///   - reopens: Whether an unfinished run is reopened too. Nobody may work on it.
  ///   - session: A session in the transaction.
  /// - Returns: Whether identifiers were reopened; false, with nothing changed, if none has failed or
  ///   the run is left to others.
  /// - Throws: `BatchError` of code `otherRun` for a run that was set aside or removed,
  ///   `damagedFile` if the tables contradict themselves.
  package func reopen(
    _ run: String,
    whileRunning reopens: Bool,
    in session: PostgresSession
  ) throws(BatchError) -> Bool {
    let state = try session.text("SELECT state FROM \(self.run) WHERE run = $1::uuid", .text(run))
      .flatMap(TableRun.State.init)
    switch state {
    case .running: if !reopens { return false }
    case .setAside: throw isSetAside(run, in: session)
    case nil:
      throw BatchError(
        .otherRun,
        "run \(run) is no longer in the database",
        at: session.address.description,
        remedy: "begin a run: batch run"
      )
    case .finished, .acknowledged: break
    }
    let failed = try failed(ofRun: run, in: session).map(\.position)
    guard !failed.isEmpty, let ended = try snapshot(ofRun: run, in: session) else { return false }
    var attempts = ended.failedAttempts
    attempts.note(
      FailedAttempt(endedAt: ended.endedAt, failed: failed.count, reasons: ended.reasons)
    )
    try session.execute(
      """
      UPDATE \(self.run)
      SET state = 'running', ended_at = NULL, control = NULL, attempt = attempt + 1, failed_attempts = $2,
        canary_ended_at = NULL, canary_over = canary_over OR state <> 'running'
      WHERE run = $1::uuid
      """,
      .text(run),
      .text(attempts.recorded)
    )
    let spans = try session.execute(
      """
      SELECT first, next, done FROM \(span) AS s WHERE run = $1::uuid AND EXISTS (
        SELECT FROM \(failure) AS f WHERE f.run = s.run AND f.position >= s.first AND f.position < s.next)
      ORDER BY first
      """,
      .text(run)
    )
    var rest = failed[...]
    for row in 0..<spans.count {
      guard let first = spans.integer(row, 0), let next = spans.integer(row, 1), first < next else {
        throw Self.damaged("the spans of run \(run) contradict themselves")
      }
      let positions = rest.prefix { $0 < Int(next) }
      rest = rest.dropFirst(positions.count)
      let span = Int(first)..<Int(next)
      let done =
        spans.text(row, 2) == "t"
        ? [span] : try doneRanges(of: span, ofRun: run, in: session).rows.map { $0.first..<$0.next }
      try reopen(span, done: RangeSet(done), failed: Array(positions), of: run, in: session)
    }
    guard rest.isEmpty else { throw Self.damaged("run \(run) has failures in no span") }
    try session.execute("DELETE FROM \(failure) WHERE run = $1::uuid", .text(run))
    return true
  }

  /// The error for a retry of a run that another run has replaced.
  package func isSetAside(_ run: String, in session: PostgresSession) -> BatchError {
    BatchError(
      .otherRun,
      "run \(run) was set aside by --fresh and cannot be retried",
      at: session.address.description,
      remedy: "begin a run: batch run"
    )
  }

  private func reopen(
    _ positions: Range<Int>,
    done: RangeSet<Int>,
    failed: [Int],
    of run: String,
    in session: PostgresSession
  ) throws(BatchError) {
    let bounds: [PostgresValue] = [
      .text(run), .integer(Int64(positions.lowerBound)), .integer(Int64(positions.upperBound)),
    ]
    let gone = try session.execute(
      """
      DELETE FROM \(passedOver) WHERE run = $1::uuid AND first >= $2 AND first < $3 RETURNING first, bytes
      """,
      bounds
    )
    var all = PassedOver()
    for row in 0..<gone.count {
      guard let first = gone.integer(row, 0), let bytes = gone.blob(row, 1) else { continue }
      do throws(ByteReader.Damage) {
        try all.unpack(bytes.span, from: Int(first))
      } catch {
        throw Self.damaged("the identifiers that run \(run) passed over cannot be read")
      }
    }
    var kept = done
    for position in failed { kept.remove(contentsOf: position..<(position + 1)) }
    try session.execute(
      "DELETE FROM \(ledger) WHERE run = $1::uuid AND first >= $2 AND first < $3",
      bounds
    )
    for range in kept.ranges {
      try enter(range, all.clamped(to: range), of: run, in: session)
    }
    try session.execute(
      "DELETE FROM \(tally) WHERE run = $1::uuid AND first = $2",
      Array(bounds.prefix(2))
    )
    try session.execute(
      "INSERT INTO \(tally) (run, first, backend, entered) VALUES ($1::uuid, $2, 0, $3)",
      .text(run),
      .integer(Int64(positions.lowerBound)),
      .integer(Int64(kept.ranges.reduce(0) { $0 + $1.count }))
    )
    let reset = Self.outcomes.map { "\($0) = 0" }.joined(separator: ", ")
    try session.execute(
      """
      UPDATE \(span) SET done = false, host = NULL, token = token + 1, \(reset)
      WHERE run = $1::uuid AND first = $2 AND next = $3
      """,
      bounds
    )
  }

  private func enter(
    _ positions: Range<Int>,
    _ passedOver: PassedOver,
    of run: String,
    in session: PostgresSession
  ) throws(BatchError) {
    let counts = passedOver.counts
    try session.execute(
      """
      INSERT INTO \(ledger) (run, first, next, chunks, succeeded, unchanged, vanished, no_longer_matching, failed)
      VALUES ($1::uuid, $2, $3, 1, $4, $5, $6, $7, 0)
      """,
      .text(run),
      .integer(Int64(positions.lowerBound)),
      .integer(Int64(positions.upperBound)),
      .integer(Int64(positions.count - counts.total)),
      .integer(Int64(counts.unchanged)),
      .integer(Int64(counts.vanished)),
      .integer(Int64(counts.noLongerMatching))
    )
    guard !passedOver.isEmpty else { return }
    try session.execute(
      "INSERT INTO \(self.passedOver) (run, first, bytes) VALUES ($1::uuid, $2, $3)",
      .text(run),
      .integer(Int64(positions.lowerBound)),
      .blob(passedOver.packed(from: positions.lowerBound))
    )
  }
}

extension PassedOver {
  fileprivate func clamped(to positions: Range<Int>) -> PassedOver {
    let range = RangeSet(positions)
    var part = PassedOver()
    part.unchanged = unchanged.intersection(range)
    part.vanished = vanished.intersection(range)
    part.noLongerMatching = noLongerMatching.intersection(range)
    return part
  }
}
#endif
