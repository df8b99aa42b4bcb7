/// A segment of a block: some consecutive keys of the list, packed in one coding.
struct Segment {
  static let maximumCountOfBlock = 64

  let coding: SegmentCoding
  /// Whether the keys are stored as their complements, which makes descending keys ascend.
  let isComplemented: Bool
  let count: Int
  /// The first key as stored. (Only for integer lists.)
  let firstKey: Int64
  let payload: Range<Int>

  /// Reads the table at the start of a block.
  ///
  /// Every count and length is checked against the block here, so that decoders need not.
  static func table(
    of block: Span<UInt8>,
    keyKind: SegmentCoding.KeyKind,
    firstKey: Int64,
    count: Int
  ) throws(ByteReader.Damage) -> [Segment] {
    var reader = ByteReader(block)
    var segments: [Segment] = []
    segments.reserveCapacity(8)
    var key = firstKey
    var distance: Int64 = 0
    var length = 0
    var isLast = false
    var keys = 0
    var payloadCount = 0
    while !isLast {
      guard segments.count < maximumCountOfBlock else {
        throw ByteReader.Damage("it has too many segments")
      }
      let tag = try reader.byte()
      isLast = tag & Tag.isLast != 0
      guard let coding = SegmentCoding(rawValue: tag & Tag.coding), coding.keyKind == keyKind
      else { throw ByteReader.Damage("a segment has an unknown coding") }
      let count =
        tag & Tag.isPlainCount != 0
        ? SegmentCoding.plainCount : try reader.count(atMost: coding.maximumCount)
      if !isLast {
        let (sum, overflows) = Int64(length).addingReportingOverflow(try reader.signedVarint())
        guard !overflows, sum >= 0, sum <= block.count else {
          throw ByteReader.Damage("a count or length is out of bounds")
        }
        length = Int(sum)
      }
      if keyKind == .integer, !segments.isEmpty {
        distance = distance &+ (try reader.signedVarint())
        key = key &+ distance
      }
      if isLast {
        // The last segment has the rest of the block.
        length = reader.remaining - payloadCount
        guard length >= 0 else { throw ByteReader.Damage("its segments do not add up") }
      }
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
    guard keys == count else {
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
    static let isLast: UInt8 = 0x80
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

  /// The first key as in the list.
  var firstValue: Int64 { isComplemented ? ~firstKey : firstKey }
}
