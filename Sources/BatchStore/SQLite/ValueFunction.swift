import BatchIdentifiers
import CSQLite

/// The SQL function `_batch_value(column, rowid, current)`: what was computed for a row.
///
/// One `UPDATE` over a range of rows takes each row's values from here, which costs half of what a
/// statement for each row does. Without a rowid it gives the values of the row that the statement
/// was bound for. A value that was not given is `current`.
@safe
final class ValueFunction {
  static let name = "_batch_value"

  /// How a row is found in the block.
  enum Lookup {
    /// Neighbouring rowids from `first` on.
    case run(first: Int64)
    /// Rowids, ascending.
    case keys([Int64])
    /// The one row that the statement is bound for.
    case single
  }

  /// What was computed.
  var block = ValueBlock(columns: 0, capacity: 0)
  /// The row of the block that the first row of the statement has.
  private var start = 0
  private var lookup = Lookup.single
  /// Where the last key was found: rows come in ascending order nearly always.
  private var cursor = 0

  /// Makes the function known to a connection, which must not outlive this object.
  func register(in database: OpaquePointer) -> Int32 {
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

  /// Has the next statement find its rows by `lookup`, from row `start` of the block on.
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
    let row =
      switch lookup {
      case .run(let first): start + Int(unsafe sqlite3_value_int64(arguments[1]) &- first)
      case .keys(let keys): start + index(of: unsafe sqlite3_value_int64(arguments[1]), in: keys)
      case .single: start
      }
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

  private func index(of key: Int64, in keys: [Int64]) -> Int {
    if cursor < keys.count, keys[cursor] == key { return cursor }
    cursor =
      cursor + 1 < keys.count && keys[cursor + 1] == key
      ? cursor + 1 : keys.partitioningIndex { $0 >= key }
    return cursor
  }
}
