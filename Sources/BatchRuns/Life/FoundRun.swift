package import BatchIdentifiers

/// The state of a run that was found.
package enum FoundRunState: Sendable {
  /// Some identifiers are not done.
  case unfinished
  /// All are done, but whoever asked for the run may not know.
  case finished
  /// All are done, and whoever asked for the run knows.
  case acknowledged
}

/// A run of a job as its record has it, before anything is decided.
package struct FoundRun<Record> {
  /// The ID of its work; nil if it has none.
  package let runID: String?
  package let state: FoundRunState
  /// Whether its failed identifiers are being, or were, retried.
  package let isRetry: Bool
  /// Where it is recorded, for errors.
  package let place: String?
  /// Why nothing can be done with it.
  package let obstacle: BatchError?
  /// What its record knows.
  package let record: Record

  package init(
    _ record: Record,
    _ state: FoundRunState,
    runID: String?,
    isRetry: Bool = false,
    at place: String?,
    obstacle: BatchError? = nil
  ) {
    self.record = record
    self.state = state
    self.runID = runID
    self.isRetry = isRetry
    self.place = place
    self.obstacle = obstacle
  }
}

/// What the records of a job have of its runs.
package struct FoundRuns<Record> {
  /// The runs, without those that were set aside; the one that counts most is the last.
  package var runs: [FoundRun<Record>]
  /// Why not even a fresh run may begin: a process is working on another.
  package var alive: BatchError?
  /// Why no run may begin that sets nothing aside.
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

/// What is asked for.
package struct RunRequest: Sendable {
  /// The ID of the work; nil if it has none.
  package var runID: String?
  /// Whether to set an unfinished run aside for a new one.
  package var fresh: Bool
  /// Whether only to take part in a run that somebody else has begun.
  package var joinOnly: Bool
  /// Whether to retry what has failed in the last run instead of beginning one.
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

  /// Whether work with an ID, or without one, is the requested work.
  package func asks(for id: String?) -> Bool {
    guard let runID else { return true }
    return id?.hasSameBytes(as: runID) == true
  }
}

extension RunProgress {
  /// The state of the run that a checkpoint shows, beside the ledger of its store.
  ///
  /// - Parameters:
  ///   - ledger: What the store knows to be done; nil if the file alone knows.
  ///   - total: The number of identifiers.
  ///   - interruptsRetry: Whether a process was killed when it was about to retry its failures.
  /// - Returns: The state; `.finished` if nobody may know of the end.
  package func state(
    beside ledger: DoneRanges?,
    of total: Int,
    interruptsRetry: Bool = false
  ) -> FoundRunState {
    guard isFinished(beside: ledger, of: total) else { return .unfinished }
    return awaitsAcknowledgement || interruptsRetry ? .finished : .acknowledged
  }

  /// Whether all is done: the file says so, and the store does not contradict it, as it does if an
  /// earlier backup was restored.
  package func isFinished(beside ledger: DoneRanges?, of total: Int) -> Bool {
    guard state.isFinished, let ledger else { return state.isFinished }
    // Nobody was notified of a retry, and a backup from before it has the failures that it mended.
    if awaitsAcknowledgement, ledger.outcomes.failed != done.outcomes.failed { return false }
    return ledger.count >= total
  }
}
