/// Steps between ascending keys, less the smallest step, as numbers of equally many bits.
///
/// Payload: the number of bits (one byte: 0 to 56, or 64), the smallest step less one (varint),
/// the numbers.
enum PackedSteps {
  static func decode(
    _ segment: Segment,
    _ payload: UnsafeRawBufferPointer,
    _ count: Int,
    _ output: IntegerDecoder.Output
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(payload)
    let width = Int(try reader.byte())
    let base = try reader.varint() &+ 1
    try PackedNumbers.check(width: width, count: segment.count - 1, bytes: reader.remaining)
    let source = BitSource(base: payload.baseAddress.unsafelyUnwrapped + reader.offset)
    let mask = BitSource.mask(width)
    var key = UInt64(bitPattern: segment.firstKey)
    var bit = 0
    for index in 1..<max(count, 1) {
      key = key &+ base &+ (source.word(at: bit) & mask)
      output[index] = Int64(bitPattern: key)
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
    _ count: Int,
    _ output: IntegerDecoder.Output
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(payload)
    let width = Int(try reader.byte())
    let smallest = UInt64(bitPattern: segment.firstKey) &- (try reader.varint())
    try PackedNumbers.check(width: width, count: segment.count - 1, bytes: reader.remaining)
    let source = BitSource(base: payload.baseAddress.unsafelyUnwrapped + reader.offset)
    let mask = BitSource.mask(width)
    var bit = 0
    for index in 1..<max(count, 1) {
      output[index] = Int64(bitPattern: smallest &+ (source.word(at: bit) & mask))
      bit &+= width
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
  /// Appends what a closure writes: at most `limit` bytes.
  mutating func appendBits(atMost limit: Int, _ body: (inout BitWriter) -> Void) {
    let start = count
    append(contentsOf: repeatElement(0, count: limit + 8))
    let end = withUnsafeMutableBytes { buffer in
      var writer = BitWriter(buffer.baseAddress.unsafelyUnwrapped + start)
      body(&writer)
      return writer.finish() - buffer.baseAddress.unsafelyUnwrapped
    }
    removeLast(count - end)
  }
}
