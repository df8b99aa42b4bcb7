/// Keys without the bytes that they share with the previous key.
///
/// Each key has the number of shared bytes (varint), the number of bytes that follow (varint), and
/// these bytes.
enum FrontCoding {
  /// A segment ends when its keys have this many bytes.
  static let segmentByteCount = 1 << 16

  static func encode(_ keys: EncodedKeys) -> [UInt8] {
    var bytes: [UInt8] = []
    for index in 0..<keys.count {
      let key = keys.span(at: index)
      let shared = index == 0 ? 0 : key.commonPrefixCount(with: keys.span(at: index - 1))
      bytes.appendVarint(UInt64(shared))
      bytes.appendVarint(UInt64(key.count - shared))
      bytes.append(copying: key.extracting(droppingFirst: shared))
    }
    return bytes
  }

  static func decode(
    _ bytes: Span<UInt8>,
    count: Int,
    into keys: inout EncodedKeys
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(bytes)
    var previousCount = 0
    var total = 0
    for _ in 0..<count {
      let shared = try reader.count(atMost: previousCount)
      let suffix = try reader.take(try reader.count(atMost: EncodedKey.maximumByteCount))
      previousCount = shared + suffix.count
      total += previousCount
      guard previousCount > 0, total <= EncodedDecoder.maximumByteCount else {
        throw ByteReader.Damage("a key has an impossible length")
      }
      keys.append(sharing: shared, suffix)
    }
    guard reader.isAtEnd else { throw ByteReader.Damage("a segment has the wrong length") }
  }
}
