extension EncodedKey {
  /// Walks over the components of encoded keys without making strings or arrays of them.
  ///
  /// One reader serves many keys: it owns the space into which escaped text is written out.
  public struct ComponentReader: Sendable {
    private var scratch: [UInt8] = []

    /// Makes a reader.
    public init() {}

    /// Calls `body` with each component of a key that is known to be whole.
    ///
    /// Keys from an ``EncodedKey`` or from ``EncodedKeys`` are. Bytes that are not a key end the
    /// walk early; nothing is read outside of them.
    ///
    /// - Complexity: O(n) in the bytes of the key.
    public mutating func forEachComponent<Failure: Error>(
      of key: UnsafeRawBufferPointer,
      _ body: (RawKeyComponent) throws(Failure) -> Void
    ) throws(Failure) {
      var offset = 0
      while offset < key.count {
        let tag = key[offset]
        switch tag {
        case Tag.null:
          offset += 1
          try body(.null)
        case Tag.text, Tag.blob:
          guard let end = Self.contentEnd(key, from: offset + 1) else { return }
          let content = UnsafeRawBufferPointer(rebasing: key[(offset + 1)..<end.offset])
          offset = end.offset + 1
          if end.isEscaped {
            unescape(content)
            var failure: Failure?
            scratch.withUnsafeBytes { bytes in
              do throws(Failure) {
                try body(tag == Tag.text ? .text(bytes) : .blob(bytes))
              } catch {
                failure = error
              }
            }
            if let failure { throw failure }
          } else {
            try body(tag == Tag.text ? .text(content) : .blob(content))
          }
        default:
          guard let number = Self.number(key, at: &offset) else { return }
          try body(number)
        }
      }
    }

    /// Whether bytes are a whole key: at least one component, each complete, in its one form.
    static func isValid(_ key: UnsafeRawBufferPointer) -> Bool {
      guard !key.isEmpty, key.count <= EncodedKey.maximumByteCount else { return false }
      var offset = 0
      while offset < key.count {
        switch key[offset] {
        case Tag.null:
          offset += 1
        case Tag.text, Tag.blob:
          guard let end = contentEnd(key, from: offset + 1) else { return false }
          offset = end.offset + 1
        default:
          guard number(key, at: &offset) != nil else { return false }
        }
      }
      return true
    }

    /// Where the content that starts at `offset` has its closing zero.
    private static func contentEnd(
      _ key: UnsafeRawBufferPointer,
      from start: Int
    ) -> (offset: Int, isEscaped: Bool)? {
      var offset = start
      var isEscaped = false
      while offset < key.count {
        if key[offset] == 0 {
          guard offset + 1 < key.count, key[offset + 1] == 0xFF else { return (offset, isEscaped) }
          isEscaped = true
          offset += 1
        }
        offset += 1
      }
      return nil
    }

    private mutating func unescape(_ content: UnsafeRawBufferPointer) {
      scratch.removeAll(keepingCapacity: true)
      var offset = 0
      while offset < content.count {
        scratch.append(content[offset])
        offset += content[offset] == 0 ? 2 : 1
      }
    }

    /// The number at `offset`, or nil if there is none, or not in its one form.
    private static func number(
      _ key: UnsafeRawBufferPointer,
      at offset: inout Int
    ) -> RawKeyComponent? {
      let tag = key[offset]
      if tag == Tag.hugeNegative || tag == Tag.hugePositive {
        guard let value = double(key, at: offset + 1) else { return nil }
        guard tag == Tag.hugeNegative ? value < -0x1p63 : value >= 0x1p63 else { return nil }
        offset += 9
        return .real(value)
      }
      guard Tag.integers.contains(tag) else { return nil }
      let size = Tag.integerSize(tag)
      guard offset + 1 + size <= key.count else { return nil }
      var pattern: UInt64 = tag < Tag.zero ? .max : 0
      for index in 0..<size { pattern = pattern &<< 8 | UInt64(key[offset + 1 + index]) }
      let value = Int64(bitPattern: pattern)
      guard isShortest(value, tag: tag, size: size) else { return nil }
      let next = offset + 1 + size
      guard next < key.count, key[next] == Tag.fraction else {
        offset = next
        return .integer(value)
      }
      guard let real = double(key, at: next + 1), real >= -0x1p63, real < 0x1p63 else {
        return nil
      }
      guard Int64(real.rounded(.down)) == value else { return nil }
      offset = next + 9
      return .real(real)
    }

    private static func isShortest(_ value: Int64, tag: UInt8, size: Int) -> Bool {
      if tag == Tag.zero { return true }
      if tag > Tag.zero { return value > 0 && fits(value, size) }
      return value < 0 && fits(~value, max(size, 1))
    }

    /// Whether a value that is not negative takes `size` bytes and no fewer.
    private static func fits(_ value: Int64, _ size: Int) -> Bool {
      let bytes = (64 - value.leadingZeroBitCount + 7) / 8
      return max(bytes, 1) == size
    }

    private static func double(_ key: UnsafeRawBufferPointer, at offset: Int) -> Double? {
      guard offset + 8 <= key.count else { return nil }
      let ordered = UInt64(
        bigEndian: key.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      )
      let pattern = ordered >> 63 == 1 ? ordered ^ 1 << 63 : ~ordered
      let value = Double(bitPattern: pattern)
      let isNegativeZero = pattern == 1 << 63
      return value.isNaN || isNegativeZero ? nil : value
    }
  }
}
