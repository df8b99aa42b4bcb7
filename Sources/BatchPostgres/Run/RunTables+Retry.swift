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

  /// Reopens a finished run, and notes who did; an action is noted once, however often this is
  /// repeated because the answer to a COMMIT was lost.
  func reopen(
    _ run: String,
    retrying retried: OperatorAction,
    in session: PostgresSession
  ) throws(BatchError) -> Bool {
    let before = try attempt(of: run, in: session)
    guard try reopen(run, in: session) else { return false }
    if try attempt(of: run, in: session) > before {
      try note([retried], of: run, in: session)
    } else if try !noted(of: run, in: session).contains(retried) {
      try note([OperatorAction(.joined)], of: run, in: session)
    }
    return true
  }

  /// Reopens a finished run to retry its failures, inside the caller's transaction, which must have
  /// locked the job.
  ///
  /// An open run stays open: another host has reopened it, or this host did in a COMMIT whose
  /// answer was lost. The spans with failures are no longer done, and their other positions return
  /// to the ledger.
  ///
  /// - Returns: Whether the run is open; false, with nothing changed, if nothing has failed.
  /// - Throws: `BatchError` of code `otherRun` for a run that was set aside or removed,
  ///   `damagedFile` if the tables contradict themselves.
  package func reopen(_ run: String, in session: PostgresSession) throws(BatchError) -> Bool {
    let state = try session.text("SELECT state FROM \(self.run) WHERE run = $1::uuid", .text(run))
    switch state.flatMap(TableRun.State.init) {
    case .running: return true
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
      SET state = 'running', ended_at = NULL, control = NULL, attempt = attempt + 1, failed_attempts = $2
      WHERE run = $1::uuid
      """,
      .text(run),
      .text(attempts.recorded)
    )
    let spans = try session.execute(
      """
      SELECT first, next FROM \(span) AS s WHERE run = $1::uuid AND EXISTS (
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
      try reopen(Int(first)..<Int(next), failed: Array(positions), of: run, in: session)
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
    var first = positions.lowerBound
    for end in failed + [positions.upperBound] {
      if first < end {
        try enter(first..<end, all.clamped(to: first..<end), of: run, in: session)
      }
      first = end + 1
    }
    try session.execute(
      "INSERT INTO \(tally) (run, first, backend, entered) VALUES ($1::uuid, $2, 0, $3)",
      .text(run),
      .integer(Int64(positions.lowerBound)),
      .integer(Int64(positions.count - failed.count))
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
