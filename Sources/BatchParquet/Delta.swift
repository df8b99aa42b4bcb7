/// DELTA_BINARY_PACKED: numbers as differences to the one before, in blocks of 128.
enum Delta {
  private static let blockCount = 128
  /// Each part of a block has a width of its own.
  private static let partCount = 32

  /// Narrow numbers have 32 bits, and so must their differences have, which wrap around.
  static func write(
    _ numbers: borrowing Store<UInt64>,
    _ range: Range<Int>,
    isNarrow: Bool,
    to page: inout Store<UInt8>
  ) {
    page.append(varint: UInt64(blockCount))
    page.append(varint: UInt64(blockCount / partCount))
    page.append(varint: UInt64(range.count))
    page.append(zigzag: range.isEmpty ? 0 : Int64(bitPattern: numbers[range.lowerBound]))
    guard range.count > 1 else { return }
    precondition(range.upperBound <= numbers.count)

    unsafe withUnsafeTemporaryAllocation(of: UInt64.self, capacity: blockCount) { block in
      guard let deltas = block.baseAddress else { return }
      var index = range.lowerBound + 1
      while index < range.upperBound {
        let count = min(blockCount, range.upperBound - index)
        var least = Int64.max
        for offset in 0..<count {
          let start = unsafe numbers.base + index + offset
          let wide = unsafe Int64(bitPattern: start[0] &- start[-1])
          let delta = isNarrow ? Int64(Int32(truncatingIfNeeded: wide)) : wide
          least = min(least, delta)
          unsafe deltas[offset] = UInt64(bitPattern: delta)
        }
        for offset in 0..<blockCount {
          unsafe deltas[offset] = offset < count ? deltas[offset] &- UInt64(bitPattern: least) : 0
        }
        page.append(zigzag: least)
        unsafe write(deltas, count, to: &page)
        index += count
      }
    }
  }

  /// Parts without any number have a width, which is zero, but no bytes.
  private static func write(
    _ deltas: UnsafePointer<UInt64>,
    _ count: Int,
    to page: inout Store<UInt8>
  ) {
    let widths = page.count
    page.append(repeating: 0, count: blockCount / partCount)
    for part in 0..<(count + partCount - 1) / partCount {
      let start = unsafe deltas + part * partCount
      var all: UInt64 = 0
      for offset in 0..<partCount { unsafe all |= start[offset] }
      let width = UInt64.bitWidth - all.leadingZeroBitCount
      page[widths + part] = UInt8(width)
      if width > 0 { unsafe Bits.pack(start, partCount, width: width, to: &page) }
    }
  }
}
