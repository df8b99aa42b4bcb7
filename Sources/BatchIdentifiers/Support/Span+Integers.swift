extension Span<UInt8> {
  @inline(__always)
  func littleEndian<Integer: FixedWidthInteger & BitwiseCopyable>(
    at offset: Int,
    as _: Integer.Type
  ) -> Integer {
    // The span checks that all bytes are within it, and any bytes are a valid integer.
    let integer = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: Integer.self)
    return Integer(littleEndian: integer)
  }

  /// The little-endian 64-bit number at an offset, for loops that have checked all offsets at once.
  ///
  /// Checking each offset would take a fifth to a half of their time.
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

  @inline(__always)
  func bigEndian<Integer: FixedWidthInteger & BitwiseCopyable>(
    at offset: Int,
    as _: Integer.Type
  ) -> Integer {
    littleEndian(at: offset, as: Integer.self).byteSwapped
  }
}
