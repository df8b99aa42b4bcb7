/// Reads numbers of a few bits each at any bit of bytes that are followed by readable padding.
///
/// Decoders check the length of a segment against its count before they read, so that no number
/// begins more than `Bitmap.maximumOverrun` bits after the end of the segment. The nine bytes from
/// there on are within the padding of ``PaddedBytes``, so loads need no checks.
@safe struct BitSource: BitwiseCopyable, ~Escapable {
  /// The first byte of the span that the lifetime of this value depends on.
  ///
  /// It is a pointer, since that of a span is optional: unwrapping it for each number makes loops
  /// up to a fifth slower.
  private let start: UnsafeRawPointer
  private let byteCount: Int

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>) {
    precondition(bytes.count >= PaddedBytes.padding)
    unsafe start = bytes.withUnsafeBytes { unsafe $0.baseAddress.unsafelyUnwrapped }
    byteCount = bytes.count
  }

  @inline(__always)
  private func load(_ offset: Int) -> UInt64 {
    assert(offset >= 0 && offset <= byteCount - 9)
    return unsafe UInt64(littleEndian: start.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// At least 57 bits, starting at a bit.
  @inline(__always)
  func word(at bit: Int) -> UInt64 {
    load(bit &>> 3) &>> UInt64(truncatingIfNeeded: bit & 7)
  }

  @inline(__always)
  func fullWord(at bit: Int) -> UInt64 {
    let shift = UInt64(truncatingIfNeeded: bit & 7)
    let low = load(bit &>> 3)
    let high = unsafe UInt64(start.load(fromByteOffset: (bit &>> 3) &+ 8, as: UInt8.self))
    return (low &>> shift) | ((high &<< 1) &<< (63 &- shift))
  }

  @inline(__always)
  func sum(of count: Int, width: Int, from start: Int) -> UInt64 {
    guard width > 0 else { return 0 }
    let mask = Self.mask(width)
    var sum: UInt64 = 0
    var bit = start
    var rest = count
    // Four numbers of up to 14 bits fit in one word.
    while width <= 14, rest >= 4 {
      var word = word(at: bit)
      for _ in 0..<4 {
        sum = sum &+ (word & mask)
        word = word &>> UInt64(truncatingIfNeeded: width)
      }
      bit &+= 4 &* width
      rest &-= 4
    }
    for _ in 0..<rest {
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
