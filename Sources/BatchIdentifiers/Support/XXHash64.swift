/// XXH64 of Yann Collet's xxHash: the checksum of every block in the project's files.
///
/// It is implemented here because the system's liblz4 does not export its own copy.
package struct XXHash64: Sendable {
  private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
  private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
  private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
  private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
  private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

  /// Hashes several bytes per clock cycle.
  package static func hash(_ bytes: Span<UInt8>, seed: UInt64 = 0) -> UInt64 {
    let count = bytes.count
    var offset = 0
    var hash: UInt64
    if count >= 32 {
      var a = seed &+ prime1 &+ prime2
      var b = seed &+ prime2
      var c = seed
      var d = seed &- prime1
      while offset &+ 32 <= count {
        a = round(a, load64(bytes, offset))
        b = round(b, load64(bytes, offset &+ 8))
        c = round(c, load64(bytes, offset &+ 16))
        d = round(d, load64(bytes, offset &+ 24))
        offset &+= 32
      }
      hash = rotate(a, 1) &+ rotate(b, 7) &+ rotate(c, 12) &+ rotate(d, 18)
      hash = merge(merge(merge(merge(hash, a), b), c), d)
    } else {
      hash = seed &+ prime5
    }
    hash = hash &+ UInt64(truncatingIfNeeded: count)
    while offset &+ 8 <= count {
      hash = (rotate(hash ^ round(0, load64(bytes, offset)), 27) &* prime1) &+ prime4
      offset &+= 8
    }
    if offset &+ 4 <= count {
      let word = UInt64(bytes.littleEndian(at: offset, as: UInt32.self))
      hash = (rotate(hash ^ (word &* prime1), 23) &* prime2) &+ prime3
      offset &+= 4
    }
    while offset < count {
      let byte = UInt64(bytes[offset])
      hash = rotate(hash ^ (byte &* prime5), 11) &* prime1
      offset &+= 1
    }
    return finish(hash)
  }

  package static func hash(_ bytes: [UInt8], seed: UInt64 = 0) -> UInt64 {
    hash(bytes.span, seed: seed)
  }

  @inline(__always)
  private static func load64(_ bytes: Span<UInt8>, _ offset: Int) -> UInt64 {
    // Each loop continues only while everything that it loads is within the bytes.
    unsafe bytes.littleEndian(unchecked: offset)
  }

  @inline(__always)
  private static func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 {
    (value &<< count) | (value &>> (64 &- count))
  }

  @inline(__always)
  private static func round(_ accumulator: UInt64, _ input: UInt64) -> UInt64 {
    rotate(accumulator &+ input &* prime2, 31) &* prime1
  }

  @inline(__always)
  private static func merge(_ hash: UInt64, _ accumulator: UInt64) -> UInt64 {
    (hash ^ round(0, accumulator)) &* prime1 &+ prime4
  }

  @inline(__always)
  private static func finish(_ value: UInt64) -> UInt64 {
    var hash = value
    hash = (hash ^ (hash &>> 33)) &* prime2
    hash = (hash ^ (hash &>> 29)) &* prime3
    return hash ^ (hash &>> 32)
  }
}
