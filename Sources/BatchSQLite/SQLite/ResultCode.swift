import CSQLite

/// A result code of SQLite, primary or extended, under SQLite's own names.
///
/// A primary code matches each of its extended codes with `~=`, so `case .SQLITE_BUSY` also
/// catches `SQLITE_BUSY_SNAPSHOT`. See <https://www.sqlite.org/rescode.html>.
public struct ResultCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The number SQLite returned.
  public let rawValue: Int32

  /// Wraps a number that SQLite returned.
  public init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  /// The primary code of an extended one.
  public var primary: ResultCode { ResultCode(rawValue: rawValue & 0xff) }

  /// SQLite's English description of the code, with the number.
  public var description: String {
    "\(rawValue) (\(unsafe String(cString: sqlite3_errstr(rawValue))))"
  }

  /// Whether `code` is `pattern` or one of its extended codes.
  public static func ~= (pattern: ResultCode, code: ResultCode) -> Bool {
    pattern.rawValue <= 0xff ? pattern == code.primary : pattern == code
  }

  /// No error.
  public static let SQLITE_OK = ResultCode(rawValue: CSQLite.SQLITE_OK)
  /// An SQL error or a missing table or column.
  public static let SQLITE_ERROR = ResultCode(rawValue: CSQLite.SQLITE_ERROR)
  /// The authorizer or the operating system denied access.
  public static let SQLITE_PERM = ResultCode(rawValue: CSQLite.SQLITE_PERM)
  /// Another connection holds the lock.
  public static let SQLITE_BUSY = ResultCode(rawValue: CSQLite.SQLITE_BUSY)
  /// A table is locked inside the process.
  public static let SQLITE_LOCKED = ResultCode(rawValue: CSQLite.SQLITE_LOCKED)
  /// Out of memory.
  public static let SQLITE_NOMEM = ResultCode(rawValue: CSQLite.SQLITE_NOMEM)
  /// The database is read-only.
  public static let SQLITE_READONLY = ResultCode(rawValue: CSQLite.SQLITE_READONLY)
  /// The operation was interrupted.
  public static let SQLITE_INTERRUPT = ResultCode(rawValue: CSQLite.SQLITE_INTERRUPT)
  /// The operating system reported an I/O error.
  public static let SQLITE_IOERR = ResultCode(rawValue: CSQLite.SQLITE_IOERR)
  static let SQLITE_IOERR_NOMEM = ResultCode(rawValue: CSQLite.SQLITE_IOERR | 12 << 8)
  static let SQLITE_IOERR_SHMSIZE = ResultCode(rawValue: CSQLite.SQLITE_IOERR | 19 << 8)
  static let SQLITE_IOERR_SHMMAP = ResultCode(rawValue: CSQLite.SQLITE_IOERR | 21 << 8)
  /// The database file is damaged.
  public static let SQLITE_CORRUPT = ResultCode(rawValue: CSQLite.SQLITE_CORRUPT)
  /// The tables behind a virtual table contradict each other, or the rows that it indexes.
  static let SQLITE_CORRUPT_VTAB = ResultCode(rawValue: CSQLite.SQLITE_CORRUPT | 1 << 8)
  /// The disk, or the database, is full.
  public static let SQLITE_FULL = ResultCode(rawValue: CSQLite.SQLITE_FULL)
  /// The file could not be opened.
  public static let SQLITE_CANTOPEN = ResultCode(rawValue: CSQLite.SQLITE_CANTOPEN)
  /// The schema changed after a statement was compiled.
  public static let SQLITE_SCHEMA = ResultCode(rawValue: CSQLite.SQLITE_SCHEMA)
  /// A text or blob is too long.
  public static let SQLITE_TOOBIG = ResultCode(rawValue: CSQLite.SQLITE_TOOBIG)
  /// A value does not have the type that its column requires.
  public static let SQLITE_MISMATCH = ResultCode(rawValue: CSQLite.SQLITE_MISMATCH)
  /// A constraint is violated.
  public static let SQLITE_CONSTRAINT = ResultCode(rawValue: CSQLite.SQLITE_CONSTRAINT)
  /// A CHECK constraint is violated.
  public static let SQLITE_CONSTRAINT_CHECK = ResultCode(
    rawValue: CSQLite.SQLITE_CONSTRAINT | 1 << 8
  )
  /// A foreign key refers to no row.
  public static let SQLITE_CONSTRAINT_FOREIGNKEY = ResultCode(
    rawValue: CSQLite.SQLITE_CONSTRAINT | 3 << 8
  )
  /// Another row has the same values in a unique index.
  public static let SQLITE_CONSTRAINT_UNIQUE = ResultCode(
    rawValue: CSQLite.SQLITE_CONSTRAINT | 8 << 8
  )
  /// The authorizer refused a statement.
  public static let SQLITE_AUTH = ResultCode(rawValue: CSQLite.SQLITE_AUTH)
  /// The file is not a database, or is encrypted.
  public static let SQLITE_NOTADB = ResultCode(rawValue: CSQLite.SQLITE_NOTADB)
}
