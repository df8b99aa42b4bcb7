package import BatchIdentifiers

/// The state of a lane's log checkpoints.
///
/// Another connection moves most pages to the database in a pass beside the lane, which keeps
/// writing. The lane then moves the few pages written meanwhile, after which the log restarts.
struct LogCheckpoints {
  /// The number of frames above which the log is checkpointed.
  fileprivate let frames: Int
  /// Makes the passes.
  fileprivate let checkpointer: StoreConnection
  /// The frames in the log at the lane's last checkpoint.
  fileprivate var doneFrames = 0
  /// The current pass.
  fileprivate(set) var pass: Task<Void, Never>?
  /// Whether there was a pass since the lane's last checkpoint.
  fileprivate var hasPassed = false
  /// Why the log of a committed chunk could not be checkpointed; that chunk is done nevertheless.
  fileprivate var failure: BatchError?

  init(past frames: Int, passes checkpointer: StoreConnection) {
    self.frames = frames
    self.checkpointer = checkpointer
  }

  /// When a commit last tried to restart the log.
  private var triedAt: ContinuousClock.Instant?

  /// Whether a commit may try again to restart the log, which makes it longer each time.
  fileprivate mutating func mayCommit(at now: ContinuousClock.Instant) -> Bool {
    if let triedAt, triedAt.duration(to: now) < .seconds(10) { return false }
    triedAt = now
    return true
  }

  /// Waits for the current pass, and closes its connection.
  func close() async {
    await pass?.value
    await checkpointer.close()
  }

  /// Throws a failure since the last call.
  mutating func throwFailure() throws(BatchError) {
    guard let failure else { return }
    self.failure = nil
    throw failure
  }
}

extension Connection {
  /// Whether the database has Litestream's table.
  package func isReplicatedByLitestream() throws(BatchError) -> Bool {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_litestream_seq'"
    return try value(sql) != nil
  }
}

extension WriterLane {
  /// Starts a pass when the log has grown enough since the last one, and finishes its work.
  ///
  /// With readers in it, the log keeps growing after a checkpoint, and a checkpoint for each commit
  /// would be wasteful.
  func checkpointIfLong() {
    let frames = connection.logFrames
    if frames < checkpoints.doneFrames { checkpoints.doneFrames = 0 }
    // Others checkpoint in their commits when the log has SQLite's 1,000 pages, and wait for it.
    let most =
      courtesy.othersWrite(at: .now) ? min(checkpoints.frames, 500) : checkpoints.frames
    let new = frames - checkpoints.doneFrames
    guard checkpoints.pass == nil, new >= most else { return }
    guard checkpoints.hasPassed else { return startPass() }
    checkpoints.hasPassed = false
    do {
      // What others have written meanwhile is little, but would keep the log from restarting; so do
      // readers, if it has grown since the last checkpoint.
      let wentOn = checkpoints.doneFrames > 0
      var isComplete: Bool
      if leavesLogToLitestream {
        isComplete = try connection.copyLog()
      } else {
        isComplete = try connection.checkpoint()
        if !isComplete || wentOn { isComplete = try connection.restartLog() }
      }
      checkpoints.doneFrames = isComplete ? frames : frames - most * 3 / 4
    } catch {
      checkpoints.failure = error
    }
  }

  private func startPass() {
    checkpoints.hasPassed = true
    let checkpointer = checkpoints.checkpointer
    let synchronous = configuration.synchronous
    checkpoints.pass = Task {
      do throws(BatchError) {
        try await checkpointer.perform { connection throws(BatchError) in
          try connection.setSynchronous(synchronous)
          try connection.checkpoint()
          // The lane's own checkpoint syncs the database, and should find little to sync.
          if synchronous != .off { try connection.syncDatabase() }
        }
      } catch {
        checkpoints.failure = error
      }
      checkpoints.pass = nil
    }
  }

  /// Waits for a pass, and finishes it, before the log is twice its intended length, if the disk is
  /// slower than the lane, or chunks change many pages.
  func waitForCheckpointIfTooLong() async {
    guard let pass = checkpoints.pass,
      connection.logFrames - checkpoints.doneFrames >= checkpoints.frames * 3 / 2
    else { return }
    await pass.value
    checkpointIfLong()
  }

  /// Empties the write-ahead log, unless another connection reads from it or writes.
  ///
  /// - Returns: Its remaining length in bytes.
  package func emptyLog() async throws(BatchError) -> Int {
    await checkpoints.pass?.value
    guard leavesLogToLitestream else {
      // Others must not wait long for the write lock.
      _ = try connection.emptyLog(patience: .milliseconds(20))
      return logBytes
    }
    if try connection.copyLog(), checkpoints.mayCommit(at: .now) {
      // Without Litestream, whose table may be a leftover, a commit restarts the log; with it, the
      // log has one page more. If the database is locked, this happens later.
      try? connection.rewriteHeader()
    }
    return logBytes
  }
}
