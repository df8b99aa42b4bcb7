/// A cursor over the keys of a sorted list that sees one key ahead, and further where many keys are
/// stored as one.
protocol KeyCursor {
  init(_ list: PackedIdentifiers) throws(BatchError)
  /// Whether the cursor is at the end.
  var isAtEnd: Bool { get }
  /// How many keys, starting with this one, are stored as one.
  var stretchCount: Int { get }
  /// Advances by this many keys, at most ``stretchCount``.
  mutating func advance(_ count: Int) throws(BatchError)
  /// Below, at or above zero: how this key compares to the other cursor's.
  func order(_ other: Self) -> Int
  /// How many keys of this stretch precede the key of the other one, which comes after this key.
  func count(before other: Self) -> Int
  /// How many leading keys both stretches share, which begin with the same key.
  func count(inCommonWith other: Self) -> Int
  /// Adds this many keys, at most ``stretchCount``, to a list.
  func append(_ count: Int, to builder: inout IdentifierListBuilder)
}

/// A cursor over integer keys.
struct IntegerCursor: KeyCursor {
  private let list: PackedIdentifiers
  /// The rest of the current block, the next part last.
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

/// A cursor over encoded keys.
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
