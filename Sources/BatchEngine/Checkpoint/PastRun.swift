import BatchIdentifiers

/// What is remembered of a finished run whose work had an identifier of the caller's.
package struct PastRun: Codable, Sendable {
  /// The identifier of the work.
  package var id: String
  /// The run's UUID.
  package var run: String
  /// How many identifiers were selected.
  package var total: Int
  /// What became of them.
  package var outcomes: Outcomes
  /// How many chunks were committed.
  package var chunks: Int
  /// How long the run took.
  package var elapsedSeconds: Double
  /// When it ended, as an ISO 8601 timestamp in UTC.
  package var endedAt: String
  /// Where done chunks were recorded.
  package var ledger: LedgerPlace?

  /// The most that a checkpoint remembers; those that ended first are forgotten first.
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
  /// What a checkpoint says of its own run; nil if that is not finished or its work has no identifier.
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
  /// The runs with an identifier that this file remembers, its own included if that is finished.
  package var finishedRuns: [PastRun] {
    let own = PastRun(metadata, progress, total: list.count)
    return (metadata.pastRuns ?? []) + (own.map { [$0] } ?? [])
  }
}
