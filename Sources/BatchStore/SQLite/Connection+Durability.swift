public import BatchIdentifiers
import CSQLite

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension BatchError.Code {
  /// The database is not as a run left it, or another file has its name.
  public static let storeChanged = Self(rawValue: "storeChanged")
}

extension Connection {
  /// Makes all that was committed durable, whatever `synchronous` is.
  ///
  /// In write-ahead logging the commits are in the log, which `synchronous = normal` leaves unsynced.
  /// With a rollback journal they are in the database, but a journal that was removed, and whose removal
  /// the folder forgets, would be rolled back after a power failure: `synchronous = extra` syncs the
  /// folder as well, or whatever else the journal's mode asks for.
  func synchronize() throws(BatchError) {
    if try journalMode() == "wal" { return try syncFile(SQLITE_FCNTL_JOURNAL_POINTER) }
    let level = try value("PRAGMA synchronous")
    try setSynchronous(.extra)
    defer { if case .integer(let level) = level { try? execute("PRAGMA synchronous = \(level)") } }
    try rewriteHeader()
  }

  /// Writes the first page as it is, for the sake of the commit: one that changes nothing waits for
  /// nothing.
  func rewriteHeader() throws(BatchError) {
    guard case .integer(let version) = try value("PRAGMA user_version") else { return }
    try execute("PRAGMA user_version = \(version)")
  }

  /// Makes what was written to the file of the database durable.
  func syncDatabase() throws(BatchError) {
    try syncFile(SQLITE_FCNTL_FILE_POINTER)
  }

  /// Syncs a file by SQLite's own means.
  ///
  /// By the file that SQLite has opened: to close another one of the same database would give up all
  /// locks of the process on it (<https://www.sqlite.org/howtocorrupt.html>, 2.2). SQLite syncs the folder
  /// with the first sync of a log, which it may have made.
  private func syncFile(_ pointer: Int32) throws(BatchError) {
    var file: UnsafeMutablePointer<sqlite3_file>?
    _ = unsafe sqlite3_file_control(database, "main", pointer, &file)
    guard let file = unsafe file, let methods = unsafe file.pointee.pMethods else { return }
    let status = unsafe methods.pointee.xSync(file, SQLITE_SYNC_NORMAL)
    guard status == SQLITE_OK else { throw error(status, "sync", sql: nil) }
  }

  /// Whether there is a file of the database's name.
  var hasFile: Bool { unsafe access(path, F_OK) == 0 }

  /// Stops if the path names another file than the one that is open: it was moved, removed or replaced.
  package func refuseIfMoved() throws(BatchError) {
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
      "the file of the database was moved, removed or replaced while the run was at work",
      at: path,
      remedy: "put the right file there, then run again to go on from what it has"
    )
  }
}
