package import BatchIdentifiers

/// How far the checkpoints of a lane's log have come.
///
/// Most of the pages move to the database in a pass beside the lane, by another connection, while
/// the lane goes on writing. The lane itself moves the few that it has written meanwhile, after
/// which the log is started anew.
struct LogCheckpoints {
  /// The frames past which the log is checkpointed.
  fileprivate let frames: Int
  /// Makes the passes.
  fileprivate let checkpointer: StoreConnection
  /// The frames in the log when the lane checkpointed it last.
  fileprivate var doneFrames = 0
  /// The pass that is at work.
  fileprivate(set) var pass: Task<Void, Never>?
  /// Whether there was a pass since the lane checkpointed the log last.
  fileprivate var hasPassed = false
  /// What kept the log of a committed chunk from being checkpointed; that chunk is done all the
  /// same.
  fileprivate var failure: BatchError?

  init(past frames: Int, passes checkpointer: StoreConnection) {
    self.frames = frames
    self.checkpointer = checkpointer
  }

  /// When a commit last tried to start the log anew.
  private var triedAt: ContinuousClock.Instant?

  /// Whether a commit may try again to start the log anew, which else would make it longer each time.
  fileprivate mutating func mayCommit(at now: ContinuousClock.Instant) -> Bool {
    if let triedAt, triedAt.duration(to: now) < .seconds(10) { return false }
    triedAt = now
    return true
  }

  /// Waits for the pass that is at work, and closes the connection that makes them.
  func close() async {
    await pass?.value
    await checkpointer.close()
  }

  /// Throws what failed since the last call.
  mutating func throwFailure() throws(BatchError) {
    guard let failure else { return }
    self.failure = nil
    throw failure
  }
}

extension Connection {
  /// Whether Litestream has left its table in the database.
  package func isReplicatedByLitestream() throws(BatchError) -> Bool {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_litestream_seq'"
    return try value(sql) != nil
  }
}

extension WriterLane {
  /// Starts a pass when the log has grown by so much since the last time, and finishes what it began.
  ///
  /// With readers in it the log goes on growing after a checkpoint, and one for each commit would be
  /// waste.
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
      // What others have written meanwhile is little, but would keep the log from being started
      // anew; and so do readers, where it went on after the last checkpoint.
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
          // The lane's own checkpoint syncs the database, and shall find little to sync.
          if synchronous != .off { try connection.syncDatabase() }
        }
      } catch {
        checkpoints.failure = error
      }
      checkpoints.pass = nil
    }
  }

  /// Waits for a pass, and finishes it, before the log is twice as long as it is to become: where the
  /// disk is slower than the lane, or chunks change many pages.
  func waitForCheckpointIfTooLong() async {
    guard let pass = checkpoints.pass,
      connection.logFrames - checkpoints.doneFrames >= checkpoints.frames * 3 / 2
    else { return }
    await pass.value
    checkpointIfLong()
  }

  /// Empties the write-ahead log, unless another connection reads from it or writes.
  ///
  /// - Returns: How long it still is, in bytes.
  package func emptyLog() async throws(BatchError) -> Int {
    await checkpoints.pass?.value
    guard leavesLogToLitestream else {
      // Whoever waits for the write lock shall not wait for long.
      _ = try connection.emptyLog(patience: .milliseconds(20))
      return logBytes
    }
    if try connection.copyLog(), checkpoints.mayCommit(at: .now) {
      // Without Litestream, of which there may be nothing but the table, a commit starts the log anew;
      // with it, the log has a page more. Somebody may have the database locked: then later.
      try? connection.rewriteHeader()
    }
    return logBytes
  }
}
