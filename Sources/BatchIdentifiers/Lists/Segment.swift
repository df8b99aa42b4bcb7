/// One segment of a block: some keys next to each other, packed in one way.
struct Segment {
  let coding: SegmentCoding
  /// Whether the keys are stored as their complements, which makes descending ones ascend.
  let isComplemented: Bool
  let count: Int
  /// The first key as stored. (Integer lists only.)
  let firstKey: Int64
  /// Where the payload stands in the block.
  let payload: Range<Int>

  /// Reads the table at the start of a block.
  ///
  /// Every count and length is checked here against the block, so that decoders need not.
  static func table(
    of block: UnsafeRawBufferPointer,
    keyKind: IdentifierList.KeyKind,
    firstKey: Int64,
    count: Int
  ) throws(ByteReader.Damage) -> [Segment] {
    var reader = ByteReader(block)
    let segmentCount = Int(try reader.byte()) + 1
    guard segmentCount <= BlockWriter.maximumSegmentCount else {
      throw ByteReader.Damage("it has too many segments")
    }
    var segments: [Segment] = []
    segments.reserveCapacity(segmentCount)
    var key = firstKey
    var keys = 0
    var payloadCount = 0
    for index in 0..<segmentCount {
      let tag = try reader.byte()
      guard let coding = SegmentCoding(rawValue: tag & Tag.coding), tag & Tag.reserved == 0,
        coding.keyKind == keyKind
      else { throw ByteReader.Damage("a segment has an unknown coding") }
      let count =
        tag & Tag.isPlainCount != 0
        ? SegmentCoding.plainCount : try reader.count(atMost: coding.maximumCount)
      let length = try reader.count(atMost: block.count)
      if keyKind == .integer, index > 0 { key = key &+ (try reader.signedVarint()) }
      guard count > 0 else { throw ByteReader.Damage("a segment is empty") }
      let (sum, overflows) = keys.addingReportingOverflow(count)
      guard !overflows else { throw ByteReader.Damage("a count or length is out of bounds") }
      keys = sum
      segments.append(
        Segment(
          coding: coding,
          isComplemented: tag & Tag.isComplemented != 0,
          count: count,
          firstKey: key,
          payload: payloadCount..<(payloadCount + length)
        )
      )
      payloadCount += length
    }
    guard payloadCount == reader.remaining, keys == count else {
      throw ByteReader.Damage("its segments do not add up")
    }
    let start = reader.offset
    for index in segments.indices { segments[index] = segments[index].moved(by: start) }
    return segments
  }

  /// The bits of the byte before each segment in the table.
  enum Tag {
    static let coding: UInt8 = 0x1F
    static let isComplemented: UInt8 = 0x20
    static let isPlainCount: UInt8 = 0x40
    static let reserved: UInt8 = 0x80
  }

  private func moved(by offset: Int) -> Segment {
    Segment(
      coding: coding,
      isComplemented: isComplemented,
      count: count,
      firstKey: firstKey,
      payload: (payload.lowerBound + offset)..<(payload.upperBound + offset)
    )
  }

  /// The first key as the list has it.
  var firstValue: Int64 { isComplemented ? ~firstKey : firstKey }
}
