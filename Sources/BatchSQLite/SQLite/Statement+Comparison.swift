import BatchRuns
import CSQLite

extension Statement {
  private static var shownByteCount: Int { 40 }

  /// Whether the values of two columns of the current row differ, in storage class or bytes.
  func differ(_ column: Int, _ other: Int) -> Bool {
    let storageClass = storageClass(at: column)
    guard storageClass == self.storageClass(at: other) else { return true }
    switch storageClass {
    case SQLITE_NULL: return false
    case SQLITE_INTEGER: return integer(at: column) != integer(at: other)
    case SQLITE_FLOAT: return real(at: column).bitPattern != real(at: other).bitPattern
    default: return unsafe !bytes(at: column).elementsEqual(bytes(at: other))
    }
  }

  /// The value of a column in SQL, with only the first bytes of a text or blob.
  func shownValue(at column: Int) -> String {
    let storageClass = storageClass(at: column)
    guard storageClass == SQLITE_TEXT || storageClass == SQLITE_BLOB else {
      return value(at: column).sql
    }
    let bytes = unsafe bytes(at: column)
    let first = unsafe bytes.prefix(Self.shownByteCount)
    let value: SQLValue =
      unsafe storageClass == SQLITE_TEXT
      ? .text(String(decoding: first, as: UTF8.self)) : .blob([UInt8](first))
    let count = bytes.count
    return count > Self.shownByteCount ? "\(value.sql)… (\(count) bytes)" : value.sql
  }
}
