package import BatchRuns
package import BatchIdentifiers
import BatchPlatform
import CSQLite

/// The state of a connection's write-ahead log.
///
/// A hook that counts frames replaces SQLite's automatic checkpoint, so the owner of the connection
/// decides when pages move to the database. See <https://www.sqlite.org/wal.html>.
@safe
final class WriteAheadLog {
  /// The number of frames in the log after the last commit.
  fileprivate(set) var frames = 0
  fileprivate(set) var peakFrames = 0

  /// The size in bytes of a log with this many frames.
  ///
  /// The log has a header of 32 bytes, then frames of 24 bytes and a page each:
  /// <https://www.sqlite.org/fileformat2.html#walformat>.
  static func byteCount(ofFrames frames: Int, pageSize: Int) -> Int {
    frames == 0 ? 0 : 32 + frames * (24 + pageSize)
  }

  /// Observes the commits of a connection, which must not outlive this object.
  func attach(to database: OpaquePointer) {
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe sqlite3_wal_hook(
      database,
      { context, _, _, frames in
        guard let context = unsafe context else { return SQLITE_OK }
        let log = unsafe Unmanaged<WriteAheadLog>.fromOpaque(context).takeUnretainedValue()
        log.frames = Int(frames)
        log.peakFrames = max(log.peakFrames, Int(frames))
        return SQLITE_OK
      },
      context
    )
  }
}

extension Connection {
  /// Switches the database to write-ahead logging; false if that is impossible, as on a network
  /// file system.
  ///
  /// Waits for a lock of another connection as long as a statement does. SQLite itself does not
  /// wait: the switch upgrades a read lock, and two connections that do so could wait for each
  /// other forever.
  package func useWriteAheadLog() throws(BatchError) -> Bool {
    let end = ContinuousClock.now + busyTimeout
    while true {
      do throws(BatchError) {
        return try value("PRAGMA journal_mode = wal") == .text("wal")
      } catch {
        guard error.code == .busy, .now < end else { throw error }
        usleep(10_000)
      }
    }
  }

  package func journalMode() throws(BatchError) -> String {
    guard case .text(let mode) = try value("PRAGMA journal_mode") else { return "unknown" }
    // If a file is read without its log, SQLite reports another mode.
    let hasLog = unsafe batch_sqlite3_has_log(database) != 0
    return mode == "delete" && hasLog ? "wal" : mode
  }

  /// Sets when a commit waits for the disk:
  /// <https://www.sqlite.org/pragma.html#pragma_synchronous>.
  package func setSynchronous(_ level: Synchronous) throws(BatchError) {
    try execute("PRAGMA synchronous = \(level.rawValue)")
  }

  /// The number of frames in the write-ahead log after this connection's last commit.
  package var logFrames: Int { log.frames }

  /// The largest size of the write-ahead log after this connection's commits, in bytes.
  package func peakLogBytes() throws(BatchError) -> Int {
    guard case .integer(let page) = try value("PRAGMA page_size") else { return 0 }
    return WriteAheadLog.byteCount(ofFrames: log.peakFrames, pageSize: Int(page))
  }

  /// Moves the pages of the write-ahead log to the database without waiting for readers, and syncs
  /// both to the disk.
  ///
  /// - Returns: Whether every frame was moved, so that the next commit restarts the log.
  @discardableResult
  package func checkpoint() throws(BatchError) -> Bool {
    try passiveCheckpoint()
  }

  /// Moves the pages of the write-ahead log to the database.
  ///
  /// Another program decides when the log restarts; until then it keeps its length.
  ///
  /// - Returns: Whether every frame was moved.
  @discardableResult
  package func copyLog() throws(BatchError) -> Bool {
    try passiveCheckpoint(startsAnew: false)
  }

  /// Moves the rest of the write-ahead log to the database, so that the next commit of any
  /// connection restarts the log.
  ///
  /// Blocks writers meanwhile.
  ///
  /// Gives up after a few milliseconds if another connection writes, or reads from the log.
  ///
  /// - Returns: Whether the log will restart.
  @discardableResult
  package func restartLog() throws(BatchError) -> Bool {
    try checkpoint(SQLITE_CHECKPOINT_RESTART, lockTimeout: .milliseconds(5))
  }

  /// Moves all pages of the write-ahead log to the database and truncates the log.
  ///
  /// Waits up to `lockTimeout` for readers of the log and for writers, and blocks other writers
  /// meanwhile.
  ///
  /// - Returns: Whether the log is empty.
  package func emptyLog(lockTimeout: Duration) throws(BatchError) -> Bool {
    // Copies what it can, in case other connections are never idle.
    try checkpoint()
    return try checkpoint(SQLITE_CHECKPOINT_TRUNCATE, lockTimeout: lockTimeout)
  }

  /// Copies the log while another connection of this process reads, if this version of SQLite needs
  /// that.
  ///
  /// An affected version trusts what it has read of a fully copied log, even if another connection
  /// restarts the log at that moment. It then counts frames of the new log as copied and loses
  /// them. A reader prevents this: if it uses the log, the log cannot restart; if it needs only the
  /// database because everything is copied, checkpoints cannot copy.
  private func passiveCheckpoint(startsAnew: Bool = true) throws(BatchError) -> Bool {
    guard SQLiteVersion.linked.hasResetFault,
      try value("PRAGMA journal_mode") == .text("wal")
    else { return try checkpoint(SQLITE_CHECKPOINT_PASSIVE, startsAnew: startsAnew) }
    let options = Options(busyTimeout: busyTimeout, cacheSizeKiB: 64)
    let reader =
      if let logReader { logReader } else { try Connection(path: path, options: options) }
    logReader = reader
    return try reader.transaction(.deferred) { () throws(BatchError) in
      // A deferred transaction begins with its first read.
      _ = try reader.value("PRAGMA schema_version")
      return try checkpoint(SQLITE_CHECKPOINT_PASSIVE, startsAnew: startsAnew)
    }
  }

  /// Moves pages of the log by the given kind of checkpoint, and waits for others up to
  /// `lockTimeout`; `startsAnew` is whether the next commit restarts a log that is fully copied.
  private func checkpoint(
    _ mode: Int32,
    lockTimeout: Duration = .zero,
    startsAnew: Bool = true
  ) throws(BatchError) -> Bool {
    var inLog: Int32 = 0
    var moved: Int32 = 0
    if mode != SQLITE_CHECKPOINT_PASSIVE {
      // Without the interrupt, SQLite would continue as a passive checkpoint, without the writer's
      // lock and without the reader that an affected version needs.
      lockWait.setLimit(lockTimeout, interrupting: interrupter)
    }
    defer { lockWait.setLimit(busyTimeout) }
    let status = unsafe sqlite3_wal_checkpoint_v2(database, nil, mode, &inLog, &moved)
    switch ResultCode(rawValue: status) {
    case .SQLITE_OK:
      let complete = inLog == moved
      if !startsAnew {
        log.frames = max(0, Int(inLog))
      } else if complete {
        log.frames = 0
      }
      return complete
    case .SQLITE_BUSY: return false
    case .SQLITE_INTERRUPT where mode != SQLITE_CHECKPOINT_PASSIVE: return false
    default: throw error(status, "checkpoint", sql: nil)
    }
  }
}

extension Connection {
  /// Removes the files `-wal` and `-shm` that a reader leaves behind.
  ///
  /// Reading a database in WAL mode creates them. Only the last connection that may write removes
  /// them when it closes, so this opens and closes one. Nothing else changes, since the log is
  /// empty. A log with content, from a killed process, is kept.
  static func removeEmptyLog(ofDatabase path: String) {
    var status = stat()
    guard unsafe stat("\(path)-wal", &status) == 0, status.st_size == 0 else { return }
    var handle: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX
    if unsafe sqlite3_open_v2(path, &handle, flags, nil) == SQLITE_OK {
      unsafe sqlite3_exec(handle, "SELECT count(*) FROM sqlite_schema", nil, nil, nil)
    }
    unsafe sqlite3_close_v2(handle)
  }
}
