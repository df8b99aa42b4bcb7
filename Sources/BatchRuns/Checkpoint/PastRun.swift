import BatchIdentifiers

/// A finished run whose caller gave its work an ID.
package struct PastRun: Codable, Sendable {
  /// The ID of the work.
  package var id: String
  /// The run's UUID.
  package var run: String
  /// The number of selected identifiers.
  package var total: Int
  /// Their outcomes.
  package var outcomes: Outcomes
  /// The number of committed chunks.
  package var chunks: Int
  /// How long the run took.
  package var elapsedSeconds: Double
  /// When it ended, as an ISO 8601 timestamp in UTC.
  package var endedAt: String
  /// Where done chunks were recorded.
  package var ledger: LedgerPlace?

  /// The maximum number of remembered runs; those that ended first go first.
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
  /// A checkpoint's own run; nil if it is not finished or its work has no ID.
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
  /// The runs with an ID that this file remembers, including its own if finished.
  package var finishedRuns: [PastRun] {
    let own = PastRun(metadata, progress, total: list.count)
    return (metadata.pastRuns ?? []) + (own.map { [$0] } ?? [])
  }
}
