import BatchIdentifiers
import CSQLite

/// The SQL functions that filter the rows of a range by the keys of a chunk.
///
/// `_batch_selected(rowid)` is whether a rowid belongs to the chunk. `_batch_number(key, …)` is the
/// number of a key, or NULL if it is not in the chunk. `_batch_found(rowid, key, …)` is the same,
/// and also records the row's location.
///
/// A range with such a filter reads and drops unselected rows in one statement. If the selected
/// rows are close together, that is cheaper than one statement for each.
@safe
final class KeyFilter {
  static let functionName = "_batch_selected"
  static let numberName = "_batch_number"
  static let foundName = "_batch_found"

  private var keys: [Int64] = []
  /// The index of the last key found; rows ascend, so the next one is near.
  private var cursor = 0
  private var matcher = KeyMatcher(.integers([]))
  /// The rowid of each key's row, if `_batch_found` has recorded it.
  private(set) var rowIDs: [Int64?] = []

  /// Registers the functions on a connection, which must not outlive this object.
  func register(in database: OpaquePointer) -> Int32 {
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    for name in [Self.numberName, Self.foundName] {
      let status = unsafe sqlite3_create_function_v2(
        database,
        name,
        -1,
        SQLITE_UTF8 | SQLITE_DIRECTONLY,
        context,
        name == Self.foundName ? Self.find : Self.number,
        nil,
        nil,
        nil
      )
      guard status == SQLITE_OK else { return status }
    }
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

  private typealias Function =
    @convention(c) (
      OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?
    ) -> Void

  private static let number: Function = { call, count, arguments in
    guard let context = unsafe sqlite3_user_data(call), let arguments = unsafe arguments else {
      return
    }
    let key = unsafe UnsafeBufferPointer(start: arguments, count: Int(count))
    unsafe Unmanaged<KeyFilter>.fromOpaque(context)._withUnsafeGuaranteedRef { filter in
      if let number = unsafe filter.matcher.number(of: key) {
        unsafe sqlite3_result_int64(call, Int64(number))
      } else if filter.matcher.isFarFromRows {
        unsafe sqlite3_result_error(call, "too many other rows", -1)
      }
    }
  }

  private static let find: Function = { call, count, arguments in
    guard let context = unsafe sqlite3_user_data(call), let arguments = unsafe arguments else {
      return
    }
    let key = unsafe UnsafeBufferPointer(start: arguments + 1, count: Int(count) - 1)
    let rowID = unsafe sqlite3_value_int64(arguments[0])
    unsafe Unmanaged<KeyFilter>.fromOpaque(context)._withUnsafeGuaranteedRef { filter in
      guard let number = unsafe filter.matcher.number(of: key) else { return }
      filter.rowIDs[number] = rowID
      unsafe sqlite3_result_int64(call, Int64(number))
    }
  }

  func select(_ keys: [Int64]) {
    self.keys = keys
    cursor = 0
  }

  /// Sets the keys to number; the statement fails if more than `missLimit` rows have other keys.
  func number(_ keys: KeyMatcher.Keys, notingRows notesRows: Bool, missLimit: Int) {
    matcher = KeyMatcher(keys, missLimit: missLimit)
    rowIDs = notesRows ? Array(repeating: nil, count: keys.count) : []
  }

  var isInOrder: Bool { matcher.isInOrder }

  var isFarFromRows: Bool { matcher.isFarFromRows }

  private func contains(_ key: Int64) -> Bool {
    if cursor < keys.count, keys[cursor] > key, cursor > 0, keys[cursor - 1] >= key { cursor = 0 }
    while cursor < keys.count, keys[cursor] < key { cursor += 1 }
    return cursor < keys.count && keys[cursor] == key
  }
}
