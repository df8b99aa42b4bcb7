import BatchIdentifiers
import CSQLite

/// The SQL function `_batch_selected(key)`: whether a rowid belongs to the chunk.
///
/// A range with this filter reads and drops unselected rows, in one statement. If the selected rows
/// are close together, that is cheaper than a statement for each.
@safe
final class KeyFilter {
  static let functionName = "_batch_selected"

  private var keys: [Int64] = []
  /// The index of the last key found: rows ascend, so the next is near.
  private var cursor = 0

  /// Registers the function on a connection, which must not outlive this object.
  func register(in database: OpaquePointer) -> Int32 {
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    return unsafe sqlite3_create_function_v2(
      database,
      Self.functionName,
      1,
      SQLITE_UTF8 | SQLITE_DIRECTONLY,
      context,
      { call, _, arguments in
        guard let context = unsafe sqlite3_user_data(call), let key = unsafe arguments?[0] else {
          return
        }
        let filter = unsafe Unmanaged<KeyFilter>.fromOpaque(context)._withUnsafeGuaranteedRef {
          $0.contains(unsafe sqlite3_value_int64(key))
        }
        unsafe sqlite3_result_int(call, filter ? 1 : 0)
      },
      nil,
      nil,
      nil
    )
  }

  /// Sets the selected keys, ascending.
  func select(_ keys: [Int64]) {
    self.keys = keys
    cursor = 0
  }

  private func contains(_ key: Int64) -> Bool {
    if cursor < keys.count, keys[cursor] > key, cursor > 0, keys[cursor - 1] >= key { cursor = 0 }
    while cursor < keys.count, keys[cursor] < key { cursor += 1 }
    return cursor < keys.count && keys[cursor] == key
  }
}
