/// Numbers of a few bits, packed or as runs: Parquet's hybrid of both.
enum Bits {
  /// How many bits the numbers below a count need; one at least, as some readers know no zero.
  static func width(below count: Int) -> Int {
    Int.bitWidth - max(1, count - 1).leadingZeroBitCount
  }

  /// Packs numbers with the lowest bit first, up to the next whole byte after the last.
  @inline(__always)
  static func pack<Number: FixedWidthInteger & UnsignedInteger>(
    _ numbers: UnsafePointer<Number>,
    _ count: Int,
    width: Int,
    to page: inout Store<UInt8>
  ) {
    let byteCount = (count * width + 7) / 8
    unsafe page.append(atMost: byteCount + 8) { start in
      let place = UnsafeMutableRawPointer(start)
      var (word, used, offset): (UInt64, Int, Int) = (0, 0, 0)
      for index in 0..<count {
        let number = unsafe UInt64(truncatingIfNeeded: numbers[index])
        word |= number &<< UInt64(truncatingIfNeeded: used)
        used &+= width
        if used >= 64 {
          unsafe place.storeBytes(of: word.littleEndian, toByteOffset: offset, as: UInt64.self)
          offset &+= 8
          used &-= 64
          // A shift by the whole width, where nothing is left over, must give zero.
          word = number >> UInt64(truncatingIfNeeded: width &- used)
        }
      }
      unsafe place.storeBytes(of: word.littleEndian, toByteOffset: offset, as: UInt64.self)
      return byteCount
    }
  }

  /// The hybrid of runs and packed groups of eight.
  @inline(__always)
  static func writeHybrid<Number: FixedWidthInteger & UnsignedInteger>(
    _ numbers: UnsafePointer<Number>,
    _ count: Int,
    width: Int,
    to page: inout Store<UInt8>
  ) {
    // A run costs its own header and the next group's, so that short ones of few bits do not pay.
    let shortest = max(8, (40 + width - 1) / width)
    var (index, literals) = (0, 0)
    while index < count {
      let number = unsafe numbers[index]
      var end = index &+ 1
      while end < count, unsafe numbers[end] == number { end &+= 1 }
      guard end &- index >= shortest else {
        index = min(index &+ 8, count)
        continue
      }
      unsafe writeGroups(numbers + literals, index - literals, width: width, to: &page)
      writeRun(number, end - index, width: width, to: &page)
      (index, literals) = (end, end)
    }
    unsafe writeGroups(numbers + literals, count - literals, width: width, to: &page)
  }

  static func writeRun<Number: FixedWidthInteger & UnsignedInteger>(
    _ number: Number,
    _ count: Int,
    width: Int,
    to page: inout Store<UInt8>
  ) {
    guard count > 0 else { return }
    page.append(varint: UInt64(count) << 1)
    for byte in 0..<(width + 7) / 8 { page.append(UInt8(truncatingIfNeeded: number >> (8 * byte))) }
  }

  private static func writeGroups<Number: FixedWidthInteger & UnsignedInteger>(
    _ numbers: UnsafePointer<Number>,
    _ count: Int,
    width: Int,
    to page: inout Store<UInt8>
  ) {
    guard count > 0 else { return }
    let groups = (count + 7) / 8
    page.append(varint: UInt64(groups) << 1 | 1)
    let end = page.count + groups * width
    unsafe pack(numbers, count, width: width, to: &page)
    page.append(repeating: 0, count: end - page.count)
  }
}
