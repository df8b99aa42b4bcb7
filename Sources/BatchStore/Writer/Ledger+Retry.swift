import BatchIdentifiers

/// Failed identifiers that are tried again, in chunks of places in this list.
package struct RetriedIdentifiers: Sendable {
  /// Their positions in the list of the run, ascending.
  package let positions: [Int]
  /// The places, cut where the positions of two neighbours are in different rows of the ledger: the
  /// outcomes of a chunk belong to one row.
  package let parts: [Range<Int>]
  /// How often each had been tried before.
  let attempts: [Int]

  /// The given ones, which ascend, or nil if one of them is in none of the rows.
  init?(_ failed: [FailedIdentifier], of done: DoneRanges) {
    positions = failed.map(\.position)
    attempts = failed.map(\.attempt)
    var parts: [Range<Int>] = []
    var start = 0
    for row in done.rows where start < positions.count {
      let end = positions[start...].firstIndex { $0 >= row.next } ?? positions.count
      if start < end {
        guard positions[start] >= row.first else { return nil }
        parts.append(start..<end)
      }
      start = end
    }
    guard start == positions.count else { return nil }
    self.parts = parts
  }
}

extension Ledger {
  /// Enters that an identifier failed once more, inside the transaction that tried.
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

  /// Removes those of a chunk that have not failed once more, and puts their outcomes in place of
  /// their failures.
  func replacingFailures(
    _ retried: RetriedIdentifiers,
    at places: Range<Int>,
    with outcomes: Outcomes,
    in connection: Connection
  ) throws(BatchError) -> Ledger {
    var removed = 0
    for place in places {
      // What failed once more has been tried more often by now.
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
