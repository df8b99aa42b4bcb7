import BatchRuns
package import BatchIdentifiers

/// Keeps the write-ahead log of a lane short.
///
/// Another connection moves most pages to the database in a pass, while the lane keeps writing. The
/// lane then moves the few pages written during the pass, after which the log restarts.
final class LogCheckpointer {
  /// Whether Litestream replicates the database and decides when the log restarts.
  ///
  /// Litestream copies the log, and holds a read lock that prevents an earlier restart
  /// (<https://litestream.io/how-it-works/>).
  let leavesLogToLitestream: Bool

  private let connection: Connection
  let checkpointer: StoreConnection
  private let synchronous: Synchronous
  private let pageSize: Int
  /// The number of frames above which the log is checkpointed.
  private let frames: Int
  /// The number of frames in the log at the lane's last checkpoint.
  private var doneFrames = 0
  private var pass: (task: Task<Void, Never>, end: Lock<Result<Void, BatchError>?>)?
  /// Whether a pass has run since the lane's last checkpoint.
  private var hasPassed = false
  /// Why the log could not be checkpointed after a chunk was committed; the chunk itself succeeded.
  private var failure: BatchError?
  private var triedAt: ContinuousClock.Instant?

  init(
    _ connection: Connection,
    passes checkpointer: StoreConnection,
    configuration: WriterConfiguration,
    pageSize: Int
  ) throws(BatchError) {
    self.connection = connection
    self.checkpointer = checkpointer
    self.pageSize = pageSize
    synchronous = configuration.synchronous
    frames = max(1, configuration.checkpointBytes / pageSize)
    leavesLogToLitestream = try connection.isReplicatedByLitestream()
  }

  var logBytes: Int {
    WriteAheadLog.byteCount(ofFrames: connection.logFrames, pageSize: pageSize)
  }

  func throwFailure() throws(BatchError) {
    _ = isPassing
    guard let failure else { return }
    self.failure = nil
    throw failure
  }

  /// Starts a pass if the log has grown enough since the last one, and completes the work of a pass
  /// that has ended.
  ///
  /// While readers use the log, it keeps growing after a checkpoint, so checkpointing on each
  /// commit would be wasteful.
  func checkpointIfLong(besideOthers othersWrite: Bool) {
    let frames = connection.logFrames
    if frames < doneFrames { doneFrames = 0 }
    // Other connections checkpoint in their commits when the log has SQLite's default of 1,000
    // pages, and that delays them.
    let most = othersWrite ? min(self.frames, 500) : self.frames
    guard !isPassing, frames - doneFrames >= most else { return }
    guard hasPassed else { return startPass() }
    hasPassed = false
    do {
      // Frames that others wrote during the pass are few, but would keep the log from restarting.
      // So do readers, if the log has grown since the last checkpoint.
      let wentOn = doneFrames > 0
      var isComplete: Bool
      if leavesLogToLitestream {
        isComplete = try connection.copyLog()
      } else {
        isComplete = try connection.checkpoint()
        if !isComplete || wentOn { isComplete = try connection.restartLog() }
      }
      doneFrames = isComplete ? frames : frames - most * 3 / 4
    } catch {
      failure = error
    }
  }

  private func startPass() {
    hasPassed = true
    let end = Lock<Result<Void, BatchError>?>(nil)
    let task = Task { [checkpointer, synchronous] in
      var result = Result<Void, BatchError>.success(())
      do throws(BatchError) {
        try await checkpointer.perform { connection throws(BatchError) in
          try connection.setSynchronous(synchronous)
          try connection.checkpoint()
          // The lane's own checkpoint syncs the database, and should find little left to sync.
          if synchronous != .off { try connection.syncDatabase() }
        }
      } catch {
        result = .failure(error)
      }
      end.withLock { $0 = result }
    }
    pass = (task, end)
  }

  /// Whether a pass is running; collects the result of a pass that has ended.
  private var isPassing: Bool {
    guard let end = pass?.end.withLock({ $0 }) else { return pass != nil }
    pass = nil
    if case .failure(let error) = end { failure = error }
    return false
  }

  /// The current pass, if the log must not grow until it ends, because the disk is slower than the
  /// lane or chunks change many pages.
  var overduePass: Task<Void, Never>? {
    guard let pass, connection.logFrames - doneFrames >= frames * 3 / 2 else { return nil }
    return pass.task
  }

  var currentPass: Task<Void, Never>? { pass?.task }

  /// Empties the log, unless another connection reads from it or writes.
  func empty() throws(BatchError) {
    guard leavesLogToLitestream else {
      // Other writers must not wait long for the write lock.
      _ = try connection.emptyLog(lockTimeout: .milliseconds(20))
      return
    }
    if try connection.copyLog(), mayCommit(at: .now) {
      // Without Litestream, whose table may be a leftover, a commit restarts the log. With
      // Litestream, the log gets one more page. If the database is locked, a later call does it.
      try? connection.rewriteHeader()
    }
  }

  /// Whether a commit may try again to restart the log; each attempt makes the log longer.
  private func mayCommit(at now: ContinuousClock.Instant) -> Bool {
    if let triedAt, triedAt.duration(to: now) < .seconds(10) { return false }
    triedAt = now
    return true
  }
}

extension Connection {
  package func isReplicatedByLitestream() throws(BatchError) -> Bool {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_litestream_seq'"
    return try value(sql) != nil
  }
}
