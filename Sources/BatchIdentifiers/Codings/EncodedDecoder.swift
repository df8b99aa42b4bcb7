internal import CLZ4

/// Unpacks segments of encoded keys.
struct EncodedDecoder {
  private var scratch: [UInt8] = []

  /// The most bytes that the keys of one segment have together.
  ///
  /// A segment ends with the key that takes it past ``FrontCoding/segmentByteCount``.
  static let maximumByteCount = FrontCoding.segmentByteCount + EncodedKey.maximumByteCount
  /// The most bytes of the front-coded form: two varints a key besides.
  static let maximumFrontCodedByteCount = maximumByteCount + SegmentCoding.plainCount * 8

  /// Appends all keys of a segment.
  mutating func decode(
    _ segment: Segment,
    of block: UnsafeRawBufferPointer,
    into keys: inout EncodedKeys
  ) throws(ByteReader.Damage) {
    let payload = UnsafeRawBufferPointer(rebasing: block[segment.payload])
    switch segment.coding {
    case .frontCoded:
      try FrontCoding.decode(payload, count: segment.count, into: &keys)
    case .frontCodedLZ4:
      try decompress(payload)
      var failure: ByteReader.Damage?
      scratch.withUnsafeBytes { bytes in
        do throws(ByteReader.Damage) {
          try FrontCoding.decode(bytes, count: segment.count, into: &keys)
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
    default:
      throw ByteReader.Damage("a segment has the wrong coding")
    }
  }

  private mutating func decompress(
    _ payload: UnsafeRawBufferPointer
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(payload)
    let count = try reader.count(atMost: Self.maximumFrontCodedByteCount)
    let packed = try reader.take(reader.remaining)
    scratch = [UInt8](unsafeUninitializedCapacity: count) { buffer, size in
      let result = LZ4_decompress_safe(
        packed.bindMemory(to: CChar.self).baseAddress,
        UnsafeMutableRawPointer(buffer.baseAddress)?.assumingMemoryBound(to: CChar.self),
        Int32(packed.count),
        Int32(count)
      )
      size = max(0, Int(result))
    }
    guard scratch.count == count else {
      throw ByteReader.Damage("a segment cannot be decompressed")
    }
  }
}
