import BatchEngine
import BatchStore

extension PastRun {
  /// What the store says of a run; nil if that is not finished or its work has no identifier.
  init?(_ stored: StoredRun) {
    guard stored.runID != nil, stored.standing == .finished || stored.standing == .acknowledged
    else { return nil }
    self.init(finished: stored)
  }

  /// What the store says of a finished run, whose work may have no identifier.
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
