extension String {
  /// `==` would ignore how characters are composed.
  package func hasSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }

  /// Invalid UTF-8 becomes replacement characters.
  init(repairing bytes: Span<UInt8>) {
    // The bytes are copied while the span is held.
    self = unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
  }

  /// Nil if the bytes are not UTF-8.
  init?(validating bytes: Span<UInt8>) {
    guard let text = try? UTF8Span(validating: bytes) else { return nil }
    self.init(copying: text)
  }
}
