import BatchIdentifiers

/// A finished run whose caller gave its work an ID.
package struct PastRun: Codable, Sendable {
  package var id: String
  package var run: String
  package var total: Int
  package var outcomes: Outcomes
  package var chunks: Int
  /// Over all resumptions.
  package var elapsedSeconds: Double
  /// In ISO 8601 and UTC.
  package var endedAt: String
  package var ledger: LedgerPlace?

  /// Beyond this number, the runs that ended first are forgotten.
  package static let limit = 50_000

  package init(
    id: String,
    run: String,
    total: Int,
    outcomes: Outcomes,
    chunks: Int,
    elapsedSeconds: Double,
    endedAt: String,
    ledger: LedgerPlace?
  ) {
    self.id = id
    self.run = run
    self.total = total
    self.outcomes = outcomes
    self.chunks = chunks
    self.elapsedSeconds = elapsedSeconds
    self.endedAt = endedAt
    self.ledger = ledger
  }
}

extension PastRun {
  /// Makes the entry for a checkpoint's own run; nil if it is not finished or its work has no ID.
  package init?(_ metadata: RunMetadata, _ progress: RunProgress, total: Int) {
    guard let id = metadata.runID, progress.state.isFinished else { return nil }
    self.init(
      id: id,
      run: metadata.run,
      total: total,
      outcomes: progress.done.outcomes,
      chunks: progress.done.chunks,
      elapsedSeconds: progress.elapsedSeconds,
      endedAt: progress.endedAt ?? metadata.startedAt,
      ledger: metadata.ledger
    )
  }
}

extension Checkpoint {
  /// The finished runs with an ID that this file remembers, including its own.
  package var finishedRuns: [PastRun] {
    let own = PastRun(metadata, progress, total: knownTotal(after: progress))
    return (metadata.pastRuns ?? []) + (own.map { [$0] } ?? [])
  }
}
