/// A cursor over the keys of a sorted list that sees one key ahead, and more if many keys are
/// stored as one.
protocol KeyCursor {
  init(_ list: PackedIdentifiers) throws(BatchError)
  var isAtEnd: Bool { get }
  /// The number of keys, starting with this one, that are stored as one.
  var stretchCount: Int { get }
  /// Advances by this many keys, at most ``stretchCount``.
  mutating func advance(_ count: Int) throws(BatchError)
  /// Compares this key with that of the other cursor: negative, zero or positive.
  func order(_ other: Self) -> Int
  /// The number of keys in this stretch before the key of the other cursor, which comes after this
  /// key.
  func count(before other: Self) -> Int
  /// The number of leading keys that both stretches share; both begin with the same key.
  func count(inCommonWith other: Self) -> Int
  /// Adds this many keys, at most ``stretchCount``, to a list.
  func append(_ count: Int, to builder: inout IdentifierListBuilder)
}

struct IntegerCursor: KeyCursor {
  private let list: PackedIdentifiers
  /// The rest of the current block; the next part is last.
  private var parts: [IntegerPart] = []
  private var keys: [Int64] = []
  private var index = 0
  private var nextBlock = 0
  private var stretch = IntegerStretch(0)
  private var scratch: [UInt8] = []
  private(set) var isAtEnd = false

  var stretchCount: Int { stretch.count }

  init(_ list: PackedIdentifiers) throws(BatchError) {
    self.list = list
    try advance(1)
  }

  mutating func advance(_ count: Int) throws(BatchError) {
    if count < stretch.count {
      stretch = stretch[count..<stretch.count]
      return
    }
    while index == keys.count {
      while parts.isEmpty {
        guard nextBlock < list.blockCount else {
          isAtEnd = true
          return
        }
        let all = 0..<list.directory.count(ofBlock: nextBlock)
        parts = try list.integerParts(ofBlock: nextBlock, all, scratch: &scratch).reversed()
        nextBlock += 1
      }
      switch parts.removeLast() {
      case .keys(let keys):
        self.keys = keys
        index = 0
      case .stretch(let stretch):
        // A list in a file has not been checked before.
        guard stretch.step > 0 || stretch.count == 1 else {
          throw list.damage(
            ByteReader.Damage("its keys are not in order"),
            block: nextBlock - 1
          )
        }
        self.stretch = stretch
        return
      }
    }
    stretch = IntegerStretch(keys[index])
    index += 1
  }

  func order(_ other: IntegerCursor) -> Int {
    let (key, otherKey) = (stretch.first, other.stretch.first)
    return key == otherKey ? 0 : (key < otherKey ? -1 : 1)
  }

  func count(before other: IntegerCursor) -> Int {
    stretch.count == 1 ? 1 : stretch.count(below: other.stretch.first)
  }

  func count(inCommonWith other: IntegerCursor) -> Int {
    stretch.step == other.stretch.step ? min(stretch.count, other.stretch.count) : 1
  }

  func append(_ count: Int, to builder: inout IdentifierListBuilder) {
    builder.append(stretch[0..<count])
  }
}

struct EncodedCursor: KeyCursor {
  private let list: PackedIdentifiers
  private var buffer = EncodedKeys()
  private var index = -1
  private var position = 0
  private(set) var isAtEnd = false

  var stretchCount: Int { 1 }

  init(_ list: PackedIdentifiers) throws(BatchError) {
    self.list = list
    try advance(1)
  }

  mutating func advance(_ count: Int) throws(BatchError) {
    index += count
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
    compareBytes(buffer.span(at: index), other.buffer.span(at: other.index))
  }

  func count(before other: EncodedCursor) -> Int { 1 }

  func count(inCommonWith other: EncodedCursor) -> Int { 1 }

  func append(_ count: Int, to builder: inout IdentifierListBuilder) {
    builder.append(encoded: buffer.span(at: index))
  }
}
