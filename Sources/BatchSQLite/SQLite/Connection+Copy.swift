import BatchRuns
import BatchIdentifiers
import CSQLite

extension Connection {
  private static let pagesPerStep: Int32 = 4096

  /// Copies the database page by page into an empty file; rows keep their rowids.
  ///
  /// Inside the caller's transaction, copies that transaction's snapshot, whatever others commit
  /// meanwhile. Calls `progress` with the number of bytes copied; an error from it ends the copy.
  ///
  /// - Throws: Errors of SQLite; `BatchError` of code `diskFull` if there is no room.
  func copy(
    to path: String,
    progress: (Int64) throws(BatchError) -> Void
  ) throws(BatchError) {
    let copy = try Connection(path: path)
    defer { copy.close() }
    // No journal is needed: an incomplete copy is discarded.
    try copy.execute("PRAGMA journal_mode = OFF")
    try copy.execute("PRAGMA synchronous = OFF")
    guard let backup = unsafe sqlite3_backup_init(copy.database, "main", database, "main") else {
      throw copy.error(unsafe sqlite3_errcode(copy.database), "copy", sql: nil)
    }
    defer { unsafe sqlite3_backup_finish(backup) }
    let pageBytes = try pageBytes()
    while true {
      let status = unsafe sqlite3_backup_step(backup, Self.pagesPerStep)
      switch status {
      case SQLITE_DONE: return
      case SQLITE_OK:
        let pages = unsafe sqlite3_backup_pagecount(backup) - sqlite3_backup_remaining(backup)
        try progress(Int64(pages) * pageBytes)
      default: throw Self.error(status, copyingTo: path)
      }
    }
  }

  func byteCount() throws(BatchError) -> Int64 {
    guard case .integer(let pages) = try value("PRAGMA page_count") else { return 0 }
    return try pages * pageBytes()
  }

  private func pageBytes() throws(BatchError) -> Int64 {
    guard case .integer(let bytes) = try value("PRAGMA page_size") else { return 0 }
    return bytes
  }

  private static func error(_ status: Int32, copyingTo path: String) -> BatchError {
    let error = SQLiteError(
      resultCode: ResultCode(rawValue: status),
      message: unsafe String(cString: sqlite3_errstr(status)),
      operation: "copy",
      sql: nil
    )
    return BatchError(error, database: path)
  }
}
