extension Span<UInt8> {
  /// Whether the bytes are well-formed UTF-8.
  package var isUTF8: Bool {
    do {
      _ = try UTF8Span(validating: self)
      return true
    } catch {
      return false
    }
  }
}

extension UnsafeRawBufferPointer {
  /// Passes a text to `body` with ill-formed UTF-8 repaired, in pieces: a string of all of it would
  /// be a copy.
  @unsafe package func forEachRepairedByte(_ body: (UInt8) -> Void) {
    var start = 0
    while start < count {
      var end = Swift.min(start + (1 << 16), count)
      // Between characters, so that repairs do not straddle pieces.
      while unsafe end < count && self[end] & 0xc0 == 0x80 { end += 1 }
      for byte in unsafe String(decoding: self[start..<end], as: UTF8.self).utf8 { body(byte) }
      start = end
    }
  }
}
