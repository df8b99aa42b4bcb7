package import BatchIdentifiers

/// The state of a run that the record of a job contains.
package enum FoundRunState: Sendable {
  /// Some identifiers are not done.
  case unfinished
  /// All are done, but the caller may not know it.
  case finished
  /// All are done, and the caller knows it.
  case acknowledged
}

/// A run as its record describes it, before any decision.
package struct FoundRun<Record> {
  package let runID: String?
  package let state: FoundRunState
  /// Whether the last execution was a retry of failed identifiers.
  package let isRetry: Bool
  /// Where the run is recorded, for error messages.
  package let place: String?
  /// The command that continues the run; nil if it is not known.
  package let command: String?
  /// Why the run can neither be resumed nor concluded.
  package let obstacle: BatchError?
  package let record: Record

  package init(
    _ record: Record,
    _ state: FoundRunState,
    runID: String?,
    isRetry: Bool = false,
    at place: String?,
    continuedBy command: String? = nil,
    obstacle: BatchError? = nil
  ) {
    self.record = record
    self.state = state
    self.runID = runID
    self.isRetry = isRetry
    self.place = place
    self.command = command
    self.obstacle = obstacle
  }
}

package struct FoundRuns<Record> {
  /// The runs that were not set aside; the last one takes precedence.
  package var runs: [FoundRun<Record>]
  /// Why not even a fresh run may begin: another process is working on a run.
  package var alive: BatchError?
  /// Why no run may begin unless it sets others aside.
  package var obstacle: BatchError?

  package init(
    _ runs: [FoundRun<Record>] = [],
    alive: BatchError? = nil,
    obstacle: BatchError? = nil
  ) {
    self.runs = runs
    self.alive = alive
    self.obstacle = obstacle
  }
}

extension FoundRun: Sendable where Record: Sendable {}
extension FoundRuns: Sendable where Record: Sendable {}

package struct RunRequest: Sendable {
  package var runID: String?
  /// Whether to set an unfinished run aside and begin a new one.
  package var fresh: Bool
  /// Whether only to take part in a run that another process has begun.
  package var joinOnly: Bool
  /// Whether to retry the failures of the last run instead of beginning one.
  package var retriesFailures: Bool

  package init(
    runID: String? = nil,
    fresh: Bool = false,
    joinOnly: Bool = false,
    retriesFailures: Bool = false
  ) {
    self.runID = runID
    self.fresh = fresh
    self.joinOnly = joinOnly
    self.retriesFailures = retriesFailures
  }

  /// Whether the request is for the work with this ID, or, for nil, for work without an ID.
  package func asks(for id: String?) -> Bool {
    guard let runID else { return true }
    return id?.hasSameBytes(as: runID) == true
  }
}

extension RunProgress {
  /// The state of a run according to its checkpoint and to its store's ledger, if that has one.
  package func state(
    beside ledger: DoneRanges?,
    of total: Int,
    interruptsRetry: Bool = false
  ) -> FoundRunState {
    guard isFinished(beside: ledger, of: total) else { return .unfinished }
    return awaitsAcknowledgement || interruptsRetry ? .finished : .acknowledged
  }

  /// Whether the file says that all is done and the store does not contradict it, which it does if
  /// an earlier backup was restored.
  package func isFinished(beside ledger: DoneRanges?, of total: Int) -> Bool {
    guard state.isFinished, let ledger else { return state.isFinished }
    // The end of the retry was not reported yet, and a backup from before it has the failures that
    // the retry corrected.
    if awaitsAcknowledgement, ledger.outcomes.failed != done.outcomes.failed { return false }
    return ledger.count >= total
  }
}
