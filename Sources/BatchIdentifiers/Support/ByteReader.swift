/// Reads fields from the front of untrusted bytes.
///
/// It never reads past the end: a field that does not fit throws ``Damage``.
package struct ByteReader: BitwiseCopyable, ~Escapable {
  /// Why bytes could not be decoded; callers that know the location convert it to a `BatchError`.
  package struct Damage: Error {
    package let reason: StaticString

    package init(_ reason: StaticString) {
      self.reason = reason
    }
  }

  private let bytes: Span<UInt8>
  package private(set) var offset = 0
  private var end: Int { bytes.count }

  @_lifetime(copy bytes)
  package init(_ bytes: Span<UInt8>) {
    self.bytes = bytes
  }

  package var isAtEnd: Bool { offset == end }
  package var remaining: Int { end - offset }

  package mutating func byte() throws(Damage) -> UInt8 {
    guard offset < end else { throw Damage("it ends too early") }
    defer { offset += 1 }
    return bytes[offset]
  }

  package mutating func integer<Integer: FixedWidthInteger & BitwiseCopyable>(
    _: Integer.Type = Integer.self
  ) throws(Damage) -> Integer {
    let size = MemoryLayout<Integer>.size
    guard remaining >= size else { throw Damage("it ends too early") }
    defer { offset += size }
    return bytes.littleEndian(at: offset, as: Integer.self)
  }

  /// Reads an unsigned LEB128 of at most 64 bits, in its shortest form.
  package mutating func varint() throws(Damage) -> UInt64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      let byte = try byte()
      if shift == 63, byte > 1 { throw Damage("a number is too large") }
      value |= UInt64(byte & 0x7F) &<< shift
      if byte & 0x80 == 0 {
        if byte == 0, shift > 0 { throw Damage("a number is not in its shortest form") }
        return value
      }
      shift += 7
      if shift > 63 { throw Damage("a number is too large") }
    }
  }

  /// Reads a LEB128 with the sign in the lowest bit.
  package mutating func signedVarint() throws(Damage) -> Int64 {
    Int64(zigzag: try varint())
  }

  /// Reads a LEB128 that is a count, at most `limit`.
  package mutating func count(atMost limit: Int) throws(Damage) -> Int {
    let value = try varint()
    guard value <= UInt64(limit) else { throw Damage("a count or length is out of bounds") }
    return Int(value)
  }

  @_lifetime(copy self)
  package mutating func take(_ count: Int) throws(Damage) -> Span<UInt8> {
    guard count >= 0, remaining >= count else { throw Damage("it ends too early") }
    defer { offset += count }
    return bytes.extracting(offset..<(offset + count))
  }
}

extension Int64 {
  /// The signed number of a zigzag code: 0, -1, 1, -2 and so on.
  @inline(__always)
  package init(zigzag code: UInt64) {
    self = Int64(bitPattern: (code &>> 1) ^ (0 &- (code & 1)))
  }

  /// The zigzag code, which is small for numbers near zero, of either sign.
  @inline(__always)
  package var zigzag: UInt64 {
    UInt64(bitPattern: (self &<< 1) ^ (self &>> 63))
  }
}

extension UInt64 {
  /// The length of the number as a LEB128 in bytes.
  @inline(__always)
  package var varintByteCount: Int { (70 - (self | 1).leadingZeroBitCount) / 7 }
}

extension [UInt8] {
  package mutating func appendVarint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest &>>= 7
    }
    append(UInt8(rest))
  }

  package mutating func appendSignedVarint(_ value: Int64) {
    appendVarint(value.zigzag)
  }

  package mutating func appendInteger<Integer: FixedWidthInteger>(_ value: Integer) {
    for shift in stride(from: 0, to: Integer.bitWidth, by: 8) {
      append(UInt8(truncatingIfNeeded: value >> shift))
    }
  }
}
