extension EncodedKey {
  /// Builds encoded keys, component by component.
  ///
  /// Use one encoder for many keys: `removeAll()` keeps its memory.
  ///
  ///     var encoder = EncodedKey.Encoder()
  ///     encoder.append(text: "EU")
  ///     encoder.append(28)
  ///     encoder.key   // =EU,28
  public struct Encoder: Sendable {
    /// The encoded components so far.
    public private(set) var bytes: [UInt8] = []

    /// Makes an empty encoder.
    public init() {}

    /// The key with the components so far.
    public var key: EncodedKey { EncodedKey(unchecked: bytes) }

    /// Removes the components, and keeps the memory for the next key.
    public mutating func removeAll() {
      bytes.removeAll(keepingCapacity: true)
    }

    /// Appends an SQL NULL.
    public mutating func appendNull() {
      bytes.append(Tag.null)
    }

    /// Appends an INTEGER.
    public mutating func append(_ value: Int64) {
      let magnitude = value < 0 ? UInt64(bitPattern: ~value) : UInt64(bitPattern: value)
      // The complement of -1 has no bits but still takes one byte: the tag alone means zero.
      var size = (64 - magnitude.leadingZeroBitCount + 7) / 8
      if value < 0 { size = max(size, 1) }
      bytes.append(value < 0 ? Tag.zero - UInt8(size) : Tag.zero + UInt8(size))
      let pattern = UInt64(bitPattern: value)
      for index in stride(from: size - 1, through: 0, by: -1) {
        bytes.append(UInt8(truncatingIfNeeded: pattern &>> UInt64(index * 8)))
      }
    }

    /// Appends a REAL; NaN becomes NULL and negative zero becomes zero, as in SQLite.
    public mutating func append(_ value: Double) {
      guard !value.isNaN else { return appendNull() }
      let value = value == 0 ? 0 : value
      if value < -0x1p63 {
        bytes.append(Tag.hugeNegative)
      } else if value >= 0x1p63 {
        bytes.append(Tag.hugePositive)
      } else {
        append(Int64(value.rounded(.down)))
        bytes.append(Tag.fraction)
      }
      let pattern = value.bitPattern
      let ordered = pattern >> 63 == 1 ? ~pattern : pattern | 1 << 63
      for shift in stride(from: 56 as UInt64, through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: ordered &>> shift))
      }
    }

    /// Appends a TEXT.
    public mutating func append(text: String) {
      append(text: text.utf8.span)
    }

    /// Appends a TEXT from its bytes, which need not be UTF-8.
    public mutating func append(textBytes: UnsafeRawBufferPointer) {
      unsafe withSpan(of: textBytes) { append(text: $0) }
    }

    mutating func append(text: Span<UInt8>) {
      bytes.append(Tag.text)
      appendEscaped(text)
    }

    /// Appends a BLOB.
    public mutating func append(blob: UnsafeRawBufferPointer) {
      unsafe withSpan(of: blob) { append(blob: $0) }
    }

    mutating func append(blob: Span<UInt8>) {
      bytes.append(Tag.blob)
      appendEscaped(blob)
    }

    /// Appends a component of any kind.
    public mutating func append(_ component: KeyComponent) {
      switch component {
      case .null: appendNull()
      case .integer(let value): append(value)
      case .real(let value): append(value)
      case .text(let text): append(text: text)
      case .invalidText(let bytes): append(text: bytes.span)
      case .blob(let blob): append(blob: blob.span)
      }
    }

    private mutating func appendEscaped(_ content: Span<UInt8>) {
      bytes.append(copying: content)
      if content.contains(0) {
        bytes.removeLast(content.count)
        for index in content.indices {
          bytes.append(content[index])
          if content[index] == 0 { bytes.append(0xFF) }
        }
      }
      bytes.append(0)
    }
  }
}
