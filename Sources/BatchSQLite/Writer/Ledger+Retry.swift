import BatchRuns
import BatchIdentifiers

extension Ledger {
  /// Enters another failure of an identifier, inside the transaction of the retry.
  func enterAgain(
    _ failure: (position: Int, error: BatchError),
    of retried: RetriedIdentifiers,
    in connection: Connection
  ) throws(BatchError) {
    try connection.execute(
      """
      UPDATE _batch_failure SET code = ?, message = ?, attempt = attempt + 1,
        failed_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now')
      WHERE run = ? AND position = ?
      """,
      .text(failure.error.code.rawValue),
      .text(FailedIdentifier.message(of: failure.error)),
      .text(run),
      .integer(Int64(retried.positions[failure.position]))
    )
  }

  /// Removes the identifiers of a chunk that succeeded this time, and replaces their failures by
  /// their outcomes.
  func replacingFailures(
    _ retried: RetriedIdentifiers,
    at places: Range<Int>,
    with outcomes: Outcomes,
    in connection: Connection
  ) throws(BatchError) -> Ledger {
    var removed = 0
    for place in places {
      // Identifiers that failed again have a higher attempt number by now.
      try connection.execute(
        "DELETE FROM _batch_failure WHERE run = ? AND position = ? AND attempt = ?",
        .text(run),
        .integer(Int64(retried.positions[place])),
        .integer(Int64(retried.attempts[place]))
      )
      removed += connection.changes
    }
    var copy = self
    let first = retried.positions[places.lowerBound]
    guard removed == places.count - outcomes.failed,
      let row = copy.done.replaceFailures(places.count, at: first, with: outcomes)
    else { throw Self.damaged(run) }
    try write(row, in: connection)
    return copy
  }
}
