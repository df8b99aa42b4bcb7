extension String {
  /// Whether another string has the same bytes; `==` ignores how characters are composed.
  package func hasSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }

  /// The text of bytes; ill-formed UTF-8 becomes replacement characters.
  init(repairing bytes: Span<UInt8>) {
    // The bytes are copied while the span is held.
    self = unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
  }

  /// The text of bytes, or nil if they are not UTF-8.
  init?(validating bytes: Span<UInt8>) {
    guard let text = try? UTF8Span(validating: bytes) else { return nil }
    self.init(copying: text)
  }
}
