/// Steps between ascending keys, less the smallest step, as numbers of equally many bits.
///
/// Payload: the number of bits (one byte: 0 to 56, or 64), the smallest step less one (varint),
/// the numbers.
enum PackedSteps {
  static func decode(
    _ segment: Segment,
    _ payload: UnsafeRawBufferPointer,
    _ range: Range<Int>,
    _ output: IntegerDecoder.Output
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(payload)
    let width = Int(try reader.byte())
    let base = try reader.varint() &+ 1
    try PackedNumbers.check(width: width, count: segment.count - 1, bytes: reader.remaining)
    let source = BitSource(base: payload.baseAddress.unsafelyUnwrapped + reader.offset)
    let mask = BitSource.mask(width)
    var key = UInt64(bitPattern: segment.firstKey)
    var next = output
    if range.lowerBound == 0 {
      next.pointee = segment.firstKey
      next += 1
    }
    // The step at index i leads to key i + 1.
    let start = max(range.lowerBound - 1, 0)
    key = key &+ base &* UInt64(start) &+ source.sum(of: start, width: width, from: 0)
    var bit = start * width
    for _ in start..<max(range.upperBound - 1, start) {
      key = key &+ base &+ (source.word(at: bit) & mask)
      next.pointee = Int64(bitPattern: key)
      next += 1
      bit &+= width
    }
  }

  static func encode(
    _ steps: UnsafeBufferPointer<UInt64>,
    width: Int,
    smallest: UInt64,
    to bytes: inout [UInt8]
  ) {
    bytes.append(UInt8(width))
    bytes.appendVarint(smallest)
    PackedNumbers.encode(steps, less: smallest, width: width, to: &bytes)
  }
}

/// Keys in any order, less the smallest of them, as numbers of equally many bits.
///
/// Payload: the number of bits (one byte: 0 to 56, or 64), the first key less the smallest
/// (varint), the numbers from the second on.
enum PackedKeys {
  static func decode(
    _ segment: Segment,
    _ payload: UnsafeRawBufferPointer,
    _ range: Range<Int>,
    _ output: IntegerDecoder.Output
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(payload)
    let width = Int(try reader.byte())
    let smallest = UInt64(bitPattern: segment.firstKey) &- (try reader.varint())
    try PackedNumbers.check(width: width, count: segment.count - 1, bytes: reader.remaining)
    let source = BitSource(base: payload.baseAddress.unsafelyUnwrapped + reader.offset)
    let mask = BitSource.mask(width)
    for index in 0..<range.count {
      let position = range.lowerBound &+ index
      output[index] =
        position == 0
        ? segment.firstKey
        : Int64(bitPattern: smallest &+ (source.word(at: (position &- 1) &* width) & mask))
    }
  }

  static func encode(
    _ keys: UnsafeBufferPointer<Int64>,
    width: Int,
    smallest: Int64,
    to bytes: inout [UInt8]
  ) {
    bytes.append(UInt8(width))
    bytes.appendVarint(UInt64(bitPattern: keys[0] &- smallest))
    let rest = UnsafeBufferPointer(rebasing: keys[1...])
    rest.withMemoryRebound(to: UInt64.self) {
      PackedNumbers.encode($0, less: UInt64(bitPattern: smallest), width: width, to: &bytes)
    }
  }
}

/// Numbers of equally many bits.
enum PackedNumbers {
  /// The width to use for numbers up to `largest`: between 56 and 64 bits a word may straddle
  /// nine bytes, so those take 64.
  static func width(_ largest: UInt64) -> Int {
    let bits = 64 - largest.leadingZeroBitCount
    return bits > 56 ? 64 : bits
  }

  static func byteCount(width: Int, count: Int) -> Int { (width * count + 7) / 8 }

  static func check(width: Int, count: Int, bytes: Int) throws(ByteReader.Damage) {
    guard width <= 56 || width == 64, byteCount(width: width, count: count) == bytes else {
      throw ByteReader.Damage("a segment has the wrong length")
    }
  }

  static func encode(
    _ numbers: UnsafeBufferPointer<UInt64>,
    less smallest: UInt64,
    width: Int,
    to bytes: inout [UInt8]
  ) {
    bytes.appendBits(atMost: byteCount(width: width, count: numbers.count)) { writer in
      for number in numbers { writer.write(number &- smallest, bits: UInt64(width)) }
    }
  }
}

extension [UInt8] {
  private static let zeros = [UInt8](repeating: 0, count: 1 << 14)

  /// Appends zeros. (Appending a repeated element goes byte by byte.)
  mutating func appendZeros(_ count: Int) {
    var rest = count
    while rest > 0 {
      let part = Swift.min(rest, Self.zeros.count)
      Self.zeros.withUnsafeBytes {
        append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[..<part]))
      }
      rest -= part
    }
  }

  /// Appends what a closure writes: at most `limit` bytes.
  mutating func appendBits(atMost limit: Int, _ body: (inout BitWriter) -> Void) {
    let start = count
    appendZeros(limit + 8)
    let end = withUnsafeMutableBytes { buffer in
      var writer = BitWriter(buffer.baseAddress.unsafelyUnwrapped + start)
      body(&writer)
      return writer.finish() - buffer.baseAddress.unsafelyUnwrapped
    }
    removeLast(count - end)
  }
}
