/// Rice codes: the low `k` bits of each number as they are, the rest in unary.
///
/// The low bits of all numbers come first, then all the unary parts, each as many zeros as its
/// value and a one. Kept apart, both decode without a branch a number.
///
/// Payload of a segment: `k` (one byte: 0 to 56), then the steps between ascending keys less one.
enum Rice {
  static let maximumParameter = 56

  static func decodeKeys(
    _ segment: Segment,
    _ payload: UnsafeRawBufferPointer,
    _ count: Int,
    _ output: IntegerDecoder.Output
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(payload)
    let parameter = Int(try reader.byte())
    let numbers = segment.count - 1
    let lowBits = parameter * numbers
    let end = reader.remaining * 8
    guard parameter <= maximumParameter, lowBits <= end else {
      throw ByteReader.Damage("a segment has the wrong length")
    }
    let source = BitSource(base: payload.baseAddress.unsafelyUnwrapped + reader.offset)
    let mask = BitSource.mask(parameter)
    var unary = UnaryReader(source, from: lowBits, to: end)
    // The unary parts up to a number add up to the zeros before its one.
    var key = UInt64(bitPattern: segment.firstKey)
    var zeros: UInt64 = 0
    var bit = 0
    for index in 1..<max(count, 1) {
      let sum = UInt64(truncatingIfNeeded: try unary.nextOne() &- (lowBits &+ index &- 1))
      let step = (sum &- zeros) &<< UInt64(parameter) | (source.word(at: bit) & mask)
      zeros = sum
      bit &+= parameter
      key = key &+ step &+ 1
      output[index] = Int64(bitPattern: key)
    }
  }

  /// The parameter that makes the codes shortest, and their length in bits.
  static func cost(_ numbers: UnsafeBufferPointer<UInt64>) -> (parameter: Int, bits: UInt64) {
    var sum: UInt64 = 0
    var isLarge = false
    for number in numbers {
      let (next, overflows) = sum.addingReportingOverflow(number)
      sum = next
      isLarge = isLarge || overflows
    }
    guard !isLarge, sum < 1 << 62, !numbers.isEmpty else { return (0, .max) }
    let mean = sum / UInt64(numbers.count)
    var best = min(max(0, 63 - mean.leadingZeroBitCount), maximumParameter)
    var bits = self.bits(numbers, best)
    for step in [-1, 1] {
      var next = best + step
      while next >= 0, next <= maximumParameter {
        let length = self.bits(numbers, next)
        guard length < bits else { break }
        bits = length
        best = next
        next += step
      }
    }
    return (best, bits)
  }

  private static func bits(_ numbers: UnsafeBufferPointer<UInt64>, _ parameter: Int) -> UInt64 {
    var quotients: UInt64 = 0
    for number in numbers { quotients = quotients &+ number &>> UInt64(parameter) }
    return quotients &+ UInt64(numbers.count * (parameter + 1))
  }

  static func encode(
    _ numbers: UnsafeBufferPointer<UInt64>,
    parameter: Int,
    bits: UInt64,
    to bytes: inout [UInt8]
  ) {
    bytes.append(UInt8(parameter))
    let mask = BitSource.mask(parameter)
    bytes.appendBits(atMost: Int(bits + 7) / 8) { writer in
      for number in numbers { writer.writeShort(number & mask, bits: UInt64(parameter)) }
      for number in numbers { writer.writeUnary(number &>> UInt64(parameter)) }
    }
  }
}

/// Finds the ones in a stretch of bits, one after the other.
struct UnaryReader {
  private let source: BitSource
  private var word: UInt64 = 0
  /// The bit at which `word` starts.
  private var start: Int
  private var next: Int
  private let end: Int

  init(_ source: BitSource, from start: Int, to end: Int) {
    self.source = source
    self.start = start
    next = start
    self.end = end
  }

  /// The bit at which the next one stands.
  @inline(__always)
  mutating func nextOne() throws(ByteReader.Damage) -> Int {
    while word == 0 {
      guard next < end else { throw ByteReader.Damage("a segment ends too early") }
      start = next
      word = source.fullWord(at: start)
      if end &- start < 64 { word &= BitSource.mask(end &- start) }
      next = start &+ 64
    }
    let position = start &+ word.trailingZeroBitCount
    word &= word &- 1
    return position
  }
}
