/// Rice codes: the low `k` bits of each number are unchanged, the others are in unary.
///
/// The low bits of all numbers come first, then all unary parts, each as many zeros as its value
/// and a one. Because they are separate, both are decoded without a branch per number.
///
/// Payload of a segment: `k` (one byte: 0 to 56), then the steps between ascending keys minus one.
enum Rice {
  static let maximumParameter = 56
  /// The maximum number of keys in a segment.
  ///
  /// It is large because segments without low bits are plain bitmaps, where counting ones finds a
  /// position.
  static let maximumCount = 16384

  /// Decodes keys; `place` may be one at or before the first of them.
  static func decodeKeys(
    _ segment: Segment,
    _ payload: PaddedBytes,
    _ range: Range<Int>,
    _ output: KeyOutput,
    from place: Place? = nil
  ) throws(ByteReader.Damage) {
    let walk = try Walk(segment, payload)
    var place = place ?? walk.start
    var output = output
    if range.lowerBound == 0 { output.append(segment.firstKey) }
    while place.index < range.upperBound {
      var word = try walk.word(at: place)
      // A word that ends before the range only adds to the sum of the low bits.
      let ones = word.nonzeroBitCount
      if place.index &+ ones <= range.lowerBound {
        walk.skip(word, ones, &place)
        continue
      }
      if place.index < range.lowerBound {
        walk.take(range.lowerBound &- place.index, of: &word, &place) { _ in }
      }
      let count = min(word.nonzeroBitCount, range.upperBound &- place.index)
      walk.take(count, of: &word, &place) { key in output.append(key) }
      place.start &+= 64
    }
  }

  /// The number of keys in a segment below a value, and the position to decode the window with the
  /// next key from.
  static func lowerBound(
    of value: Int64,
    _ segment: Segment,
    _ payload: PaddedBytes
  ) throws(ByteReader.Damage) -> (index: Int, place: Place) {
    let walk = try Walk(segment, payload)
    var place = walk.start
    var window = place
    guard segment.firstKey < value else { return (0, window) }
    while place.index < segment.count {
      var word = try walk.word(at: place)
      var before = place
      let ones = min(word.nonzeroBitCount, segment.count &- place.index)
      guard walk.skip(word, ones, &place) < value || ones == 0 else {
        var count = before.index
        walk.take(ones, of: &word, &before) { key in count &+= key < value ? 1 : 0 }
        return (count, window)
      }
      if place.index / SegmentCache.windowCount != before.index / SegmentCache.windowCount {
        window = before
      }
    }
    return (segment.count, window)
  }

  /// The current position of a walk over the keys of a segment.
  ///
  /// It stays in registers, unlike a type that contains a span.
  struct Place {
    /// The sum of the first key and the low parts of the steps so far.
    fileprivate var sum: UInt64
    fileprivate var bit = 0
    /// The index of the key that the next step leads to.
    fileprivate var index = 1
    /// The start of the word with the next unary part.
    fileprivate var start: Int
  }

  /// A walk over the keys of a segment, by words of the unary parts.
  ///
  /// The zeros before the nth one are the sum of n unary parts. So only the low bits must be added,
  /// and the position of the one gives the rest.
  private struct Walk: ~Escapable {
    private let source: BitSource
    private let parameter: Int
    private let lowBits: Int
    private let end: Int
    let start: Place

    @_lifetime(copy payload)
    init(_ segment: Segment, _ payload: PaddedBytes) throws(ByteReader.Damage) {
      var reader = ByteReader(payload.bytes)
      parameter = Int(try reader.byte())
      lowBits = parameter * (segment.count - 1)
      end = reader.remaining * 8
      guard parameter <= maximumParameter, lowBits <= end else {
        throw ByteReader.Damage("a segment has the wrong length")
      }
      source = payload.bits(from: reader.offset)
      start = Place(sum: UInt64(bitPattern: segment.firstKey), start: lowBits)
    }

    @inline(__always)
    func word(at place: Place) throws(ByteReader.Damage) -> UInt64 {
      let start = place.start
      guard start < end else { throw ByteReader.Damage("a segment ends too early") }
      let word = source.fullWord(at: start)
      return end &- start < 64 ? word & BitSource.mask(end &- start) : word
    }

    /// Calls `body` with each of the next keys of a word.
    @inline(__always)
    func take(
      _ count: Int,
      of word: inout UInt64,
      _ place: inout Place,
      _ body: (Int64) -> Void
    ) {
      let mask = BitSource.mask(parameter)
      let shift = UInt64(truncatingIfNeeded: parameter)
      // There is one zero less before each one, and each step is one more than its number: as a
      // single sum, the loop needs one register less.
      let change = 1 &- 1 &<< shift
      var key = place.sum &+ 1 &+ zeros(before: place) &<< shift
      for _ in 0..<count {
        let high = UInt64(truncatingIfNeeded: word.trailingZeroBitCount)
        key = key &+ (source.word(at: place.bit) & mask)
        body(Int64(bitPattern: key &+ high &<< shift))
        key = key &+ change
        word &= word &- 1
        place.bit &+= parameter
      }
      place.index &+= count
      place.sum = key &- 1 &- zeros(before: place) &<< shift
    }

    @inline(__always)
    @discardableResult
    func skip(_ word: UInt64, _ ones: Int, _ place: inout Place) -> Int64 {
      place.sum =
        place.sum &+ source.sum(of: ones, width: parameter, from: place.bit)
        &+ UInt64(truncatingIfNeeded: ones)
      place.bit &+= ones &* parameter
      place.index &+= ones
      let last = UInt64(truncatingIfNeeded: 63 &- word.leadingZeroBitCount)
      let high = zeros(before: place) &+ last &+ 1
      place.start &+= 64
      return Int64(bitPattern: place.sum &+ high &<< UInt64(truncatingIfNeeded: parameter))
    }

    /// The position where the zeros before a word end, minus the number of ones before it.
    @inline(__always)
    private func zeros(before place: Place) -> UInt64 {
      UInt64(truncatingIfNeeded: place.start &- lowBits &- place.index &+ 1)
    }
  }

  /// Calls `body` with numbers whose low bits and unary parts are in two places.
  @inline(__always)
  static func decode(
    _ count: Int,
    _ parameter: Int,
    _ source: BitSource,
    lowBits: Int,
    _ unary: inout UnaryReader,
    _ body: (UInt64) -> Void
  ) throws(ByteReader.Damage) {
    let mask = BitSource.mask(parameter)
    var bit = lowBits
    for _ in 0..<count {
      let high = UInt64(truncatingIfNeeded: try unary.nextZeroCount(in: source))
      body(high &<< UInt64(truncatingIfNeeded: parameter) | (source.word(at: bit) & mask))
      bit &+= parameter
    }
  }

  /// The parameter with the shortest codes, and their length in bits.
  static func cost(_ numbers: Span<UInt64>) -> (parameter: Int, bits: UInt64) {
    guard !numbers.isEmpty else { return (0, 0) }
    var all: UInt64 = 0
    var sum: UInt64 = 0
    for index in numbers.indices {
      all |= numbers[index]
      sum = sum &+ numbers[index]
    }
    // Below this parameter, the total length of a few thousand numbers might not fit in a word.
    let lowest = max(0, 64 - all.leadingZeroBitCount - 50)
    if lowest > 0 {
      sum = 0
      for index in numbers.indices { sum = sum &+ numbers[index] &>> UInt64(lowest) }
    }
    let mean = sum / UInt64(numbers.count)
    var best = min(lowest + max(0, 63 - mean.leadingZeroBitCount), maximumParameter)
    var bits = self.bits(numbers, best)
    for step in [-1, 1] {
      var next = best + step
      while next >= lowest, next <= maximumParameter {
        let length = self.bits(numbers, next)
        guard length < bits else { break }
        bits = length
        best = next
        next += step
      }
    }
    return (best, bits)
  }

  /// A lower bound for the bits that numbers with this sum take.
  static func leastBits(count: Int, sum: Int) -> Int {
    var least = Int.max
    for parameter in 0...maximumParameter {
      // Each quotient is greater than the number divided, minus one.
      let quotients = max(0, (sum >> parameter) - (parameter == 0 ? 0 : count))
      least = min(least, count * (parameter + 1) + quotients)
      if sum >> parameter < count { break }
    }
    return least
  }

  private static func bits(_ numbers: Span<UInt64>, _ parameter: Int) -> UInt64 {
    let shift = UInt64(truncatingIfNeeded: parameter)
    var quotients: UInt64 = 0
    for index in numbers.indices { quotients = quotients &+ numbers[index] &>> shift }
    return quotients &+ UInt64(truncatingIfNeeded: numbers.count &* (parameter &+ 1))
  }

  static func encode(
    _ numbers: Span<UInt64>,
    parameter: Int,
    bits: UInt64,
    to bytes: inout [UInt8]
  ) {
    bytes.append(UInt8(parameter))
    bytes.appendBits(atMost: Int(bits + 7) / 8) { writer in
      writeLowBits(numbers, parameter, &writer)
      writeUnaryParts(numbers, parameter, &writer)
    }
  }

  @inline(__always)
  static func writeLowBits(
    _ numbers: Span<UInt64>,
    _ parameter: Int,
    _ writer: inout BitWriter
  ) {
    guard parameter > 0 else { return }
    let mask = BitSource.mask(parameter)
    let bits = UInt64(truncatingIfNeeded: parameter)
    for index in numbers.indices { writer.writeShort(numbers[index] & mask, bits: bits) }
  }

  @inline(__always)
  static func writeUnaryParts(
    _ numbers: Span<UInt64>,
    _ parameter: Int,
    _ writer: inout BitWriter
  ) {
    let shift = UInt64(truncatingIfNeeded: parameter)
    for index in numbers.indices { writer.writeUnary(numbers[index] &>> shift) }
  }
}
