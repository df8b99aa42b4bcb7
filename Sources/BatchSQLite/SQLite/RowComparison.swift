import BatchIdentifiers
import BatchPlatform
import CSQLite

/// The SQL functions that compare rows of two databases on one connection.
///
/// `_batch_differs(n, a, b, …)` is whether the values of any pair differ, in storage class or
/// bytes. `_batch_counts(column, a, b, …)` counts the columns that differ and is whether to report
/// the row. `column` is the number of the first column; 0 also counts the row, and a negative
/// number is the complement of a column less 1, for a row already counted. `_batch_expected(what,
/// key…)` is whether the row of this key may differ as an ``Expectation`` allows, and counts that
/// it does. All values of two rows pass in one call, as in ``RowCollector``.
@safe
final class RowComparison {
  enum Expectation: Int, CaseIterable {
    case any
    /// In the columns that the change sets.
    case changed
    case deleted
    /// Deleted, and its copy was found.
    case deletedWithCopy
    /// Deleted, and this is the first copy found.
    case copied
  }

  /// A function has at most 127 arguments (<https://www.sqlite.org/limits.html>); the first one is
  /// a number.
  private static let mostPairs = 63
  private static let differs = "_batch_differs"
  private static let counts = "_batch_counts"
  private static let expected = "_batch_expected"

  private let selected: SelectedRows?
  private var encoder = EncodedKey.Encoder()
  private(set) var pairs = 0
  /// The number of rows that differ as expected, by raw value of the expectation.
  private var expectedCounts = [Int](repeating: 0, count: Expectation.allCases.count)
  var columns = ColumnCounts(columns: 0, samples: 0)

  init(_ selected: SelectedRows?) {
    self.selected = selected
  }

  func count(_ expectation: Expectation) -> Int { expectedCounts[expectation.rawValue] }

  // MARK: In SQL

  /// The SQL for whether the values of any column differ in two rows.
  static func differ(_ columns: [String], of row: String, and other: String) -> String {
    let calls = pairs(columns, of: row, and: other).map { "\(differs)(0\($1))" }
    return "(\(calls.joined(separator: " OR ")))"
  }

  /// The SQL for whether to report two rows; counts them and their differing columns, except those
  /// in `free`.
  static func count(
    _ columns: [String],
    but free: Set<String> = [],
    of row: String,
    and other: String
  ) -> String {
    // OR stops evaluating once the answer is known, but all operands must count.
    let calls = pairs(columns, but: free, of: row, and: other).map { "\(counts)(\($0)\($1))" }
    return "(\(calls.joined(separator: " | ")))"
  }

  /// The SQL that counts more differing columns of two rows that are already counted.
  static func count(
    more columns: [(number: Int, name: String)],
    of row: String,
    and other: String
  ) -> String {
    let calls = columns.map { number, name in
      "\(counts)(\(~number), \(row).\(SQLName.quoted(name)), \(other).\(SQLName.quoted(name)))"
    }
    return "(\(calls.joined(separator: " | ")))"
  }

  /// The values of columns in two rows, as the arguments of each call, with the number of its first
  /// column; excluded columns become constants.
  private static func pairs(
    _ columns: [String],
    but free: Set<String> = [],
    of row: String,
    and other: String
  ) -> [(first: Int, arguments: String)] {
    stride(from: 0, to: max(columns.count, 1), by: mostPairs).map { first in
      let pairs = columns[first..<min(first + mostPairs, columns.count)].map { column in
        let name = SQLName.quoted(column)
        return free.contains(column) ? ", NULL, NULL" : ", \(row).\(name), \(other).\(name)"
      }
      return (first, pairs.joined())
    }
  }

  /// The SQL for whether the row of a key may differ in this way.
  static func isExpected(_ expectation: Expectation, key: [String]) -> String {
    "\(expected)(\(expectation.rawValue), \(key.joined(separator: ", ")))"
  }

  // MARK: Functions

  /// Registers the functions on a connection, which retains this object.
  func register(in connection: Connection) throws(BatchError) {
    try unsafe register(Self.differs, in: connection) { call, count, arguments in
      guard let context = unsafe sqlite3_user_data(call), let arguments = unsafe arguments else {
        return
      }
      let values = unsafe UnsafeMutableBufferPointer(start: arguments, count: Int(count))
      let result = unsafe Unmanaged<RowComparison>.fromOpaque(context)._withUnsafeGuaranteedRef {
        unsafe $0.differ(values)
      }
      unsafe sqlite3_result_int(call, result ? 1 : 0)
    }
    try unsafe register(Self.counts, in: connection) { call, count, arguments in
      guard let context = unsafe sqlite3_user_data(call), let arguments = unsafe arguments else {
        return
      }
      let values = unsafe UnsafeMutableBufferPointer(start: arguments, count: Int(count))
      let result = unsafe Unmanaged<RowComparison>.fromOpaque(context)._withUnsafeGuaranteedRef {
        unsafe $0.count(values)
      }
      unsafe sqlite3_result_int(call, result ? 1 : 0)
    }
    try unsafe register(Self.expected, in: connection) { call, count, arguments in
      guard let context = unsafe sqlite3_user_data(call), let arguments = unsafe arguments else {
        return
      }
      let values = unsafe UnsafeMutableBufferPointer(start: arguments, count: Int(count))
      let result = unsafe Unmanaged<RowComparison>.fromOpaque(context)._withUnsafeGuaranteedRef {
        unsafe $0.expects(values)
      }
      unsafe sqlite3_result_int(call, result ? 1 : 0)
    }
  }

  private func register(
    _ name: String,
    in connection: Connection,
    _ body:
      @escaping @convention(c) (
        OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?
      ) -> Void
  ) throws(BatchError) {
    let status = unsafe sqlite3_create_function_v2(
      connection.database,
      name,
      -1,
      SQLITE_UTF8 | SQLITE_DIRECTONLY,
      Unmanaged.passRetained(self).toOpaque(),
      body,
      nil,
      nil,
      { context in
        if let context = unsafe context {
          unsafe Unmanaged<RowComparison>.fromOpaque(context).release()
        }
      }
    )
    guard status == SQLITE_OK else {
      throw connection.error(status, "create function", sql: nil)
    }
  }

  private func differ(_ arguments: UnsafeMutableBufferPointer<OpaquePointer?>) -> Bool {
    var index = 1
    while index + 1 < arguments.count {
      if unsafe Self.differ(arguments[index], arguments[index + 1]) { return true }
      index += 2
    }
    return false
  }

  private func count(_ arguments: UnsafeMutableBufferPointer<OpaquePointer?>) -> Bool {
    var first = unsafe Int(sqlite3_value_int(arguments[0]))
    if first == 0 {
      pairs += 1
      columns.beginRow()
    }
    if first < 0 { first = ~first }
    var isTold = false
    var index = 1
    while index + 1 < arguments.count {
      if unsafe Self.differ(arguments[index], arguments[index + 1]),
        columns.count(first + index / 2)
      {
        isTold = true
      }
      index += 2
    }
    return isTold
  }

  /// Whether two values differ, in storage class or bytes.
  private static func differ(_ value: OpaquePointer?, _ other: OpaquePointer?) -> Bool {
    let storageClass = unsafe sqlite3_value_type(value)
    guard unsafe storageClass == sqlite3_value_type(other) else { return true }
    switch storageClass {
    case SQLITE_NULL: return false
    case SQLITE_INTEGER:
      return unsafe sqlite3_value_int64(value) != sqlite3_value_int64(other)
    case SQLITE_FLOAT:
      let bits = unsafe sqlite3_value_double(value).bitPattern
      return unsafe bits != sqlite3_value_double(other).bitPattern
    default:
      // Reading text as a blob avoids a conversion; both databases have the same encoding.
      let (start, otherStart) = unsafe (sqlite3_value_blob(value), sqlite3_value_blob(other))
      let count = unsafe sqlite3_value_bytes(value)
      guard unsafe count == sqlite3_value_bytes(other) else { return true }
      guard let start = unsafe start, let otherStart = unsafe otherStart else { return false }
      return unsafe memcmp(start, otherStart, Int(count)) != 0
    }
  }

  private func expects(_ arguments: UnsafeMutableBufferPointer<OpaquePointer?>) -> Bool {
    guard let selected, let position = unsafe position(in: selected, arguments),
      let expectation = unsafe Expectation(rawValue: Int(sqlite3_value_int(arguments[0])))
    else { return false }
    switch expectation {
    case .any, .changed, .deleted: break
    case .deletedWithCopy: guard selected.isMarked(position) else { return false }
    case .copied: guard selected.mark(position) else { return false }
    }
    expectedCounts[expectation.rawValue] += 1
    return true
  }

  private func position(
    in selected: SelectedRows,
    _ arguments: UnsafeMutableBufferPointer<OpaquePointer?>
  ) -> Int? {
    if arguments.count == 2, unsafe sqlite3_value_type(arguments[1]) == SQLITE_INTEGER {
      return unsafe selected.position(of: sqlite3_value_int64(arguments[1]))
    }
    encoder.removeAll()
    for index in 1..<arguments.count {
      let value = unsafe arguments[index]
      switch unsafe sqlite3_value_type(value) {
      case SQLITE_INTEGER: unsafe encoder.append(sqlite3_value_int64(value))
      case SQLITE_FLOAT: unsafe encoder.append(sqlite3_value_double(value))
      case SQLITE_NULL: encoder.appendNull()
      case let storageClass:
        let isText = storageClass == SQLITE_TEXT
        let start =
          unsafe isText
          ? UnsafeRawPointer(sqlite3_value_text(value))
          : UnsafeRawPointer(sqlite3_value_blob(value))
        let count = unsafe start == nil ? 0 : Int(sqlite3_value_bytes(value))
        let bytes = unsafe UnsafeRawBufferPointer(start: start, count: count)
        if isText {
          unsafe encoder.append(textBytes: bytes)
        } else {
          unsafe encoder.append(blob: bytes)
        }
      }
    }
    return selected.position(of: encoder)
  }
}
