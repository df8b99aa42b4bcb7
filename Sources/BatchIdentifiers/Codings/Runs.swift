/// Runs of consecutive keys: the gaps between them and their lengths, as Rice codes.
///
/// Payload: the number of runs less one (varint), the two Rice parameters (one byte each), then the
/// bits: low bits of the gaps less two, low bits of the lengths less one, unary parts of the gaps,
/// unary parts of the lengths. A gap is the step from the end of a run to the next one's start, so
/// it is two at least.
///
/// Where most gaps are single numbers, the gaps can be left out: their parameter is 255, a run ends
/// at each number that is missing, and the lengths are as they are, for runs can then be empty.
enum Runs {
  static let maximumCount = 4096
  /// The most runs where gaps are left out.
  static let maximumHoleCount = 8192
  private static let singleGaps = 255

  /// A run of consecutive keys.
  struct Run {
    var first: Int64
    var count: Int

    var last: Int64 { first &+ Int64(count) &- 1 }
  }

  /// Decodes the keys at a range of positions within the segment.
  static func decode(
    _ segment: Segment,
    _ payload: UnsafeRawBufferPointer,
    _ range: Range<Int>,
    _ output: IntegerDecoder.Output
  ) throws(ByteReader.Damage) {
    var position = 0
    var next = output
    try forEachRun(segment, payload) { first, count in
      let low = max(range.lowerBound, position)
      let high = min(range.upperBound, position + count)
      if low < high {
        let key = first &+ Int64(low - position)
        for index in 0..<(high - low) { next[index] = key &+ Int64(index) }
        next += high - low
      }
      position += count
      return position < range.upperBound
    }
  }

  /// Calls `body` with the first key and the length of each run, until it returns false.
  ///
  /// The lengths add up to the count of the segment, which is checked before the first call.
  static func forEachRun(
    _ segment: Segment,
    _ payload: UnsafeRawBufferPointer,
    _ body: (Int64, Int) -> Bool
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(payload)
    let count = try reader.count(atMost: maximumHoleCount - 1) + 1
    var gapParameter = Int(try reader.byte())
    let lengthParameter = Int(try reader.byte())
    let hasSingleGaps = gapParameter == singleGaps
    if hasSingleGaps { gapParameter = 0 }
    let least: UInt64 = hasSingleGaps ? 0 : 1
    let gapBits = gapParameter * (count - 1)
    let lowBits = gapBits + lengthParameter * count
    let end = reader.remaining * 8
    guard gapParameter <= Rice.maximumParameter, lengthParameter <= Rice.maximumParameter,
      lowBits <= end
    else { throw ByteReader.Damage("a segment has the wrong length") }
    let source = BitSource(base: payload.baseAddress.unsafelyUnwrapped + reader.offset)
    var failure: ByteReader.Damage?
    withUnsafeTemporaryAllocation(of: UInt64.self, capacity: count * 2) { numbers in
      let gaps = numbers.baseAddress.unsafelyUnwrapped
      let lengths = gaps + count
      do throws(ByteReader.Damage) {
        var unary = UnaryReader(source, from: lowBits, to: end)
        if hasSingleGaps {
          gaps.update(repeating: 0, count: count)
        } else {
          try Rice.decode(count - 1, gapParameter, source, lowBits: 0, &unary, gaps)
        }
        try Rice.decode(count, lengthParameter, source, lowBits: gapBits, &unary, lengths)
        var sum: UInt64 = 0
        let limit = UInt64(IdentifierList.maximumCount)
        for index in 0..<count {
          guard lengths[index] < limit else { throw ByteReader.Damage("a run is too long") }
          sum = sum &+ lengths[index] &+ least
        }
        guard sum == UInt64(segment.count) else {
          throw ByteReader.Damage("its runs do not add up")
        }
        var first = segment.firstKey
        for index in 0..<count {
          let length = Int(lengths[index] &+ least)
          guard body(first, length) else { return }
          guard index < count - 1 else { return }
          first = first &+ Int64(length) &+ Int64(bitPattern: gaps[index]) &+ 1
        }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
  }

  /// Gaps and lengths as they are coded, and what that costs.
  struct Plan {
    var gaps: (parameter: Int, bits: UInt64)
    var lengths: (parameter: Int, bits: UInt64)

    init(gaps: UnsafeBufferPointer<UInt64>, lengths: UnsafeBufferPointer<UInt64>) {
      self.gaps = Rice.cost(gaps)
      self.lengths = Rice.cost(lengths)
    }

    var bits: UInt64 { gaps.bits + lengths.bits }
  }

  /// Encodes runs with a number missing between each two; runs can be empty.
  static func encodeHoles(
    _ lengths: UnsafeBufferPointer<UInt64>,
    parameter: Int,
    bits: UInt64,
    to bytes: inout [UInt8]
  ) {
    bytes.appendVarint(UInt64(lengths.count - 1))
    bytes.append(UInt8(singleGaps))
    bytes.append(UInt8(parameter))
    bytes.appendBits(atMost: Int(bits + 7) / 8) { writer in
      Rice.writeLowBits(lengths, parameter, &writer)
      Rice.writeUnaryParts(lengths, parameter, &writer)
    }
  }

  static func encode(
    gaps: UnsafeBufferPointer<UInt64>,
    lengths: UnsafeBufferPointer<UInt64>,
    _ plan: Plan,
    to bytes: inout [UInt8]
  ) {
    bytes.appendVarint(UInt64(lengths.count - 1))
    bytes.append(UInt8(plan.gaps.parameter))
    bytes.append(UInt8(plan.lengths.parameter))
    bytes.appendBits(atMost: Int(plan.bits + 7) / 8) { writer in
      Rice.writeLowBits(gaps, plan.gaps.parameter, &writer)
      Rice.writeLowBits(lengths, plan.lengths.parameter, &writer)
      Rice.writeUnaryParts(gaps, plan.gaps.parameter, &writer)
      Rice.writeUnaryParts(lengths, plan.lengths.parameter, &writer)
    }
  }
}
