import BatchRuns
public import BatchIdentifiers
import CSQLite

/// An error from SQLite, found in `BatchError.underlying` of the error that it caused.
public struct SQLiteError: Error, Sendable, CustomStringConvertible {
  /// The extended result code.
  public let resultCode: ResultCode
  /// SQLite's own message.
  public let message: String
  /// The failed operation, for example `prepare` or `step`.
  public let operation: String
  /// The statement, with placeholders; never the values bound to them.
  public let sql: String?

  /// SQLite's message and code, with the operation and the statement.
  public var description: String {
    let statement = sql.map { " [\($0)]" } ?? ""
    return "SQLite error \(resultCode.rawValue) in \(operation): \(message)\(statement)"
  }
}

extension SQLiteError: DatabaseError {
  package var isAboutRows: Bool {
    switch resultCode {
    case .SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_TOOBIG: true
    case .SQLITE_ERROR: operation == "step"
    default: false
    }
  }
}

extension BatchError.Code {
  /// The file is not an SQLite database, is encrypted, or is damaged.
  public static let notADatabase = Self(rawValue: "notADatabase")
  /// A full-text index or another virtual table contradicts the rows that it indexes.
  public static let damagedVirtualTable = Self(rawValue: "damagedVirtualTable")
}

extension BatchError {
  /// The SQLite error that caused this one, if there is one.
  public var sqlite: SQLiteError? { underlying as? SQLiteError }

  init(_ error: SQLiteError, database: String) {
    let code: Code
    let message: String
    var advice: Remedy?
    switch error.resultCode {
    case .SQLITE_BUSY, .SQLITE_LOCKED:
      code = .busy
      message = "the database is locked by another connection"
      advice = "wait for it to finish, or raise \(.busyTimeout)"
    case .SQLITE_FULL:
      code = .diskFull
      message = "the disk or the database is full"
      advice = "make room, then \(.repetition): it resumes"
    case .SQLITE_IOERR_SHMSIZE, .SQLITE_IOERR_SHMMAP:
      code = .diskFull
      message = "the disk has no room for the shared-memory file of the write-ahead log (-shm)"
      advice = "make room, then \(.repetition): it resumes"
    case .SQLITE_IOERR_NOMEM:
      code = .databaseAccess
      message = "SQLite has no memory left"
      advice = "end other programs, or raise the memory limit"
    case .SQLITE_IOERR:
      code = .databaseAccess
      message =
        "the file system reports an error (\(error.message), SQLite code \(error.resultCode.rawValue))"
      advice = "look for the cause in the system's log: dmesg; check the disk and its mount"
    case .SQLITE_CANTOPEN:
      code = .databaseAccess
      message = "the database, its log or a temporary file cannot be opened"
      advice = """
        make the folder of the database writable, or copy the database with its -wal file to one that is: \
        even to read a database in WAL mode, SQLite creates files beside it
        """
    case .SQLITE_READONLY:
      code = .readOnly
      message = "the database is read-only (\(error.message))"
      advice = "check the permissions of the file and of its folder"
    case .SQLITE_NOTADB:
      code = .notADatabase
      message = "the file is not an SQLite database, or is encrypted"
    case .SQLITE_CORRUPT where error.message.hasPrefix("malformed database schema"):
      code = .notADatabase
      message =
        "SQLite \(unsafe String(cString: sqlite3_libversion())) cannot read the \(error.message.dropFirst(10))"
      advice = "use a newer SQLite if the database does; otherwise mend the definition"
    case .SQLITE_CORRUPT:
      code = .notADatabase
      message = "the database is damaged (\(error.message))"
      advice = "check it with PRAGMA integrity_check and restore a backup"
    case .SQLITE_CONSTRAINT:
      code = .constraint
      message = error.message
    case .SQLITE_INTERRUPT:
      code = .interrupted
      message = "interrupted"
    case .SQLITE_ERROR, .SQLITE_AUTH, .SQLITE_PERM:
      code = .invalidSQL
      message = error.message
      if message == "parser stack overflow" {
        advice = "nest fewer parentheses, CASEs and subqueries in one another"
      }
    default:
      code = .databaseAccess
      message = "\(error.message) (\(error.operation), SQLite code \(error.resultCode.rawValue))"
    }
    self.init(code, message, at: database, advice: advice, underlying: error)
  }
}
