/// Operations on bytes, eight at a time.
///
/// The functions read no byte outside of what they are given.
enum Words {
  /// A product of two odd words whose halves are folded spreads every bit.
  private static let factor: UInt64 = 0x9FB2_1C65_1E98_DF25

  @inline(__always)
  static func load(_ bytes: UnsafeRawPointer, _ offset: Int) -> UInt64 {
    unsafe UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  @inline(__always)
  static func load32(_ bytes: UnsafeRawPointer, _ offset: Int) -> UInt32 {
    unsafe UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  @inline(__always)
  static func byte(_ bytes: UnsafeRawPointer, _ offset: Int) -> UInt8 {
    unsafe bytes.load(fromByteOffset: offset, as: UInt8.self)
  }

  /// Eight bytes of an array.
  static func word(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  @inline(__always)
  static func mixed(_ word: UInt64) -> UInt64 {
    let product = word.multipliedFullWidth(by: factor)
    return product.high ^ product.low
  }

  /// Fewer than eight bytes as a word that no other bytes of the same count have.
  @inline(__always)
  private static func short(_ bytes: UnsafeRawPointer, _ count: Int) -> UInt64 {
    if count >= 4 {
      let high = unsafe UInt64(load32(bytes, count - 4))
      return unsafe UInt64(load32(bytes, 0)) | high << 32
    }
    if count == 0 { return 0 }
    let ends = unsafe UInt64(byte(bytes, 0)) | UInt64(byte(bytes, count - 1)) << 8
    return unsafe ends | UInt64(byte(bytes, count / 2)) << 16
  }

  /// A hash for tables and against damage, the same on every machine.
  @inline(__always)
  static func hash(_ bytes: UnsafeRawPointer, _ count: Int) -> UInt64 {
    var hash = UInt64(truncatingIfNeeded: count) &* 0x9E37_79B9_7F4A_7C15
    if count < 8 { return unsafe mixed(hash ^ short(bytes, count)) }
    var offset = 0
    while offset &+ 8 < count {
      unsafe hash = mixed(hash ^ load(bytes, offset)) &+ factor
      offset &+= 8
    }
    // The last word overlaps the one before instead of being cut.
    return unsafe mixed(hash ^ load(bytes, count &- 8))
  }

  @inline(__always)
  static func areSame(_ a: UnsafeRawPointer, _ b: UnsafeRawPointer, _ count: Int) -> Bool {
    if count < 8 { return unsafe short(a, count) == short(b, count) }
    var offset = 0
    while offset &+ 8 < count {
      if unsafe load(a, offset) != load(b, offset) { return false }
      offset &+= 8
    }
    return unsafe load(a, count &- 8) == load(b, count &- 8)
  }

  /// Whether bytes come before others, as unsigned bytes and with a prefix first.
  @inline(__always)
  static func precedes(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    let shared = min(a.count, b.count)
    var offset = 0
    if shared > 0, let a = a.baseAddress, let b = b.baseAddress {
      while offset &+ 8 <= shared {
        let (left, right) = unsafe (load(a, offset), load(b, offset))
        if left != right { return left.byteSwapped < right.byteSwapped }
        offset &+= 8
      }
    }
    while offset < shared {
      if unsafe a[offset] != b[offset] { return unsafe a[offset] < b[offset] }
      offset &+= 1
    }
    return a.count < b.count
  }
}
