/// Runs of consecutive keys: the gaps between them and their lengths, as Rice codes.
///
/// Payload: the number of runs minus one (varint), the two Rice parameters (one byte each), then
/// the bits: low bits of the gaps minus two, low bits of the lengths minus one, unary parts of the
/// gaps, unary parts of the lengths. A gap is the step from the end of a run to the start of the
/// next one, so it is at least two.
///
/// If most gaps are single numbers, the gaps can be omitted: their parameter is then 255, a run
/// ends at each missing number, and lengths are stored unchanged, since runs may be empty.
enum Runs {
  static let maximumCount = 4096
  /// The maximum number of runs if gaps are omitted.
  static let maximumHoleCount = 8192
  static let singleGaps = 255

  struct Run {
    var first: Int64
    var count: Int

    var last: Int64 { first &+ Int64(count) &- 1 }
  }

  static func decode(
    _ segment: Segment,
    _ payload: PaddedBytes,
    _ range: Range<Int>,
    _ output: KeyOutput
  ) throws(ByteReader.Damage) {
    var output = output
    var position = 0
    try Reader(segment, payload).forEach { run in
      let low = max(range.lowerBound, position)
      let high = min(range.upperBound, position + run.count)
      if low < high {
        let key = run.first &+ Int64(low - position)
        for index in 0..<(high - low) { output.append(key &+ Int64(index)) }
      }
      position += run.count
      return position < range.upperBound
    }
  }

  struct Plan {
    var gaps: (parameter: Int, bits: UInt64)
    var lengths: (parameter: Int, bits: UInt64)

    init(gaps: Span<UInt64>, lengths: Span<UInt64>) {
      self.gaps = Rice.cost(gaps)
      self.lengths = Rice.cost(lengths)
    }

    var bits: UInt64 { gaps.bits + lengths.bits }
  }

  /// Encodes runs that are separated by single missing numbers; runs may be empty.
  static func encodeHoles(
    _ lengths: Span<UInt64>,
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
    gaps: Span<UInt64>,
    lengths: Span<UInt64>,
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
