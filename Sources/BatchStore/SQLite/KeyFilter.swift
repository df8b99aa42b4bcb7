import BatchIdentifiers
import CSQLite

/// The SQL functions `_batch_selected(rowid)`, whether a rowid belongs to the chunk, and
/// `_batch_number(key, …)`, which of its keys one is; NULL if none.
///
/// A range with such a filter reads and drops unselected rows, in one statement. If the selected
/// rows are close together, that is cheaper than a statement for each.
@safe
final class KeyFilter {
  static let functionName = "_batch_selected"
  static let numberName = "_batch_number"

  private var keys: [Int64] = []
  /// The index of the last key found: rows ascend, so the next is near.
  private var cursor = 0
  private var matcher = KeyMatcher(.integers([]))

  /// Registers the functions on a connection, which must not outlive this object.
  func register(in database: OpaquePointer) -> Int32 {
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    let status = unsafe sqlite3_create_function_v2(
      database,
      Self.numberName,
      -1,
      SQLITE_UTF8 | SQLITE_DIRECTONLY,
      context,
      { call, count, arguments in
        guard let context = unsafe sqlite3_user_data(call), let arguments = unsafe arguments else {
          return
        }
        let number = unsafe Unmanaged<KeyFilter>.fromOpaque(context)._withUnsafeGuaranteedRef {
          unsafe $0.matcher.number(of: UnsafeBufferPointer(start: arguments, count: Int(count)))
        }
        if let number { unsafe sqlite3_result_int64(call, Int64(number)) }
      },
      nil,
      nil,
      nil
    )
    guard status == SQLITE_OK else { return status }
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

  /// Sets the keys to number.
  func number(_ keys: KeyMatcher.Keys) { matcher = KeyMatcher(keys) }

  /// Whether the rows found so far came in the order of the keys.
  var isInOrder: Bool { matcher.isInOrder }

  private func contains(_ key: Int64) -> Bool {
    if cursor < keys.count, keys[cursor] > key, cursor > 0, keys[cursor - 1] >= key { cursor = 0 }
    while cursor < keys.count, keys[cursor] < key { cursor += 1 }
    return cursor < keys.count && keys[cursor] == key
  }
}

/// Finds the keys of rows among those of a chunk, as rows come in nearly the same order.
struct KeyMatcher {
  enum Keys {
    case integers([Int64])
    case encoded(EncodedKeys)
  }

  private let keys: Keys
  private var next = 0
  /// Whether the rows found so far came in the order of the keys.
  private(set) var isInOrder = true
  private var encoder = EncodedKey.Encoder()
  /// The number of each key; empty until needed.
  private var numbers: [PrimaryKey: Int] = [:]

  init(_ keys: Keys) { self.keys = keys }

  /// The number of the key that a function's arguments are; nil if it is not one of the chunk.
  mutating func number(of values: UnsafeBufferPointer<OpaquePointer?>) -> Int? {
    switch keys {
    case .integers(let integers):
      guard unsafe sqlite3_value_type(values[0]) == SQLITE_INTEGER else { return nil }
      let integer = unsafe sqlite3_value_int64(values[0])
      if next < integers.count, integers[next] == integer { return found(next) }
      // The functions of one row ask for the same key.
      if next > 0, integers[next - 1] == integer { return next - 1 }
      if numbers.isEmpty {
        for (number, key) in integers.enumerated() { numbers[.integer(key)] = number }
      }
      return numbers[.integer(integer)].map { found($0) }
    case .encoded(let encoded):
      encoder.removeAll()
      for index in values.indices { unsafe encoder.append(values[index]) }
      if next < encoded.count, encoded.isKey(encoder.bytes, at: next) { return found(next) }
      if next > 0, encoded.isKey(encoder.bytes, at: next - 1) { return next - 1 }
      if numbers.isEmpty {
        for number in encoded.indices { numbers[.encoded(encoded[number])] = number }
      }
      return numbers[.encoded(encoder.key)].map { found($0) }
    }
  }

  private mutating func found(_ number: Int) -> Int {
    if number < next { isInOrder = false }
    next = number + 1
    return number
  }
}

extension EncodedKey.Encoder {
  /// Appends a function's argument, byte for byte.
  fileprivate mutating func append(_ value: OpaquePointer?) {
    let storageClass = unsafe sqlite3_value_type(value)
    switch storageClass {
    case SQLITE_INTEGER: append(unsafe sqlite3_value_int64(value))
    case SQLITE_FLOAT: append(unsafe sqlite3_value_double(value))
    case SQLITE_TEXT, SQLITE_BLOB:
      let isText = storageClass == SQLITE_TEXT
      let start =
        isText
        ? unsafe UnsafeRawPointer(sqlite3_value_text(value)) : unsafe sqlite3_value_blob(value)
      let count = unsafe start == nil ? 0 : Int(sqlite3_value_bytes(value))
      let bytes = unsafe UnsafeRawBufferPointer(start: start, count: count)
      if isText { unsafe append(textBytes: bytes) } else { unsafe append(blob: bytes) }
    default: appendNull()
    }
  }
}
