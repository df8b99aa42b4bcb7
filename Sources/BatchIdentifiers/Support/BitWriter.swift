/// Writes numbers of a few bits each, the lowest bit first.
///
/// The memory must have room for what is written and for 8 bytes more.
struct BitWriter {
  private var pointer: UnsafeMutableRawPointer
  private var pending: UInt64 = 0
  private var pendingCount: UInt64 = 0

  init(_ pointer: UnsafeMutableRawPointer) {
    self.pointer = pointer
  }

  /// Writes the low bits of `value`; the others must be zero.
  @inline(__always)
  mutating func write(_ value: UInt64, bits: UInt64) {
    if bits > 56 {
      writeShort(value & 0xFFFF_FFFF, bits: 32)
      writeShort(value &>> 32, bits: bits &- 32)
    } else {
      writeShort(value, bits: bits)
    }
  }

  /// Writes at most 56 bits.
  @inline(__always)
  mutating func writeShort(_ value: UInt64, bits: UInt64) {
    pending |= value &<< pendingCount
    pendingCount &+= bits
    pointer.storeBytes(of: pending.littleEndian, as: UInt64.self)
    let bytes = pendingCount &>> 3
    pointer += Int(truncatingIfNeeded: bytes)
    // Up to 63 bits were pending, so a shift by 64 cannot come up.
    pending = pending &>> (bytes &<< 3)
    pendingCount &= 7
  }

  /// Writes `count` zeros and a one.
  @inline(__always)
  mutating func writeUnary(_ count: UInt64) {
    var rest = count
    while rest >= 56 {
      writeShort(0, bits: 56)
      rest &-= 56
    }
    writeShort(1 &<< rest, bits: rest &+ 1)
  }

  /// Ends the last byte, and returns where the next one would stand.
  mutating func finish() -> UnsafeMutableRawPointer {
    if pendingCount > 0 {
      pointer.storeBytes(of: UInt8(truncatingIfNeeded: pending), as: UInt8.self)
      pointer += 1
      pending = 0
      pendingCount = 0
    }
    return pointer
  }
}

/// Reads numbers of a few bits each at any bit of bytes that have 16 readable bytes after them.
struct BitSource {
  let base: UnsafeRawPointer

  /// The 57 bits (at least) that start at a bit.
  @inline(__always)
  func word(at bit: Int) -> UInt64 {
    let word = base.loadUnaligned(fromByteOffset: bit &>> 3, as: UInt64.self)
    return UInt64(littleEndian: word) &>> UInt64(truncatingIfNeeded: bit & 7)
  }

  /// The 64 bits that start at a bit.
  @inline(__always)
  func fullWord(at bit: Int) -> UInt64 {
    let shift = UInt64(truncatingIfNeeded: bit & 7)
    let low = UInt64(littleEndian: base.loadUnaligned(fromByteOffset: bit &>> 3, as: UInt64.self))
    let high = UInt64(base.load(fromByteOffset: (bit &>> 3) &+ 8, as: UInt8.self))
    return (low &>> shift) | ((high &<< 1) &<< (63 &- shift))
  }

  /// The sum of numbers of equally many bits, the first of which starts at a bit.
  @inline(__always)
  func sum(of count: Int, width: Int, from start: Int) -> UInt64 {
    guard width > 0 else { return 0 }
    let mask = Self.mask(width)
    var sum: UInt64 = 0
    var bit = start
    for _ in 0..<count {
      sum = sum &+ (word(at: bit) & mask)
      bit &+= width
    }
    return sum
  }

  @inline(__always)
  static func mask(_ bits: Int) -> UInt64 {
    bits >= 64 ? .max : (1 &<< UInt64(truncatingIfNeeded: bits)) &- 1
  }
}
