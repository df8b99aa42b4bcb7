import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import CSQLite
import Foundation
import Testing

@testable import BatchSQLite

/// Checkpoints that begin when the log is wholly copied, while another connection restarts it.
@Suite struct LogRestartTests {
  private let directory: TemporaryDirectory
  private let path: String
  private let writer: Connection
  private let checkpointer: Connection

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(20_000, in: directory)
    writer = try Connection(path: path)
    #expect(try writer.useWriteAheadLog())
    checkpointer = try Connection(path: path)
    // A long log, wholly copied, which the connection that is to checkpoint has not seen.
    try writer.execute("UPDATE numbers SET n = 1 WHERE id > 10000")
    #expect(try writer.checkpoint())
  }

  /// Changes a row that the restarted log has already, then others until that log is longer than the old
  /// one, makes the next checkpoint, and closes the database.
  ///
  /// - Returns: The value in the first row, which has been 7, plus 1; and the integrity.
  private func goOn() throws -> [String] {
    try writer.execute("UPDATE numbers SET n = n + 1 WHERE id = 1")
    for _ in 0..<200 {
      try writer.execute("UPDATE numbers SET n = n + 1 WHERE id % 5000 = 1 AND id > 9000")
    }
    try writer.checkpoint()
    try writer.execute("UPDATE numbers SET n = n + 1 WHERE id = 20000")
    writer.close()
    checkpointer.close()
    return try TestDatabase.texts(path, "SELECT n FROM numbers WHERE id = 1")
      + TestDatabase.integrity(path)
  }

  @Test(arguments: [SQLITE_CHECKPOINT_PASSIVE, SQLITE_CHECKPOINT_RESTART])
  func `SQLite loses the commit of a restarted log exactly in the versions listed as faulty`(
    mode: Int32
  ) throws {
    // The second kind goes on as the first when it does not get the lock of the writer.
    if mode == SQLITE_CHECKPOINT_RESTART { try writer.execute("BEGIN IMMEDIATE") }
    sqlite3_busy_timeout(checkpointer.database, 0)
    try CheckpointPause.when(checkpointer) {
      _ = sqlite3_wal_checkpoint_v2(checkpointer.database, nil, mode, nil, nil)
    } hasReadTheLog: {
      try writer.execute("UPDATE numbers SET n = 7 WHERE id = 1")
      if mode == SQLITE_CHECKPOINT_RESTART { try writer.execute("COMMIT") }
    }
    let isKept = try goOn().first == "8"
    #expect(isKept != SQLiteVersion.linked.hasResetFault)
  }

  @Test(arguments: ["checkpoint", "copyLog", "emptyLog"])
  func `a checkpoint that meets a restart of the log loses no commit`(kind: String) throws {
    try CheckpointPause.when(checkpointer) {
      switch kind {
      case "checkpoint": try checkpointer.checkpoint()
      case "copyLog": try checkpointer.copyLog()
      default: _ = try checkpointer.emptyLog(lockTimeout: .zero)
      }
    } hasReadTheLog: {
      try writer.execute("UPDATE numbers SET n = 7 WHERE id = 1")
    }
    #expect(try goOn() == ["8", "ok"])
  }

  @Test func `a checkpoint that stops waiting for a writer that restarts the log loses no commit`()
    throws
  {
    try writer.execute("BEGIN IMMEDIATE")
    try writer.execute("UPDATE numbers SET n = 7 WHERE id = 1")
    try CheckpointPause.when(checkpointer) {
      let isRestarting = try checkpointer.restartLog()
      #expect(!isRestarting)
    } hasReadTheLog: {
      try writer.execute("COMMIT")
    }
    #expect(try goOn() == ["8", "ok"])
    #expect(try TestDatabase.value(path, "SELECT count(*) FROM numbers") == .integer(20_000))
  }

  @Test(arguments: [
    ("3.6.23", 3_006_023, false), ("3.7.0", 3_007_000, true), ("3.40.1", 3_040_001, true),
    ("3.44.5", 3_044_005, true), ("3.44.6", 3_044_006, false), ("3.45.0", 3_045_000, true),
    ("3.50.6", 3_050_006, true), ("3.50.7", 3_050_007, false), ("3.51.2", 3_051_002, true),
    ("3.51.3", 3_051_003, false), ("3.52.0", 3_052_000, false),
  ])
  func `the SQLite versions with the log reset fault are recognized by number`(
    words: String,
    number: Int,
    isAffected: Bool
  ) {
    let version = SQLiteVersion(number: number)
    #expect(version.description == words)
    #expect(version.hasResetFault == isAffected)
  }
}

/// Stops a checkpoint where it has read the header of the log and not used it yet.
///
/// There SQLite gives back a page of the database that it has mapped into memory, of which there is none: so the
/// moment can be seen without another build of the library.
private enum CheckpointPause {
  private static let pauses = Lock<[UnsafeMutablePointer<sqlite3_file>: () throws -> Void]>([:])

  /// Runs `checkpoint`, and within it `action` at that moment.
  static func when(
    _ connection: Connection,
    _ checkpoint: () throws -> Void,
    hasReadTheLog action: @escaping () throws -> Void
  ) throws {
    var found: UnsafeMutablePointer<sqlite3_file>?
    _ = sqlite3_file_control(connection.database, "main", SQLITE_FCNTL_FILE_POINTER, &found)
    let file = try #require(found)
    let methods = try #require(file.pointee.pMethods)
    let paused = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    paused.initialize(to: methods.pointee)
    paused.pointee.xUnfetch = { file, _, _ in
      guard let file, let action = CheckpointPause.pauses.withLock({ $0.removeValue(forKey: file) })
      else {
        return SQLITE_OK
      }
      do { try action() } catch { Issue.record(error) }
      return SQLITE_OK
    }
    file.pointee.pMethods = UnsafePointer(paused)
    defer {
      file.pointee.pMethods = methods
      paused.deallocate()
    }
    pauses.withLock { $0[file] = action }
    try checkpoint()
    #expect(
      pauses.withLock { $0.removeValue(forKey: file) } == nil,
      "the checkpoint did not pass that moment"
    )
  }
}
