import BatchRuns
package import BatchIdentifiers
import BatchPlatform
import CSQLite

extension Connection {
  /// Makes all commits durable, whatever `synchronous` is.
  ///
  /// With write-ahead logging, commits are in the log, which `synchronous = normal` leaves
  /// unsynced. With a rollback journal, they are in the database, but if the folder's removal of
  /// the journal is lost, a power failure rolls them back. `synchronous = extra` also syncs the
  /// folder, or does what the journal's mode requires.
  func synchronize() throws(BatchError) {
    if try journalMode() == "wal" { return try syncFile(SQLITE_FCNTL_JOURNAL_POINTER) }
    let level = try value("PRAGMA synchronous")
    try setSynchronous(.extra)
    defer { if case .integer(let level) = level { try? execute("PRAGMA synchronous = \(level)") } }
    try rewriteHeader()
  }

  /// Writes the first page unchanged, since a commit that changes nothing syncs nothing.
  func rewriteHeader() throws(BatchError) {
    guard case .integer(let version) = try value("PRAGMA user_version") else { return }
    try execute("PRAGMA user_version = \(version)")
  }

  func syncDatabase() throws(BatchError) {
    try syncFile(SQLITE_FCNTL_FILE_POINTER)
  }

  /// Syncs a file through SQLite.
  ///
  /// Uses the file that SQLite has opened, because closing another descriptor of the same database
  /// would release all of the process's locks on it (<https://www.sqlite.org/howtocorrupt.html>,
  /// 2.2). With the first sync of a log that it may have created, SQLite also syncs the folder.
  private func syncFile(_ pointer: Int32) throws(BatchError) {
    var file: UnsafeMutablePointer<sqlite3_file>?
    _ = unsafe sqlite3_file_control(database, "main", pointer, &file)
    guard let file = unsafe file, let methods = unsafe file.pointee.pMethods else { return }
    let status = unsafe methods.pointee.xSync(file, SQLITE_SYNC_NORMAL)
    guard status == SQLITE_OK else { throw error(status, "sync", sql: nil) }
  }

  var hasFile: Bool { unsafe access(path, F_OK) == 0 }

  /// Fails if the path no longer names the open file because it was moved, removed or replaced.
  ///
  /// - Throws: `BatchError` of code `storeChanged`.
  package func refuseIfMoved(
    remedy: Remedy = "put the right file there, then run again to resume from what it has"
  ) throws(BatchError) {
    var hasMoved: Int32 = 0
    let status = unsafe sqlite3_file_control(
      database,
      "main",
      SQLITE_FCNTL_HAS_MOVED,
      &hasMoved
    )
    guard status == SQLITE_OK, hasMoved != 0 else { return }
    throw BatchError(
      .storeChanged,
      "the file of the database was moved, removed or replaced while it was open",
      at: path,
      advice: remedy
    )
  }
}
