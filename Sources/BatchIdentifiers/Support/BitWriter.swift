/// Writes numbers of a few bits each, lowest bit first.
///
/// The bytes must have room for the output and 8 more.
struct BitWriter: ~Copyable, ~Escapable {
  private var bytes: MutableRawSpan
  private var offset: Int
  /// The last offset with room for 8 bytes.
  private let lastOffset: Int
  private var pending: UInt64 = 0
  private var pendingCount: UInt64 = 0

  @_lifetime(copy bytes)
  init(_ bytes: consuming MutableRawSpan, from offset: Int) {
    precondition(offset >= 0)
    lastOffset = bytes.byteCount - 8
    self.bytes = bytes
    self.offset = offset
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
    // The offset never decreases, so there is room if this holds.
    precondition(offset <= lastOffset)
    unsafe bytes.storeBytes(
      of: pending.littleEndian,
      toUncheckedByteOffset: offset,
      as: UInt64.self
    )
    let count = pendingCount &>> 3
    offset &+= Int(truncatingIfNeeded: count)
    // At most 63 bits were pending, so the shift is less than 64.
    pending = pending &>> (count &<< 3)
    pendingCount &= 7
  }

  @inline(__always)
  mutating func writeUnary(_ count: UInt64) {
    var rest = count
    while rest >= 56 {
      writeShort(0, bits: 56)
      rest &-= 56
    }
    writeShort(1 &<< rest, bits: rest &+ 1)
  }

  /// Completes the last byte, and returns the offset of the next one.
  mutating func finish() -> Int {
    if pendingCount > 0 {
      bytes.storeBytes(
        of: UInt8(truncatingIfNeeded: pending),
        toByteOffset: offset,
        as: UInt8.self
      )
      offset += 1
      pending = 0
      pendingCount = 0
    }
    return offset
  }
}
