/// Steps as varints, compressed with LZ4: for repeating patterns.
///
/// Payload: the length of the varints (varint), then an LZ4 block of them. For ascending keys, they
/// are the steps minus one; for keys in any order, the zigzag codes of the steps.
enum StepsLZ4 {
  /// The longest varint has ten bytes.
  static let maximumByteCount = SegmentCoding.plainCount * 10

  static func decode(
    _ segment: Segment,
    _ payload: Span<UInt8>,
    _ range: Range<Int>,
    _ output: KeyOutput
  ) throws(ByteReader.Damage) {
    var outer = ByteReader(payload)
    let byteCount = try outer.count(atMost: maximumByteCount)
    let packed = try outer.take(outer.remaining)
    guard let bytes = LZ4.decompress(packed, count: byteCount) else {
      throw ByteReader.Damage("a segment cannot be decompressed")
    }
    var reader = ByteReader(bytes.span)
    var output = output
    if range.lowerBound == 0 { output.append(segment.firstKey) }
    var key = segment.firstKey
    let isAscending = segment.coding == .stepsLZ4
    // The step at index i leads to key i + 1.
    let first = max(range.lowerBound - 1, 0)
    for _ in 0..<first {
      key = key &+ step(try reader.varint(), isAscending)
    }
    for _ in first..<max(range.upperBound - 1, first) {
      key = key &+ step(try reader.varint(), isAscending)
      output.append(key)
    }
  }

  @inline(__always)
  private static func step(_ number: UInt64, _ isAscending: Bool) -> Int64 {
    isAscending ? Int64(bitPattern: number) &+ 1 : Int64(zigzag: number)
  }

  static func encode(_ numbers: Span<UInt64>, scratch: inout [UInt8]) -> [UInt8] {
    scratch.removeAll(keepingCapacity: true)
    scratch.appendVarints(numbers)
    var bytes: [UInt8] = []
    bytes.appendVarint(UInt64(scratch.count))
    LZ4.compress(scratch, to: &bytes)
    return bytes
  }

  /// Decides when to look for patterns: they begin rarely, and then continue for a while.
  struct Trial: Sendable {
    private var skipped = 0
    private(set) var isWorth = true

    /// Whether to try a segment that takes this many bits otherwise.
    mutating func isDue(bits: UInt64, count: Int) -> Bool {
      guard bits > UInt64(count) * 3 / 2 else { return false }
      skipped += 1
      guard isWorth || skipped >= 4 else { return false }
      skipped = 0
      isWorth = false
      return true
    }

    mutating func note(isWorth: Bool) {
      self.isWorth = isWorth
    }
  }

  /// Whether enough groups of numbers are repeated to try compressing them.
  ///
  /// A group has about 32 bits in the best coding so far, so it is not repeated by chance.
  static func isPromising(
    _ numbers: Span<UInt64>,
    _ bits: UInt64,
    _ seen: inout [UInt32]
  ) -> Bool {
    let size = max(3, min(16, 32 * numbers.count / Int(clamping: bits + 1)))
    guard numbers.count >= size * 4 else { return false }
    let slots = 1024
    if seen.count != slots { seen = [UInt32](repeating: 0, count: slots) }
    let factor: UInt64 = 0x9E37_79B1_85EB_CA87
    var oldest: UInt64 = 1
    for _ in 0..<size { oldest = oldest &* factor }
    var matches = 0
    var marks = seen.mutableSpan
    marks.update(repeating: 0)
    var hash: UInt64 = 0
    for index in 0..<size { hash = (hash &+ numbers[index]) &* factor }
    for index in size..<numbers.count {
      // Only some places are compared; they are chosen by content, so that a repetition chooses the
      // same ones.
      if hash &>> 61 == 0 {
        let mark = UInt32(truncatingIfNeeded: hash &>> 16)
        let slot = Int(truncatingIfNeeded: (hash &>> 48) & 0x3FF)
        if marks[slot] == mark { matches &+= 1 } else { marks[slot] = mark }
      }
      hash = (hash &+ numbers[index]) &* factor &- numbers[index &- size] &* oldest &* factor
    }
    return matches * 8 * 6 > numbers.count
  }
}

extension [UInt8] {
  mutating func appendVarints(_ numbers: Span<UInt64>) {
    let start = count
    appendZeros(numbers.count * 10)
    var bytes = mutableSpan
    var next = start
    for index in numbers.indices {
      var rest = numbers[index]
      while rest >= 0x80 {
        bytes[next] = UInt8(truncatingIfNeeded: rest) | 0x80
        next &+= 1
        rest &>>= 7
      }
      bytes[next] = UInt8(truncatingIfNeeded: rest)
      next &+= 1
    }
    removeLast(count - next)
  }
}
