import BatchRuns
import BatchIdentifiers
import CSQLite

/// The SQL functions that supply and verify the rows of a chunk.
///
/// `_batch_value(column, rowid, current)` is the value computed for a row, or `current` if none was
/// given. Without a rowid, the row is the one for which the statement was bound.
/// `_batch_same(column, rowid, value, …)` is whether a row is still as it was read.
///
/// One `UPDATE` over a range of rows gets each row's values here, at half the cost of a statement
/// per row.
@safe
final class ValueFunction {
  static let name = "_batch_value"

  enum Lookup {
    /// Consecutive rowids starting at `first`.
    case run(first: Int64)
    case keys([Int64])
    /// The single row for which the statement is bound.
    case single
  }

  var block = ValueBlock(columns: 0, capacity: 0)
  /// The rows as they were read, in the block's order.
  var expected: [[SQLValue]] = []
  /// The block's row for the statement's first row.
  private var start = 0
  private var lookup = Lookup.single
  /// The index of the last key found; rows nearly always ascend.
  private var cursor = 0

  /// Registers the functions on a connection, which must not outlive this object.
  func register(in database: OpaquePointer) -> Int32 {
    let status = unsafe registerSame(in: database)
    guard status == SQLITE_OK else { return status }
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    return unsafe sqlite3_create_function_v2(
      database,
      Self.name,
      -1,
      SQLITE_UTF8 | SQLITE_DIRECTONLY,
      context,
      { call, count, arguments in
        guard let context = unsafe sqlite3_user_data(call), let arguments = unsafe arguments else {
          return
        }
        unsafe Unmanaged<ValueFunction>.fromOpaque(context)._withUnsafeGuaranteedRef {
          unsafe $0.answer(call, count, arguments)
        }
      },
      nil,
      nil,
      nil
    )
  }

  /// Makes the next statement find its rows by `lookup`, starting at row `start` of the block.
  func find(_ lookup: Lookup, from start: Int) {
    self.lookup = lookup
    self.start = start
    cursor = 0
  }

  private func answer(
    _ call: OpaquePointer?,
    _ count: Int32,
    _ arguments: UnsafeMutablePointer<OpaquePointer?>
  ) {
    let column = Int(unsafe sqlite3_value_int64(arguments[0]))
    let row = unsafe row(arguments[1])
    switch block.kind(row, column) {
    case .null: unsafe sqlite3_result_null(call)
    case .integer: unsafe sqlite3_result_int64(call, block.word(row, column))
    case .real: unsafe sqlite3_result_double(call, block.real(row, column))
    case .text:
      unsafe block.bytes(row, column).withUnsafeBytes {
        unsafe sqlite3_result_text64(
          call,
          ($0.baseAddress ?? UnsafeRawPointer(bitPattern: 1))?
            .assumingMemoryBound(to: CChar.self),
          UInt64($0.count),
          Statement.transient,
          UInt8(SQLITE_UTF8)
        )
      }
    case .blob:
      unsafe block.bytes(row, column).withUnsafeBytes {
        unsafe sqlite3_result_blob64(
          call,
          $0.baseAddress ?? UnsafeRawPointer(bitPattern: 1),
          UInt64($0.count),
          Statement.transient
        )
      }
    case .unset:
      unsafe sqlite3_result_value(call, arguments[Int(count) - 1])
    }
  }

  private func row(_ rowID: OpaquePointer?) -> Int {
    switch lookup {
    case .run(let first): start + Int(unsafe sqlite3_value_int64(rowID) &- first)
    case .keys(let keys): start + index(of: unsafe sqlite3_value_int64(rowID), in: keys)
    case .single: start
    }
  }

  private func index(of key: Int64, in keys: [Int64]) -> Int {
    if cursor < keys.count, keys[cursor] == key { return cursor }
    cursor =
      cursor + 1 < keys.count && keys[cursor + 1] == key
      ? cursor + 1 : keys.partitioningIndex { $0 >= key }
    return cursor
  }
}

extension ValueFunction {
  private static let sameName = "_batch_same"
  /// A function has at most 127 arguments (<https://www.sqlite.org/limits.html>); the first two are
  /// not values.
  private static let mostValues = 125

  /// The condition that some columns of a row are unchanged; `rowID` names its rowid.
  static func sameCondition(_ columns: [String], rowID: String) -> String {
    stride(from: 0, to: columns.count, by: mostValues)
      .map { first in
        let part = columns[first..<min(first + mostValues, columns.count)]
        return "\(sameName)(\(first), \(rowID), \(SQLName.list(Array(part))))"
      }
      .joined(separator: " AND ")
  }

  fileprivate func registerSame(in database: OpaquePointer) -> Int32 {
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    return unsafe sqlite3_create_function_v2(
      database,
      Self.sameName,
      -1,
      SQLITE_UTF8 | SQLITE_DIRECTONLY,
      context,
      { call, count, arguments in
        guard let context = unsafe sqlite3_user_data(call), let arguments = unsafe arguments else {
          return
        }
        unsafe Unmanaged<ValueFunction>.fromOpaque(context)._withUnsafeGuaranteedRef {
          let values = unsafe UnsafeMutableBufferPointer(start: arguments, count: Int(count))
          unsafe sqlite3_result_int(call, $0.isSame(values) ? 1 : 0)
        }
      },
      nil,
      nil,
      nil
    )
  }

  /// Whether the values after the first column and the rowid are as they were read.
  private func isSame(_ arguments: UnsafeMutableBufferPointer<OpaquePointer?>) -> Bool {
    let first = Int(unsafe sqlite3_value_int64(arguments[0]))
    let row = unsafe row(arguments[1])
    guard expected.indices.contains(row) else { return false }
    for index in 2..<arguments.count {
      let value = unsafe arguments[index]
      switch (expected[row][first + index - 2], unsafe sqlite3_value_type(value)) {
      case (.null, SQLITE_NULL): continue
      case (.integer(let old), SQLITE_INTEGER):
        if unsafe sqlite3_value_int64(value) != old { return false }
      case (.real(let old), SQLITE_FLOAT):
        if unsafe sqlite3_value_double(value) != old { return false }
      case (.text(var old), SQLITE_TEXT):
        let text = unsafe sqlite3_value_text(value)
        let count = Int(unsafe sqlite3_value_bytes(value))
        let isSame = old.withUTF8 { bytes in
          unsafe bytes.elementsEqual(UnsafeBufferPointer(start: text, count: count))
        }
        if !isSame { return false }
      case (.blob(let old), SQLITE_BLOB):
        let bytes = unsafe sqlite3_value_blob(value)
        let count = Int(unsafe sqlite3_value_bytes(value))
        let isSame = unsafe old.elementsEqual(UnsafeRawBufferPointer(start: bytes, count: count))
        if !isSame { return false }
      default: return false
      }
    }
    return true
  }
}
