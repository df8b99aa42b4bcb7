extension Runs {
  /// Reads the runs of a segment one after the other.
  ///
  /// The segment is checked as a whole first, without decoding it: what stands before a number in
  /// unary is passed over by counting ones, and the low bits are summed up.
  struct Reader: BitwiseCopyable, ~Escapable {
    private let source: BitSource
    private let gapParameter: Int
    private let lengthParameter: Int
    private let hasSingleGaps: Bool
    private var gaps: UnaryReader
    private var lengths: UnaryReader
    private var gapBit = 0
    private var lengthBit: Int
    /// The first key of the next run.
    private var first: Int64
    /// How many runs are left.
    private var count: Int

    @_lifetime(copy payload)
    init(_ segment: Segment, _ payload: PaddedBytes) throws(ByteReader.Damage) {
      var reader = ByteReader(payload.bytes)
      count = try reader.count(atMost: maximumHoleCount - 1) + 1
      let parameter = Int(try reader.byte())
      lengthParameter = Int(try reader.byte())
      hasSingleGaps = parameter == singleGaps
      gapParameter = hasSingleGaps ? 0 : parameter
      lengthBit = gapParameter * (count - 1)
      let lowBits = lengthBit + lengthParameter * count
      let end = reader.remaining * 8
      guard gapParameter <= Rice.maximumParameter, lengthParameter <= Rice.maximumParameter,
        lowBits <= end
      else { throw ByteReader.Damage("a segment has the wrong length") }
      source = payload.bits(from: reader.offset)
      first = segment.firstKey
      gaps = UnaryReader(source, from: lowBits, to: end)
      lengths = gaps
      if !hasSingleGaps { try lengths.skip(count - 1) }
      try checkLengths(of: segment)
    }

    /// Checks that the lengths add up to the count of the segment.
    private func checkLengths(of segment: Segment) throws(ByteReader.Damage) {
      let mask = BitSource.mask(lengthParameter)
      var sum: UInt64 = 0
      var all: UInt64 = 0
      var bit = lengthBit
      for _ in 0..<count {
        let low = source.word(at: bit) & mask
        sum = sum &+ low
        all |= low
        bit &+= lengthParameter
      }
      // The sum of a few thousand numbers below that limit fits into a word, and so does that of
      // the rest if it is not above the count.
      guard all < IdentifierList.maximumCount else { throw ByteReader.Damage("a run is too long") }
      var unary = lengths
      let rest = UInt64(try unary.skip(count))
      let expected = UInt64(segment.count)
      let shift = UInt64(lengthParameter)
      let least = hasSingleGaps ? 0 : UInt64(count)
      guard rest <= expected &>> shift, sum + rest &<< shift + least == expected else {
        throw ByteReader.Damage("its runs do not add up")
      }
    }

    /// The next run; nil if there is none.
    @inline(__always)
    mutating func next() throws(ByteReader.Damage) -> Run? {
      guard count > 0 else { return nil }
      count &-= 1
      let length = number(try lengths.nextZeroCount(), lengthParameter, &lengthBit)
      let run = Run(first: first, count: Int(truncatingIfNeeded: length) &+ (hasSingleGaps ? 0 : 1))
      first = first &+ Int64(run.count) &+ 1
      if !hasSingleGaps, count > 0 {
        let gap = number(try gaps.nextZeroCount(), gapParameter, &gapBit)
        first = first &+ Int64(bitPattern: gap)
      }
      return run
    }

    /// A number of an unary part and the low bits that come next.
    @inline(__always)
    private func number(_ high: Int, _ parameter: Int, _ bit: inout Int) -> UInt64 {
      let low = source.word(at: bit) & BitSource.mask(parameter)
      bit &+= parameter
      return UInt64(truncatingIfNeeded: high) &<< UInt64(truncatingIfNeeded: parameter) | low
    }
  }
}
