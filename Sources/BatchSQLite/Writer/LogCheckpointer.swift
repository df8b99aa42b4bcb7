import BatchRuns
package import BatchIdentifiers

/// Keeps the write-ahead log of a lane short.
///
/// Another connection moves most pages to the database in a pass beside the lane, which keeps
/// writing. The lane then moves the few pages written meanwhile, after which the log restarts.
final class LogCheckpointer {
  /// Whether Litestream replicates the database and decides when the log restarts.
  ///
  /// It copies the log, and holds a read lock that prevents an earlier restart
  /// (<https://litestream.io/how-it-works/>).
  let leavesLogToLitestream: Bool

  /// The lane's connection.
  private let connection: Connection
  /// Makes the passes.
  let checkpointer: StoreConnection
  private let synchronous: Synchronous
  private let pageSize: Int
  /// The number of frames above which the log is checkpointed.
  private let frames: Int
  /// The frames in the log at the lane's last checkpoint.
  private var doneFrames = 0
  /// The current pass, and its end.
  private var pass: (task: Task<Void, Never>, end: Lock<Result<Void, BatchError>?>)?
  /// Whether there was a pass since the lane's last checkpoint.
  private var hasPassed = false
  /// Why the log of a committed chunk could not be checkpointed; that chunk is done nevertheless.
  private var failure: BatchError?
  /// When a commit last tried to restart the log.
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

  /// The length of the log in bytes.
  var logBytes: Int {
    WriteAheadLog.byteCount(ofFrames: connection.logFrames, pageSize: pageSize)
  }

  /// Throws a failure since the last call.
  func throwFailure() throws(BatchError) {
    _ = isPassing
    guard let failure else { return }
    self.failure = nil
    throw failure
  }

  /// Starts a pass when the log has grown enough since the last one, and finishes its work.
  ///
  /// With readers in it, the log keeps growing after a checkpoint, and a checkpoint for each commit
  /// would be wasteful.
  func checkpointIfLong(besideOthers othersWrite: Bool) {
    let frames = connection.logFrames
    if frames < doneFrames { doneFrames = 0 }
    // Others checkpoint in their commits when the log has SQLite's 1,000 pages, and wait for it.
    let most = othersWrite ? min(self.frames, 500) : self.frames
    guard !isPassing, frames - doneFrames >= most else { return }
    guard hasPassed else { return startPass() }
    hasPassed = false
    do {
      // What others have written meanwhile is little, but would keep the log from restarting; so do
      // readers, if it has grown since the last checkpoint.
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
          // The lane's own checkpoint syncs the database, and should find little to sync.
          if synchronous != .off { try connection.syncDatabase() }
        }
      } catch {
        result = .failure(error)
      }
      end.withLock { $0 = result }
    }
    pass = (task, end)
  }

  /// Whether a pass is under way; takes the end of one that is not.
  private var isPassing: Bool {
    guard let end = pass?.end.withLock({ $0 }) else { return pass != nil }
    pass = nil
    if case .failure(let error) = end { failure = error }
    return false
  }

  /// The current pass, if the log must not grow until it ends: the disk is slower than the lane, or
  /// chunks change many pages.
  var overduePass: Task<Void, Never>? {
    guard let pass, connection.logFrames - doneFrames >= frames * 3 / 2 else { return nil }
    return pass.task
  }

  /// The current pass.
  var currentPass: Task<Void, Never>? { pass?.task }

  /// Empties the log, unless another connection reads from it or writes.
  func empty() throws(BatchError) {
    guard leavesLogToLitestream else {
      // Others must not wait long for the write lock.
      _ = try connection.emptyLog(lockTimeout: .milliseconds(20))
      return
    }
    if try connection.copyLog(), mayCommit(at: .now) {
      // Without Litestream, whose table may be a leftover, a commit restarts the log; with it, the
      // log has one page more. If the database is locked, this happens later.
      try? connection.rewriteHeader()
    }
  }

  /// Whether a commit may try again to restart the log, which makes it longer each time.
  private func mayCommit(at now: ContinuousClock.Instant) -> Bool {
    if let triedAt, triedAt.duration(to: now) < .seconds(10) { return false }
    triedAt = now
    return true
  }
}

extension Connection {
  /// Whether the database has Litestream's table.
  package func isReplicatedByLitestream() throws(BatchError) -> Bool {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_litestream_seq'"
    return try value(sql) != nil
  }
}
