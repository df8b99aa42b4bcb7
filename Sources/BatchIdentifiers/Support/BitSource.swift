/// Reads numbers of a few bits each at any bit of bytes that have readable ones after them.
///
/// Decoders check the length of a segment against its count before they read, so that no number
/// begins more than `Bitmap.maximumOverrun` bits behind the end of the segment. The nine bytes from
/// there on are within the padding of ``PaddedBytes``, and loads need no check of their own.
@safe struct BitSource: BitwiseCopyable, ~Escapable {
  /// The first of the bytes of the span that the lifetime of this depends on.
  ///
  /// A pointer, since that of a span is optional: loops that unwrap it for each number take up to a
  /// fifth longer.
  private let start: UnsafeRawPointer
  private let byteCount: Int

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>) {
    precondition(bytes.count >= PaddedBytes.padding)
    unsafe start = bytes.withUnsafeBytes { unsafe $0.baseAddress.unsafelyUnwrapped }
    byteCount = bytes.count
  }

  /// The eight bytes from an offset on, which one more follows.
  @inline(__always)
  private func load(_ offset: Int) -> UInt64 {
    assert(offset >= 0 && offset <= byteCount - 9)
    return unsafe UInt64(littleEndian: start.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// The 57 bits (at least) that start at a bit.
  @inline(__always)
  func word(at bit: Int) -> UInt64 {
    load(bit &>> 3) &>> UInt64(truncatingIfNeeded: bit & 7)
  }

  /// The 64 bits that start at a bit.
  @inline(__always)
  func fullWord(at bit: Int) -> UInt64 {
    let shift = UInt64(truncatingIfNeeded: bit & 7)
    let low = load(bit &>> 3)
    let high = unsafe UInt64(start.load(fromByteOffset: (bit &>> 3) &+ 8, as: UInt8.self))
    return (low &>> shift) | ((high &<< 1) &<< (63 &- shift))
  }

  /// The sum of numbers of equally many bits, the first of which starts at a bit.
  @inline(__always)
  func sum(of count: Int, width: Int, from start: Int) -> UInt64 {
    guard width > 0 else { return 0 }
    let mask = Self.mask(width)
    var sum: UInt64 = 0
    var bit = start
    var rest = count
    // Four numbers of up to 14 bits are in one word.
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
