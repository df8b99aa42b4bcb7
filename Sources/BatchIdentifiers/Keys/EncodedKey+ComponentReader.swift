extension EncodedKey {
  /// Reads the components of encoded keys without making strings or arrays of them.
  ///
  /// Use one reader for many keys: it owns the buffer for unescaped text.
  public struct ComponentReader: Sendable {
    private var scratch: [UInt8] = []

    /// Makes a reader.
    public init() {}

    /// Calls `body` with each component of a key that is known to be complete.
    ///
    /// Keys of an ``EncodedKey`` or ``EncodedKeys`` are complete. For bytes that are not a key, the
    /// loop ends early; nothing outside them is read.
    ///
    /// - Complexity: O(n) in the bytes of the key.
    public mutating func forEachComponent<Failure: Error>(
      of key: UnsafeRawBufferPointer,
      _ body: (RawKeyComponent) throws(Failure) -> Void
    ) throws(Failure) {
      var offset = 0
      while true {
        // The caller keeps the buffer valid until this returns.
        switch Self.part(of: unsafe Span(_unsafeBytes: key), at: &offset) {
        case .null: try body(.null)
        case .integer(let value): try body(.integer(value))
        case .real(let value): try body(.real(value))
        case .content(let range, let isText, isEscaped: false):
          let content = unsafe UnsafeRawBufferPointer(rebasing: key[range])
          try unsafe body(isText ? .text(content) : .blob(content))
        case .content(let range, let isText, isEscaped: true):
          unescape(unsafe Span(_unsafeBytes: key).extracting(range))
          try unsafe withBuffer(of: scratch.span) { content throws(Failure) in
            try unsafe body(isText ? .text(content) : .blob(content))
          }
        case nil: return
        }
      }
    }

    @inline(__always)
    mutating func forEachComponent<Failure: Error>(
      in key: Span<UInt8>,
      _ body: (KeyComponentBytes) throws(Failure) -> Void
    ) throws(Failure) {
      var offset = 0
      while true {
        switch Self.part(of: key, at: &offset) {
        case .null: try body(.null)
        case .integer(let value): try body(.integer(value))
        case .real(let value): try body(.real(value))
        case .content(let range, let isText, isEscaped: false):
          let content = key.extracting(range)
          if isText { try body(.text(content)) } else { try body(.blob(content)) }
        case .content(let range, let isText, isEscaped: true):
          unescape(key.extracting(range))
          if isText { try body(.text(scratch.span)) } else { try body(.blob(scratch.span)) }
        case nil: return
        }
      }
    }

    /// Whether bytes are a complete key: at least one component, each complete and in its canonical
    /// form.
    static func isValid(_ key: Span<UInt8>) -> Bool {
      guard !key.isEmpty, key.count <= EncodedKey.maximumByteCount else { return false }
      var offset = 0
      while offset < key.count {
        guard part(of: key, at: &offset) != nil else { return false }
      }
      return true
    }

    /// A component, and the range of its bytes if it is a text or a blob.
    private enum Part {
      case null
      case integer(Int64)
      case real(Double)
      case content(Range<Int>, isText: Bool, isEscaped: Bool)
    }

    /// Reads the component at `offset`, which then advances to the next one; nil if there is none.
    private static func part(of key: Span<UInt8>, at offset: inout Int) -> Part? {
      guard offset < key.count else { return nil }
      let tag = key[offset]
      switch tag {
      case Tag.null:
        offset += 1
        return .null
      case Tag.text, Tag.blob:
        let start = offset + 1
        guard let end = contentEnd(key, from: start) else { return nil }
        offset = end.offset + 1
        return .content(start..<end.offset, isText: tag == Tag.text, isEscaped: end.isEscaped)
      default:
        return number(key, at: &offset)
      }
    }

    private static func contentEnd(
      _ key: Span<UInt8>,
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

    private mutating func unescape(_ content: Span<UInt8>) {
      scratch.removeAll(keepingCapacity: true)
      var offset = 0
      while offset < content.count {
        scratch.append(content[offset])
        offset += content[offset] == 0 ? 2 : 1
      }
    }

    /// The number at `offset`; nil if there is none, or if it is not in its canonical form.
    private static func number(
      _ key: Span<UInt8>,
      at offset: inout Int
    ) -> Part? {
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

    private static func fits(_ value: Int64, _ size: Int) -> Bool {
      let bytes = (64 - value.leadingZeroBitCount + 7) / 8
      return max(bytes, 1) == size
    }

    private static func double(_ key: Span<UInt8>, at offset: Int) -> Double? {
      guard offset + 8 <= key.count else { return nil }
      let ordered = key.bigEndian(at: offset, as: UInt64.self)
      let pattern = ordered >> 63 == 1 ? ordered ^ 1 << 63 : ~ordered
      let value = Double(bitPattern: pattern)
      let isNegativeZero = pattern == 1 << 63
      return value.isNaN || isNegativeZero ? nil : value
    }
  }
}
