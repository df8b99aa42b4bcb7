/// A bit for each number above the first key, which is one if the number is a key, in groups of
/// eight by a prefix code.
///
/// If keys are dense but form no runs, no other coding comes near the information they hold: Rice
/// codes and plain bitmaps are 4 % larger if every third number is a key.
///
/// Payload: the table (one byte, with the highest bit set if the bits are inverted), then the
/// codes. The first bit of a code is in the lowest free bit. Bits after the last key have no
/// meaning.
enum Bitmap {
  /// The number of codes of 1 to 12 bits in each table.
  ///
  /// The tables are the length-limited Huffman codes of eight independent bits that are one with a
  /// probability of 0.16, 0.22, 0.28, 0.34, 0.39 and 0.44. Among the codes, a byte precedes another
  /// if it has fewer ones, or equally many and is the smaller number.
  static let codeCounts: [[Int]] = [
    [0, 1, 0, 4, 4, 0, 28, 0, 56, 0, 29, 134],
    [0, 0, 1, 0, 8, 12, 16, 56, 0, 70, 11, 82],
    [0, 0, 0, 1, 8, 10, 18, 56, 69, 1, 55, 38],
    [0, 0, 0, 0, 1, 8, 28, 122, 60, 28, 7, 2],
    [0, 0, 0, 0, 0, 9, 28, 126, 59, 34, 0, 0],
    [0, 0, 0, 0, 0, 0, 37, 145, 74, 0, 0, 0],
  ]

  /// Each table is used below this share of ones, in 256ths.
  private static let limits = [49, 64, 80, 93, 106, 256]

  static let maximumCodeBitCount = 12
  /// How many bits after the end of a segment may be read: three codes.
  static let maximumOverrun = 3 * maximumCodeBitCount
  private static let inverted: UInt8 = 0x80

  struct Table: Sendable {
    /// For each byte: the code, reversed so that its first bit is the lowest, with its length above
    /// it.
    var codes = [UInt32](repeating: 0, count: 256)
    /// For the next 12 bits: the byte, with the length of its code above it.
    var bytes = [UInt16](repeating: 0, count: 1 << maximumCodeBitCount)

    init(counts: [Int]) {
      let order = (0..<256).sorted {
        ($0.nonzeroBitCount, $0) < ($1.nonzeroBitCount, $1)
      }
      var code = 0
      var next = 0
      for (index, count) in counts.enumerated() {
        let length = index + 1
        code <<= 1
        for byte in order[next..<(next + count)] {
          var reversed = 0
          for bit in 0..<length where code & (1 << bit) != 0 {
            reversed |= 1 << (length - 1 - bit)
          }
          codes[byte] = UInt32(length << 16 | reversed)
          for rest in 0..<(1 << (maximumCodeBitCount - length)) {
            bytes[rest << length | reversed] = UInt16(length << 8 | byte)
          }
          code += 1
        }
        next += count
      }
    }
  }

  static let tables: [Table] = codeCounts.map(Table.init)

  static func decode(
    _ segment: Segment,
    _ payload: PaddedBytes,
    _ range: Range<Int>,
    _ output: KeyOutput,
    from place: Place? = nil
  ) throws(ByteReader.Damage) {
    var output = output
    if range.lowerBound == 0 { output.append(segment.firstKey) }
    try forEachWord(segment, payload, from: place ?? Place(segment)) { place, word in
      let (index, base) = (place.index, place.base)
      var bits = word
      let count = bits.nonzeroBitCount
      guard index &+ count > range.lowerBound else { return true }
      var position = index
      while position < range.lowerBound {
        bits &= bits &- 1
        position &+= 1
      }
      let stop = min(index &+ count, range.upperBound)
      while position < stop {
        output.append(base &+ Int64(truncatingIfNeeded: bits.trailingZeroBitCount))
        bits &= bits &- 1
        position &+= 1
      }
      return stop < range.upperBound
    }
  }

  /// The position of 32 bits in a segment.
  struct Place {
    var bit = 0
    /// The index of the first key among these bits.
    var index = 1
    var base: Int64

    init(_ segment: Segment) {
      base = segment.firstKey &+ 1
    }
  }

  /// The number of keys in a segment below a value, and the position to decode the window with the
  /// next key from.
  static func lowerBound(
    of value: Int64,
    _ segment: Segment,
    _ payload: PaddedBytes
  ) throws(ByteReader.Damage) -> (index: Int, place: Place) {
    var window = Place(segment)
    guard segment.firstKey < value else { return (0, window) }
    var found = segment.count
    try forEachWord(segment, payload, from: window) { place, word in
      let distance = value &- place.base
      guard distance < 32 else {
        let next = place.index &+ word.nonzeroBitCount
        if next / SegmentCache.windowCount != place.index / SegmentCache.windowCount {
          window = place
        }
        return true
      }
      let below = distance <= 0 ? 0 : word & BitSource.mask(Int(distance))
      found = min(place.index &+ below.nonzeroBitCount, segment.count)
      return false
    }
    return (found, window)
  }

  /// Calls `body` with each 32 bits and their position, until it returns false or there are no more
  /// keys.
  @inline(__always)
  private static func forEachWord(
    _ segment: Segment,
    _ payload: PaddedBytes,
    from start: Place,
    _ body: (Place, UInt64) -> Bool
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(payload.bytes)
    let tag = try reader.byte()
    let number = Int(tag & ~inverted)
    guard number < tables.count else { throw ByteReader.Damage("a bitmap has an unknown table") }
    let inversion: UInt64 = tag & inverted == 0 ? 0 : 0xFFFF_FFFF
    let end = reader.remaining * 8
    let source = payload.bits(from: reader.offset)
    let mask = BitSource.mask(maximumCodeBitCount)
    let bytes = tables[number].bytes
    let table = bytes.span
    var place = start
    while place.index < segment.count {
      var bit = place.bit
      // Four codes fit into the 57 bits of a word.
      var codes = source.word(at: bit)
      var word: UInt64 = 0
      for byte in 0..<4 as Range<UInt64> {
        let entry = table[Int(truncatingIfNeeded: codes & mask)]
        let length = UInt64(truncatingIfNeeded: entry &>> 8)
        codes = codes &>> length
        bit &+= Int(truncatingIfNeeded: length)
        word |= UInt64(truncatingIfNeeded: entry & 0xFF) &<< (byte &* 8)
      }
      // Up to three codes of the last word may be after the end, and have no meaning.
      guard bit <= end &+ maximumOverrun else {
        throw ByteReader.Damage("a segment ends too early")
      }
      word ^= inversion
      guard body(place, word) else { return }
      place.bit = bit
      place.index &+= word.nonzeroBitCount
      place.base = place.base &+ 32
    }
  }

  /// Plans the bits of a segment, if its keys are dense enough for this coding.
  ///
  /// - Parameters:
  ///   - keys: The keys, ascending; if they are to be complemented, descending.
  ///   - isComplemented: Whether the keys are to be complemented.
  ///   - bytes: Gets the bits, in groups of eight.
  /// - Returns: The table to use and the length of the codes in bits, or nil if the keys are too
  ///   far apart or too close together.
  static func plan(
    _ keys: Span<Int64>,
    isComplemented: Bool,
    into bytes: inout [UInt8]
  ) -> (tag: UInt8, bits: Int)? {
    let first = keys[0]
    let last = keys[keys.count - 1]
    let span = UInt64(bitPattern: isComplemented ? first &- last : last &- first)
    guard keys.count > 16, span < UInt64(keys.count) * 8 else { return nil }
    let share = (keys.count - 1) * 256 / Int(span)
    let isInverted = share > 128
    let ones = isInverted ? 256 - share : share
    guard ones > 32, let number = limits.firstIndex(where: { ones < $0 }) else { return nil }
    let count = (Int(span) + 7) / 8
    if bytes.count < count + 8 { bytes = [UInt8](repeating: 0, count: count + 8) }
    var bitmap = bytes.mutableSpan
    bitmap.update(repeating: 0)
    for index in 1..<keys.count {
      let place = (isComplemented ? first &- keys[index] : keys[index] &- first) &- 1
      bitmap[Int(place &>> 3)] |= 1 &<< UInt8(truncatingIfNeeded: place & 7)
    }
    if isInverted { for index in 0..<count { bitmap[index] = ~bitmap[index] } }
    let codes = tables[number].codes
    var bits = 0
    for index in 0..<count {
      bits &+= Int(truncatingIfNeeded: codes[Int(bitmap[index])] &>> 16)
    }
    return (UInt8(number) | (isInverted ? inverted : 0), bits)
  }

  /// Writes the bits made by ``plan(_:isComplemented:into:)``.
  static func encode(
    _ bitmap: [UInt8],
    byteCount: Int,
    tag: UInt8,
    bits: Int,
    to bytes: inout [UInt8]
  ) {
    bytes.append(tag)
    let codes = tables[Int(tag & ~inverted)].codes
    bytes.appendBits(atMost: (bits + 7) / 8) { writer in
      for index in 0..<byteCount {
        let entry = codes[Int(bitmap[index])]
        writer.writeShort(
          UInt64(truncatingIfNeeded: entry & 0xFFFF),
          bits: UInt64(truncatingIfNeeded: entry &>> 16)
        )
      }
    }
  }
}
