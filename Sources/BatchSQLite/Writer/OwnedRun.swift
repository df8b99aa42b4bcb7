import BatchRuns
import BatchIdentifiers

/// The run that a lane works on: its ledger, and whether the lane still owns it.
struct OwnedRun {
  /// The ledger after the lane's last commit; nil if the lane works on no run of the store.
  private(set) var ledger: Ledger?
  private let owner = RunOwner()
  private let watch: ForeignCommitWatch
  /// How long processes had worked on the run when the lane took it, and when that was.
  private var elapsedBefore = 0.0
  private var takenAt = ContinuousClock.now
  private var timedAt: ContinuousClock.Instant?
  /// The look at which the stored ledger was this one.
  private var verifiedAt = 0

  init(watching watch: ForeignCommitWatch) {
    self.watch = watch
  }

  /// Enters a new run in the store, inside a transaction.
  mutating func enter(_ run: RunDescription, in connection: Connection) throws(BatchError) {
    try StoredRun.enter(run, by: owner, in: connection)
    elapsedBefore = run.selectionSeconds
    try take(Ledger(of: run.identifier), in: connection)
  }

  /// Claims a run if the store knows it, inside a transaction.
  mutating func claim(_ run: String, in connection: Connection) throws(BatchError) {
    ledger = try Ledger(of: run, in: connection)
    guard let ledger else { return }
    try StoredRun.createTable(in: connection)
    elapsedBefore = try StoredRun.claim(run, by: owner, in: connection)
    try take(ledger, in: connection)
  }

  private mutating func take(_ ledger: Ledger, in connection: Connection) throws(BatchError) {
    self.ledger = ledger
    (takenAt, timedAt) = (.now, nil)
    _ = try watch.hasSeenCommit(since: verifiedAt, in: connection)
    verifiedAt = watch.lookCount
  }

  /// How long processes have worked on the run.
  var elapsedSeconds: Double { elapsedBefore + takenAt.duration(to: .now) / .seconds(1) }

  /// Records how long processes have worked on the run, inside a transaction: at most once a second,
  /// and sooner in the first seconds, so that many short processes are not counted as no time.
  ///
  /// The file lags behind the ledger after a kill; this does not.
  mutating func recordTime(in connection: Connection) throws(BatchError) {
    guard let ledger else { return }
    let now = ContinuousClock.now
    let soon = max(.milliseconds(50), takenAt.duration(to: now) / 4)
    if let timedAt, timedAt.duration(to: now) < min(.seconds(1), soon) { return }
    timedAt = now
    try StoredRun.note(elapsedSeconds, ofRun: ledger.run, in: connection)
  }

  /// Makes the coming chunks retry some failed identifiers.
  mutating func retry(_ retried: RetriedIdentifiers) { ledger?.retried = retried }

  mutating func commit(_ entered: Ledger?) { ledger = entered }

  /// Releases the run, so that this process no longer counts as working on it.
  mutating func release(in connection: Connection) throws(BatchError) {
    guard let ledger else { return }
    try connection.transaction(.immediate) { () throws(BatchError) in
      try StoredRun.release(ledger.run, by: owner, in: connection)
    }
    self.ledger = nil
  }

  /// Verifies, in a transaction, that the lane still owns the run and its ledger is unchanged.
  ///
  /// Detects another process working on the same run, and a restored backup. If no other connection
  /// has committed, there is nothing to check.
  mutating func verify(in connection: Connection) throws(BatchError) {
    try connection.refuseIfMoved()
    guard let ledger, try watch.hasSeenCommit(since: verifiedAt, in: connection) else { return }
    let stored = try Ledger(of: ledger.run, in: connection)
    if let stored, try !StoredRun.isOwned(ledger.run, by: owner, in: connection),
      stored.done.count >= ledger.done.count
    {
      throw BatchError(
        .alreadyRunning,
        "another process has taken over run \(ledger.run)",
        at: connection.path,
        remedy: "let it continue; this process has lost nothing and done nothing twice"
      )
    }
    guard stored?.done == ledger.done else {
      throw BatchError(
        .storeChanged,
        "the database is no longer as run \(ledger.run) left it: a backup was restored, or its tables"
          + " were changed",
        at: connection.path,
        advice: stored == nil
          ? "it no longer knows the run: restore the right one, or \(.beginAnew)"
          : "run again to resume from what the database has"
      )
    }
    verifiedAt = watch.lookCount
  }
}
