/// Steps between ascending keys, minus the smallest step, as numbers of a fixed width.
///
/// Payload: the width in bits (one byte: 0 to 56, or 64), the smallest step minus one (varint), the
/// numbers.
enum PackedSteps {
  static func decode(
    _ segment: Segment,
    _ payload: PaddedBytes,
    _ range: Range<Int>,
    _ output: KeyOutput
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(payload.bytes)
    let width = Int(try reader.byte())
    let base = try reader.varint() &+ 1
    try PackedNumbers.check(width: width, count: segment.count - 1, bytes: reader.remaining)
    let source = payload.bits(from: reader.offset)
    let mask = BitSource.mask(width)
    var key = UInt64(bitPattern: segment.firstKey)
    var output = output
    if range.lowerBound == 0 { output.append(segment.firstKey) }
    // The step at index i leads to key i + 1.
    let first = max(range.lowerBound - 1, 0)
    key = key &+ base &* UInt64(first) &+ source.sum(of: first, width: width, from: 0)
    var bit = first * width
    for _ in first..<max(range.upperBound - 1, first) {
      key = key &+ base &+ (source.word(at: bit) & mask)
      output.append(Int64(bitPattern: key))
      bit &+= width
    }
  }

  static func encode(
    _ steps: Span<UInt64>,
    width: Int,
    smallest: UInt64,
    to bytes: inout [UInt8]
  ) {
    bytes.append(UInt8(width))
    bytes.appendVarint(smallest)
    PackedNumbers.encode(steps, less: smallest, width: width, to: &bytes)
  }
}

/// Keys in any order, minus the smallest key, as numbers of a fixed width.
///
/// Payload: the width in bits (one byte: 0 to 56, or 64), the first key minus the smallest
/// (varint), the numbers from the second on.
enum PackedKeys {
  static func decode(
    _ segment: Segment,
    _ payload: PaddedBytes,
    _ range: Range<Int>,
    _ output: KeyOutput
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(payload.bytes)
    let width = Int(try reader.byte())
    let smallest = UInt64(bitPattern: segment.firstKey) &- (try reader.varint())
    try PackedNumbers.check(width: width, count: segment.count - 1, bytes: reader.remaining)
    let source = payload.bits(from: reader.offset)
    let mask = BitSource.mask(width)
    var output = output
    if range.lowerBound == 0 { output.append(segment.firstKey) }
    // The number at index i is the key at i + 1.
    let first = max(range.lowerBound - 1, 0)
    var bit = first * width
    for _ in first..<max(range.upperBound - 1, first) {
      output.append(Int64(bitPattern: smallest &+ (source.word(at: bit) & mask)))
      bit &+= width
    }
  }

  static func encode(
    _ keys: Span<Int64>,
    width: Int,
    smallest: Int64,
    to bytes: inout [UInt8]
  ) {
    bytes.append(UInt8(width))
    bytes.appendVarint(UInt64(bitPattern: keys[0] &- smallest))
    let count = keys.count - 1
    bytes.appendBits(atMost: PackedNumbers.byteCount(width: width, count: count)) { writer in
      for index in 1..<max(keys.count, 1) {
        writer.write(UInt64(bitPattern: keys[index] &- smallest), bits: UInt64(width))
      }
    }
  }
}

enum PackedNumbers {
  /// The width for numbers up to `largest`.
  ///
  /// A number of 57 to 63 bits may extend over nine bytes, so these take 64 bits.
  static func width(_ largest: UInt64) -> Int {
    let bits = 64 - largest.leadingZeroBitCount
    return bits > 56 ? 64 : bits
  }

  /// The width for numbers from which the smallest is subtracted.
  static func width(_ numbers: Span<UInt64>, less smallest: UInt64) -> Int {
    var all: UInt64 = 0
    for index in numbers.indices { all |= numbers[index] &- smallest }
    return width(all)
  }

  static func smallest(_ numbers: Span<UInt64>) -> UInt64 {
    var smallest = UInt64.max
    for index in numbers.indices {
      smallest = min(smallest, numbers[index])
      // No number is smaller. (Without this exit, the loop would be vectorized, which takes longer:
      // many machines cannot compare vectors of 64 bits.)
      if smallest == 0 { break }
    }
    return smallest
  }

  static func byteCount(width: Int, count: Int) -> Int { (width * count + 7) / 8 }

  static func check(width: Int, count: Int, bytes: Int) throws(ByteReader.Damage) {
    guard width <= 56 || width == 64, byteCount(width: width, count: count) == bytes else {
      throw ByteReader.Damage("a segment has the wrong length")
    }
  }

  static func encode(
    _ numbers: Span<UInt64>,
    less smallest: UInt64,
    width: Int,
    to bytes: inout [UInt8]
  ) {
    bytes.appendBits(atMost: byteCount(width: width, count: numbers.count)) { writer in
      let bits = UInt64(width)
      guard width <= 56 else {
        for index in numbers.indices { writer.write(numbers[index] &- smallest, bits: bits) }
        return
      }
      for index in numbers.indices { writer.writeShort(numbers[index] &- smallest, bits: bits) }
    }
  }
}

extension [UInt8] {
  private static let zeros = [UInt8](repeating: 0, count: 1 << 14)

  /// Faster than appending a repeated element, which is done byte by byte.
  mutating func appendZeros(_ count: Int) {
    var rest = count
    while rest > 0 {
      let part = Swift.min(rest, Self.zeros.count)
      append(contentsOf: Self.zeros[..<part])
      rest -= part
    }
  }

  /// Appends at most `limit` bytes, which a closure writes.
  mutating func appendBits(atMost limit: Int, _ body: (inout BitWriter) -> Void) {
    let start = count
    appendZeros(limit + 8)
    var bytes = mutableSpan
    // Whatever is written stays plain bytes.
    var writer = unsafe BitWriter(bytes.mutableBytes, from: start)
    body(&writer)
    let end = writer.finish()
    removeLast(count - end)
  }
}
