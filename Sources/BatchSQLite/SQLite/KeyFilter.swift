import BatchIdentifiers
import CSQLite

/// The SQL functions `_batch_selected(rowid)`, whether a rowid belongs to the chunk,
/// `_batch_number(key, …)`, which of its keys one is, and `_batch_found(rowid, key, …)`, which also
/// notes where the row is; NULL if none.
///
/// A range with such a filter reads and drops unselected rows, in one statement. If the selected
/// rows are close together, that is cheaper than a statement for each.
@safe
final class KeyFilter {
  static let functionName = "_batch_selected"
  static let numberName = "_batch_number"
  static let foundName = "_batch_found"

  private var keys: [Int64] = []
  /// The index of the last key found: rows ascend, so the next is near.
  private var cursor = 0
  private var matcher = KeyMatcher(.integers([]))
  /// The rowid of the row of each key, as far as `_batch_found` has noted it.
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

  /// `_batch_number` and `_batch_found`, in the form that SQLite calls.
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

  /// Sets the selected keys, ascending.
  func select(_ keys: [Int64]) {
    self.keys = keys
    cursor = 0
  }

  /// Sets the keys to number.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - notesRows: Whether to note the rows that `_batch_found` finds.
  ///   - missLimit: How many rows may have other keys; one more is an error of the statement.
  func number(_ keys: KeyMatcher.Keys, notingRows notesRows: Bool, missLimit: Int) {
    matcher = KeyMatcher(keys, missLimit: missLimit)
    rowIDs = notesRows ? Array(repeating: nil, count: keys.count) : []
  }

  /// Whether the rows found so far came in the order of the keys.
  var isInOrder: Bool { matcher.isInOrder }

  /// Whether there were too many rows with other keys.
  var isFarFromRows: Bool { matcher.isFarFromRows }

  private func contains(_ key: Int64) -> Bool {
    if cursor < keys.count, keys[cursor] > key, cursor > 0, keys[cursor - 1] >= key { cursor = 0 }
    while cursor < keys.count, keys[cursor] < key { cursor += 1 }
    return cursor < keys.count && keys[cursor] == key
  }
}
