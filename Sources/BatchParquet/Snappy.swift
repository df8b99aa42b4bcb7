/// Snappy's block format, as of https://github.com/google/snappy/blob/main/format_description.txt.
enum Snappy {
  /// Matches are searched in fragments whose offsets have 16 bits.
  private static let fragmentCount = 65_536
  private static let tableBits = 14
  /// The last bytes of a fragment are literals, so that words can be loaded without checks.
  private static let margin = 15

  static func compress(_ source: borrowing Store<UInt8>, to target: inout Store<UInt8>) {
    target.reserve(32 + source.count + source.count / 6)
    target.append(varint: UInt64(source.count))
    unsafe withUnsafeTemporaryAllocation(of: UInt16.self, capacity: 1 << tableBits) { table in
      for start in stride(from: 0, to: source.count, by: fragmentCount) {
        unsafe table.initialize(repeating: 0)
        let fragment = unsafe UnsafeRawPointer(source.base + start)
        let count = min(fragmentCount, source.count - start)
        unsafe compress(fragment, count, table, to: &target)
      }
    }
  }

  @inline(__always)
  private static func slot(_ word: UInt32) -> Int {
    Int(truncatingIfNeeded: (word &* 0x1E35_A7BD) &>> UInt32(32 - tableBits))
  }

  private static func compress(
    _ source: UnsafeRawPointer,
    _ count: Int,
    _ table: UnsafeMutableBufferPointer<UInt16>,
    to target: inout Store<UInt8>
  ) {
    var (position, written, tries) = (1, 0, 32)
    while position < count - margin {
      let word = unsafe Words.load32(source, position)
      let slot = slot(word)
      let candidate = unsafe Int(table[slot])
      unsafe table[slot] = UInt16(truncatingIfNeeded: position)
      guard unsafe word == Words.load32(source, candidate) else {
        // Each failure makes steps longer, so that bytes without repetitions take little time.
        position &+= tries &>> 5
        tries &+= 1
        continue
      }
      let length = unsafe 4 + sameCount(source, candidate + 4, position + 4, count)
      unsafe write(literal: source + written, position - written, to: &target)
      write(offset: position - candidate, length: length, to: &target)
      position += length
      (written, tries) = (position, 32)
      if position < count - margin {
        let last = unsafe Self.slot(Words.load32(source, position - 1))
        unsafe table[last] = UInt16(truncatingIfNeeded: position - 1)
      }
    }
    unsafe write(literal: source + written, count - written, to: &target)
  }

  @inline(__always)
  private static func sameCount(_ source: UnsafeRawPointer, _ a: Int, _ b: Int, _ end: Int) -> Int {
    var count = 0
    while b &+ count &+ 8 <= end {
      let difference = unsafe Words.load(source, a &+ count) ^ Words.load(source, b &+ count)
      if difference != 0 { return count &+ difference.trailingZeroBitCount &>> 3 }
      count &+= 8
    }
    while b &+ count < end, unsafe Words.byte(source, a &+ count) == Words.byte(source, b &+ count)
    { count &+= 1 }
    return count
  }

  @inline(__always)
  private static func write(
    literal bytes: UnsafeRawPointer,
    _ count: Int,
    to target: inout Store<UInt8>
  ) {
    if count == 0 { return }
    let length = count - 1
    if length < 60 {
      target.append(UInt8(length << 2))
    } else {
      target.append(61 << 2)
      target.append(littleEndian: UInt16(length))
    }
    unsafe target.append(bytes.assumingMemoryBound(to: UInt8.self), count: count)
  }

  @inline(__always)
  private static func write(offset: Int, length: Int, to target: inout Store<UInt8>) {
    var rest = length
    while rest > 64 {
      // At least the four bytes are left that a copy must have.
      let part = min(64, rest - 4)
      target.append(UInt8(2 | (part - 1) << 2))
      target.append(littleEndian: UInt16(offset))
      rest -= part
    }
    if rest < 12, offset < 2048 {
      target.append(UInt8(1 | (rest - 4) << 2 | (offset >> 8) << 5))
      target.append(UInt8(truncatingIfNeeded: offset))
    } else {
      target.append(UInt8(2 | (rest - 1) << 2))
      target.append(littleEndian: UInt16(offset))
    }
  }
}
