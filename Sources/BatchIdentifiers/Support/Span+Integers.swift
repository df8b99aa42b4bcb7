extension Span<UInt8> {
  /// The little-endian integer whose first byte is at an offset.
  @inline(__always)
  func littleEndian<Integer: FixedWidthInteger & BitwiseCopyable>(
    at offset: Int,
    as _: Integer.Type
  ) -> Integer {
    // The span checks that all bytes are within it, and any bytes are a valid integer.
    let integer = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: Integer.self)
    return Integer(littleEndian: integer)
  }

  /// The little-endian number of 64 bits whose first byte is at an offset, for loops that have
  /// checked all offsets at once: a check for each costs a fifth to a half of their time.
  @unsafe
  @inline(__always)
  func littleEndian(unchecked offset: Int) -> UInt64 {
    assert(offset >= 0 && offset <= count - 8)
    return UInt64(
      littleEndian: unsafe bytes.unsafeLoadUnaligned(
        fromUncheckedByteOffset: offset,
        as: UInt64.self
      )
    )
  }

  /// The big-endian integer whose first byte is at an offset.
  @inline(__always)
  func bigEndian<Integer: FixedWidthInteger & BitwiseCopyable>(
    at offset: Int,
    as _: Integer.Type
  ) -> Integer {
    littleEndian(at: offset, as: Integer.self).byteSwapped
  }
}
