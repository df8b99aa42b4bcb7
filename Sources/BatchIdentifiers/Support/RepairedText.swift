extension Span<UInt8> {
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
  /// Passes text to `body` with invalid UTF-8 repaired, in pieces: a single string would be another
  /// copy.
  @unsafe package func forEachRepairedByte(_ body: (UInt8) -> Void) {
    var start = 0
    while start < count {
      var end = Swift.min(start + (1 << 16), count)
      // Pieces end between characters, so that repairs do not extend across them.
      while unsafe end < count && self[end] & 0xc0 == 0x80 { end += 1 }
      for byte in unsafe String(decoding: self[start..<end], as: UTF8.self).utf8 { body(byte) }
      start = end
    }
  }
}
