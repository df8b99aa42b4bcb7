/// A walk over the keys of a sorted list that looks one key ahead.
protocol KeyCursor {
  init(_ list: IdentifierList) throws(BatchError)
  /// Whether the walk is over.
  var isAtEnd: Bool { get }
  /// Goes to the next key.
  mutating func advance() throws(BatchError)
  /// Below, at or above zero: whether this key comes before the other one.
  func order(_ other: Self) -> Int
  /// Adds this key to a list.
  func append(to builder: inout IdentifierListBuilder)
}

/// A walk over integer keys.
struct IntegerCursor: KeyCursor {
  private let list: IdentifierList
  private var buffer: [Int64] = []
  private var index = 0
  private var position = 0
  private(set) var current: Int64 = 0
  private(set) var isAtEnd = false

  init(_ list: IdentifierList) throws(BatchError) {
    self.list = list
    try advance()
  }

  mutating func advance() throws(BatchError) {
    if index == buffer.count {
      guard position < list.count else {
        isAtEnd = true
        return
      }
      let end = min(position + SegmentCoding.plainCount, list.count)
      buffer.removeAll(keepingCapacity: true)
      try list.appendIntegers(in: position..<end, to: &buffer)
      position = end
      index = 0
    }
    current = buffer[index]
    index += 1
  }

  func order(_ other: IntegerCursor) -> Int {
    current == other.current ? 0 : (current < other.current ? -1 : 1)
  }

  func append(to builder: inout IdentifierListBuilder) {
    builder.append(current)
  }
}

/// A walk over encoded keys.
struct EncodedCursor: KeyCursor {
  private let list: IdentifierList
  private var buffer = EncodedKeys()
  private var index = -1
  private var position = 0
  private(set) var isAtEnd = false

  init(_ list: IdentifierList) throws(BatchError) {
    self.list = list
    try advance()
  }

  mutating func advance() throws(BatchError) {
    index += 1
    guard index >= buffer.count else { return }
    guard position < list.count else {
      isAtEnd = true
      return
    }
    let end = min(position + SegmentCoding.plainCount, list.count)
    buffer.removeAll()
    try list.appendEncodedKeys(in: position..<end, to: &buffer)
    position = end
    index = 0
  }

  func order(_ other: EncodedCursor) -> Int {
    buffer.withBytes(at: index) { left in
      other.buffer.withBytes(at: other.index) { right in compareBytes(left, right) }
    }
  }

  func append(to builder: inout IdentifierListBuilder) {
    buffer.withBytes(at: index) { builder.append(encoded: $0) }
  }
}
