import BatchJobs
import BatchRuns
import BatchSQLite

extension PastRun {
  /// Returns nil if the run is not finished or its work has no ID.
  init?(_ stored: StoredRun) {
    guard stored.runID != nil, stored.state == .finished || stored.state == .acknowledged
    else { return nil }
    self.init(finished: stored)
  }

  /// Makes an entry even if the work has no ID.
  init(finished stored: StoredRun) {
    self.init(
      id: stored.runID ?? "",
      run: stored.run,
      total: stored.total,
      outcomes: stored.done.outcomes,
      chunks: stored.done.chunks,
      elapsedSeconds: stored.elapsedSeconds,
      endedAt: stored.endedAt ?? stored.startedAt,
      ledger: .store
    )
  }
}
