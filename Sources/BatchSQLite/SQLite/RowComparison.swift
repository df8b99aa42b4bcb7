import BatchIdentifiers
import BatchPlatform
import BatchRuns
import CSQLite

/// The SQL functions that compare rows of two databases on one connection.
///
/// `_batch_differs(n, a, b, …)` is whether the values of any pair differ, in storage class or
/// bytes. `_batch_counts(column, a, b, …)` counts the columns that differ and is whether to report
/// the row. `column` is the number of the first column; 0 also counts the row.
/// `_batch_notes(column, a, b)` counts a column that may differ, and is 0. `_batch_row(question,
/// run, key…)` answers a ``Question`` about the row of this key in the list of a run. All values of
/// two rows pass in one call, as in ``RowCollector``.
@safe
final class RowComparison {
  enum Question: Int {
    /// The raw value of its outcome; 0 if the run has not done it.
    case outcome
    /// Whether it was deleted, and this is the first copy found.
    case isFirstCopy
    /// Whether it was deleted, and its copy was found.
    case hasCopy
  }

  /// A function has at most 127 arguments (<https://www.sqlite.org/limits.html>); the first one is
  /// a number.
  private static let mostPairs = 63
  private static let differs = "_batch_differs"
  private static let counts = "_batch_counts"
  private static let notes = "_batch_notes"
  private static let row = "_batch_row"

  private let runs: [SelectedRows]
  private var encoder = EncodedKey.Encoder()
  private(set) var pairs = 0
  private(set) var copies = 0
  var columns = ColumnCounts(columns: 0, samples: 0)
  /// The number of rows that differ in each column where they may.
  var noted: [Int] = []

  init(_ runs: [SelectedRows] = []) {
    self.runs = runs
  }

  // MARK: In SQL

  /// A value and what it should be, in SQL.
  typealias Pair = (value: String, expected: String)

  /// The SQL for whether the values of any pair differ.
  static func differ(_ pairs: [Pair]) -> String {
    let calls = arguments(pairs).map { "\(differs)(0\($1))" }
    return "(\(calls.joined(separator: " OR ")))"
  }

  /// The SQL for whether to report two rows, whose columns are the pairs; counts the row and the
  /// pairs that differ.
  static func count(_ pairs: [Pair]) -> String {
    // OR stops evaluating once the answer is known, but all operands must count.
    let calls = arguments(pairs).map { "\(counts)(\($0)\($1))" }
    return "(\(calls.joined(separator: " | ")))"
  }

  /// The SQL that counts that a column differs where it may; it is 0.
  static func note(_ column: Int, _ pair: Pair) -> String {
    "\(notes)(\(column), \(pair.value), \(pair.expected))"
  }

  /// The arguments of each call, with the number of its first pair.
  private static func arguments(_ pairs: [Pair]) -> [(first: Int, arguments: String)] {
    stride(from: 0, to: max(pairs.count, 1), by: mostPairs).map { first in
      let pairs = pairs[first..<min(first + mostPairs, pairs.count)]
      return (first, pairs.map { ", \($0.value), \($0.expected)" }.joined())
    }
  }

  /// The SQL of the answer to a question about the row of a key.
  static func ask(_ question: Question, ofRun run: Int, key: [String]) -> String {
    "\(row)(\(question.rawValue), \(run), \(key.joined(separator: ", ")))"
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
    try unsafe register(Self.notes, in: connection) { call, count, arguments in
      guard let context = unsafe sqlite3_user_data(call), let arguments = unsafe arguments else {
        return
      }
      let values = unsafe UnsafeMutableBufferPointer(start: arguments, count: Int(count))
      unsafe Unmanaged<RowComparison>.fromOpaque(context)._withUnsafeGuaranteedRef {
        unsafe $0.note(values)
      }
      unsafe sqlite3_result_int(call, 0)
    }
    try unsafe register(Self.row, in: connection) { call, count, arguments in
      guard let context = unsafe sqlite3_user_data(call), let arguments = unsafe arguments else {
        return
      }
      let values = unsafe UnsafeMutableBufferPointer(start: arguments, count: Int(count))
      let result = unsafe Unmanaged<RowComparison>.fromOpaque(context)._withUnsafeGuaranteedRef {
        unsafe $0.answer(values)
      }
      unsafe sqlite3_result_int(call, result)
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
    let first = unsafe Int(sqlite3_value_int(arguments[0]))
    if first == 0 {
      pairs += 1
      columns.beginRow()
    }
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

  private func note(_ arguments: UnsafeMutableBufferPointer<OpaquePointer?>) {
    guard unsafe Self.differ(arguments[1], arguments[2]) else { return }
    noted[unsafe Int(sqlite3_value_int(arguments[0]))] += 1
  }

  private func answer(_ arguments: UnsafeMutableBufferPointer<OpaquePointer?>) -> Int32 {
    let run = runs[unsafe Int(sqlite3_value_int(arguments[1]))]
    guard let place = unsafe place(in: run, arguments) else { return 0 }
    let outcome = run.outcome(at: place)
    switch unsafe Question(rawValue: Int(sqlite3_value_int(arguments[0]))) {
    case .isFirstCopy:
      guard outcome == .succeeded, run.mark(place) else { return 0 }
      copies += 1
      return 1
    case .hasCopy: return outcome == .succeeded && run.isMarked(place) ? 1 : 0
    case .outcome, nil: return Int32(outcome.rawValue)
    }
  }

  private func place(
    in run: SelectedRows,
    _ arguments: UnsafeMutableBufferPointer<OpaquePointer?>
  ) -> Int? {
    if arguments.count == 3, unsafe sqlite3_value_type(arguments[2]) == SQLITE_INTEGER {
      return unsafe run.place(of: sqlite3_value_int64(arguments[2]))
    }
    encoder.removeAll()
    for index in 2..<arguments.count {
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
    return run.place(of: encoder)
  }
}
