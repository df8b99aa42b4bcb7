/// The locations of a list's blocks, and the facts for finding a position or a key among them.
struct BlockDirectory: Sendable {
  /// The start of each block, and the end of the last one.
  private(set) var offsets: [Int] = [0]
  /// The position of the first key of each block, and the total count.
  private(set) var positions: [Int] = [0]
  /// The first key of each block, as stored. (Only for integer lists.)
  private(set) var firstKeys: [Int64] = []
  /// The first key of each block. (Only for encoded lists; the keys are empty unless the list is
  /// sorted.)
  private(set) var separators = EncodedKeys()
  private(set) var checksums: [UInt64] = []

  var blockCount: Int { checksums.count }
  var byteCount: Int { offsets[offsets.count - 1] }
  var count: Int { positions[positions.count - 1] }

  mutating func append(
    byteCount: Int,
    count: Int,
    firstKey: Int64,
    separator: [UInt8],
    checksum: UInt64
  ) {
    offsets.append(self.byteCount + byteCount)
    positions.append(self.count + count)
    firstKeys.append(firstKey)
    separators.append(separator.span)
    checksums.append(checksum)
  }

  mutating func append(contentsOf other: BlockDirectory) {
    for index in 0..<other.blockCount {
      append(
        byteCount: other.byteCount(ofBlock: index),
        count: other.count(ofBlock: index),
        firstKey: other.firstKeys[index],
        separator: [UInt8](copying: other.separators.span(at: index)),
        checksum: other.checksums[index]
      )
    }
  }

  mutating func removeSeparators() {
    separators = EncodedKeys()
    for _ in 0..<blockCount { separators.append(Span<UInt8>()) }
  }

  func byteCount(ofBlock index: Int) -> Int { offsets[index + 1] - offsets[index] }
  func count(ofBlock index: Int) -> Int { positions[index + 1] - positions[index] }

  func block(holding position: Int) -> Int {
    positions[1..<max(1, blockCount)].partitioningIndex { $0 > position } - 1
  }

  // MARK: In files

  func encoded(_ keyKind: IdentifierList.KeyKind) -> [UInt8] {
    var bytes: [UInt8] = []
    var previous: Int64 = 0
    for index in 0..<blockCount {
      bytes.appendInteger(checksums[index])
      bytes.appendVarint(UInt64(byteCount(ofBlock: index)))
      bytes.appendVarint(UInt64(count(ofBlock: index)))
      switch keyKind {
      case .integer:
        bytes.appendSignedVarint(firstKeys[index] &- previous)
        previous = firstKeys[index]
      case .encoded:
        let key = separators.span(at: index)
        bytes.appendVarint(UInt64(key.count))
        bytes.append(copying: key)
      }
    }
    return bytes
  }

  init() {}

  /// The directory must fill all of the bytes, and agree with the header of the file.
  init(
    decoding bytes: Span<UInt8>,
    keyKind: IdentifierList.KeyKind,
    blockCount: Int,
    count: Int,
    byteCount: Int
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(bytes)
    // An entry has at least 11 bytes, so a wrong count cannot make this allocate much.
    guard blockCount <= bytes.count / 11 else {
      throw ByteReader.Damage("a count or length is out of bounds")
    }
    offsets.reserveCapacity(blockCount + 1)
    positions.reserveCapacity(blockCount + 1)
    firstKeys.reserveCapacity(blockCount)
    checksums.reserveCapacity(blockCount)
    var key: Int64 = 0
    for _ in 0..<blockCount {
      let checksum = try reader.integer(UInt64.self)
      let length = try reader.count(atMost: BlockDirectory.maximumBlockByteCount)
      let keys = try reader.count(atMost: IdentifierList.maximumCount)
      var separator = Span<UInt8>()
      switch keyKind {
      case .integer:
        key = key &+ (try reader.signedVarint())
      case .encoded:
        separator = try reader.take(try reader.count(atMost: EncodedKey.maximumByteCount))
      }
      guard length > 0, keys > 0, self.count + keys <= IdentifierList.maximumCount else {
        throw ByteReader.Damage("a count or length is out of bounds")
      }
      offsets.append(self.byteCount + length)
      positions.append(self.count + keys)
      firstKeys.append(key)
      if keyKind == .encoded { separators.append(separator) }
      checksums.append(checksum)
    }
    guard reader.isAtEnd, self.count == count, self.byteCount == byteCount else {
      throw ByteReader.Damage("it does not add up")
    }
  }

  /// The maximum size of a block in bytes: a segment may begin just below the usual size, and
  /// contain keys of the maximum length.
  static let maximumBlockByteCount = 4 << 20
}
