extension Runs {
  /// Reads the runs of a segment in order.
  ///
  /// The segment is first checked as a whole, without decoding it: counting ones skips the unary
  /// parts before a number, and the low bits are added.
  struct Reader: ~Escapable {
    private let source: BitSource
    private let gapParameter: Int
    private let lengthParameter: Int
    private let hasSingleGaps: Bool
    private let gaps: UnaryReader
    private let lengths: UnaryReader
    private let firstKey: Int64
    private let count: Int

    @_lifetime(copy payload)
    init(_ segment: Segment, _ payload: PaddedBytes) throws(ByteReader.Damage) {
      var reader = ByteReader(payload.bytes)
      count = try reader.count(atMost: maximumHoleCount - 1) + 1
      let parameter = Int(try reader.byte())
      lengthParameter = Int(try reader.byte())
      hasSingleGaps = parameter == singleGaps
      gapParameter = hasSingleGaps ? 0 : parameter
      let lowBits = gapParameter * (count - 1) + lengthParameter * count
      let end = reader.remaining * 8
      guard gapParameter <= Rice.maximumParameter, lengthParameter <= Rice.maximumParameter,
        lowBits <= end
      else { throw ByteReader.Damage("a segment has the wrong length") }
      source = payload.bits(from: reader.offset)
      firstKey = segment.firstKey
      gaps = UnaryReader(from: lowBits, to: end)
      var unary = gaps
      if !hasSingleGaps { try unary.skip(count - 1, in: source) }
      lengths = unary
      try checkLengths(of: segment)
    }

    private var lengthBit: Int { gapParameter * (count - 1) }

    private func checkLengths(of segment: Segment) throws(ByteReader.Damage) {
      // Below this limit, the sum of a few thousand numbers fits in a word.
      let mask = BitSource.mask(lengthParameter)
      let limit = SegmentCoding.runs.maximumCount
      if mask >= limit {
        for index in 0..<count {
          let low = source.word(at: lengthBit + index * lengthParameter) & mask
          guard low < limit else {
            throw ByteReader.Damage("a run is too long")
          }
        }
      }
      let sum = source.sum(of: count, width: lengthParameter, from: lengthBit)
      var unary = lengths
      let rest = UInt64(try unary.skip(count, in: source))
      let expected = UInt64(segment.count)
      let shift = UInt64(lengthParameter)
      let least = hasSingleGaps ? 0 : UInt64(count)
      guard rest <= expected &>> shift, sum + rest &<< shift + least == expected else {
        throw ByteReader.Damage("its runs do not add up")
      }
    }

    @inline(__always)
    func forEach(_ body: (Run) throws(ByteReader.Damage) -> Bool) throws(ByteReader.Damage) {
      var gaps = gaps
      var lengths = lengths
      var gapBit = 0
      var lengthBit = lengthBit
      var first = firstKey
      let least: UInt64 = hasSingleGaps ? 0 : 1
      for index in 0..<count {
        let high = try lengths.nextZeroCount(in: source)
        let length = number(high, lengthParameter, at: lengthBit) &+ least
        let run = Run(first: first, count: Int(truncatingIfNeeded: length))
        guard try body(run) else { return }
        lengthBit &+= lengthParameter
        first = first &+ Int64(run.count) &+ 1
        if !hasSingleGaps, index < count &- 1 {
          let high = try gaps.nextZeroCount(in: source)
          first = first &+ Int64(bitPattern: number(high, gapParameter, at: gapBit))
          gapBit &+= gapParameter
        }
      }
    }

    @inline(__always)
    private func number(_ high: Int, _ parameter: Int, at bit: Int) -> UInt64 {
      let low = source.word(at: bit) & BitSource.mask(parameter)
      return UInt64(truncatingIfNeeded: high) &<< UInt64(truncatingIfNeeded: parameter) | low
    }
  }
}
