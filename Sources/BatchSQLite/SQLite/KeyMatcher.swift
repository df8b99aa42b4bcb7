import BatchIdentifiers
import CSQLite

/// Finds the keys of rows among the keys of a chunk; fastest if the rows come in nearly the same
/// order.
struct KeyMatcher {
  enum Keys {
    case integers([Int64])
    case encoded(EncodedKeys)

    var count: Int {
      switch self {
      case .integers(let integers): integers.count
      case .encoded(let encoded): encoded.count
      }
    }
  }

  /// The keys if they are integers; not in an enum, because its payload would be retained for each
  /// row.
  private let integers: [Int64]
  private let encoded: EncodedKeys
  private let isEncoded: Bool
  private var next = 0
  /// Whether the rows found so far came in the order of the keys.
  private(set) var isInOrder = true
  private var encoder = EncodedKey.Encoder()
  /// Filled when first needed.
  private var table = HashTable(count: 0)
  /// How many more rows may have other keys.
  private var missesLeft: Int
  private(set) var isFarFromRows = false

  init(_ keys: Keys, missLimit: Int = .max) {
    missesLeft = missLimit
    switch keys {
    case .integers(let integers):
      (self.integers, encoded, isEncoded) = (integers, EncodedKeys(), false)
    case .encoded(let encoded): (integers, self.encoded, isEncoded) = ([], encoded, true)
    }
  }

  mutating func number(of values: UnsafeBufferPointer<OpaquePointer?>) -> Int? {
    guard isEncoded else {
      guard unsafe sqlite3_value_type(values[0]) == SQLITE_INTEGER else { return missed() }
      return number(of: unsafe sqlite3_value_int64(values[0]))
    }
    encoder.removeAll()
    for index in values.indices { unsafe encoder.append(values[index]) }
    if next < encoded.count, encoded.isKey(encoder.bytes, at: next) { return found(next) }
    // Several functions of one row ask for the same key.
    if next > 0, encoded.isKey(encoder.bytes, at: next - 1) { return next - 1 }
    if table.isEmpty {
      table = HashTable(count: encoded.count)
      for number in encoded.indices {
        let hash = unsafe encoded.withBytes(at: number) { unsafe table.hash($0) }
        table.insert(number, hash: hash)
      }
    }
    let hash = unsafe encoder.bytes.withUnsafeBytes { unsafe table.hash($0) }
    let number = table.first(hash) { encoded.isKey(encoder.bytes, at: $0) }
    return number.map { found($0) } ?? missed()
  }

  private mutating func number(of integer: Int64) -> Int? {
    if next < integers.count, integers[next] == integer { return found(next) }
    if next > 0, integers[next - 1] == integer { return next - 1 }
    if table.isEmpty {
      table = HashTable(count: integers.count)
      for (number, key) in integers.enumerated() { table.insert(number, hash: table.hash(key)) }
    }
    let number = table.first(table.hash(integer)) { integers[$0] == integer }
    return number.map { found($0) } ?? missed()
  }

  private mutating func found(_ number: Int) -> Int {
    if number < next { isInOrder = false }
    next = number + 1
    return number
  }

  private mutating func missed() -> Int? {
    missesLeft -= 1
    if missesLeft < 0 { isFarFromRows = true }
    return nil
  }
}

/// Maps hashes of keys to the numbers of the keys.
///
/// If every second row of a range is not selected, half of the look-ups find nothing. A dictionary
/// of keys took a third of the time of such a deletion.
private struct HashTable {
  /// Numbers plus one; zero in empty slots, at least half of all.
  private var slots: [Int32]
  private let mask: Int
  /// Random, so that keys cannot be chosen to collide.
  private let seed = UInt64.random(in: 0 ... .max) | 1

  init(count: Int) {
    var size = count == 0 ? 0 : 2
    while size < count * 2 { size *= 2 }
    slots = Array(repeating: 0, count: size)
    mask = size - 1
  }

  var isEmpty: Bool { slots.isEmpty }

  mutating func insert(_ number: Int, hash: UInt64) {
    var slot = Int(truncatingIfNeeded: hash) & mask
    while slots[slot] != 0 { slot = (slot + 1) & mask }
    slots[slot] = Int32(truncatingIfNeeded: number + 1)
  }

  /// The first number with this hash for which `isRight` is true.
  func first(_ hash: UInt64, where isRight: (Int) -> Bool) -> Int? {
    var slot = Int(truncatingIfNeeded: hash) & mask
    while slots[slot] != 0 {
      let number = Int(slots[slot]) - 1
      if isRight(number) { return number }
      slot = (slot + 1) & mask
    }
    return nil
  }

  func hash(_ integer: Int64) -> UInt64 { mixed(UInt64(bitPattern: integer), into: seed) }

  func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    var hash = seed ^ UInt64(bytes.count)
    var offset = 0
    while offset + 8 <= bytes.count {
      let word = unsafe bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      hash = mixed(word, into: hash)
      offset += 8
    }
    var rest: UInt64 = 0
    while offset < bytes.count {
      rest = rest << 8 | UInt64(unsafe bytes[offset])
      offset += 1
    }
    return mixed(rest, into: hash)
  }

  /// Mixes as wyhash does: combines both halves of the product with a secret number.
  private func mixed(_ word: UInt64, into hash: UInt64) -> UInt64 {
    let product = (word ^ hash).multipliedFullWidth(by: seed ^ 0x9E37_79B9_7F4A_7C15)
    return product.high ^ product.low
  }
}

extension EncodedKey.Encoder {
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
