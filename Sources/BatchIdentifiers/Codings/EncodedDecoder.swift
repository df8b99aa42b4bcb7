struct EncodedDecoder {
  private var scratch: [UInt8] = []

  /// The maximum total length of the keys in a segment, which ends with the key that exceeds
  /// ``FrontCoding/segmentByteCount``.
  static let maximumByteCount = FrontCoding.segmentByteCount + EncodedKey.maximumByteCount
  /// The maximum length of the front-coded form, with two varints per key.
  static let maximumFrontCodedByteCount = maximumByteCount + SegmentCoding.plainCount * 8

  mutating func decode(
    _ segment: Segment,
    of block: PaddedBytes,
    into keys: inout EncodedKeys
  ) throws(ByteReader.Damage) {
    let payload = block.extracting(segment.payload)
    switch segment.coding {
    case .frontCoded:
      try FrontCoding.decode(payload.bytes, count: segment.count, into: &keys)
    case .frontCodedLZ4:
      let count = try decompress(payload.bytes)
      try FrontCoding.decode(
        scratch.span.extracting(0..<count),
        count: segment.count,
        into: &keys
      )
    case .uuids:
      try UUIDs.decode(payload, count: segment.count, into: &keys)
    default:
      throw ByteReader.Damage("a segment has the wrong coding")
    }
  }

  /// Decompresses into `scratch`, and returns the number of bytes.
  private mutating func decompress(
    _ payload: Span<UInt8>
  ) throws(ByteReader.Damage) -> Int {
    var reader = ByteReader(payload)
    let count = try reader.count(atMost: Self.maximumFrontCodedByteCount)
    let packed = try reader.take(reader.remaining)
    if scratch.count < count { scratch = [UInt8](repeating: 0, count: count) }
    guard LZ4.decompress(packed, into: &scratch, count: count) else {
      throw ByteReader.Damage("a segment cannot be decompressed")
    }
    return count
  }
}
