/// Writes fields of RFC 4180.
package enum CSVField {
  /// Appends a text, quoted if necessary; an empty text is quoted too, since an empty field is
  /// NULL.
  ///
  /// Text that is not UTF-8 is repaired with U+FFFD; returns whether the bytes are UTF-8.
  @discardableResult
  package static func append(_ bytes: UnsafeRawBufferPointer, to line: inout [UInt8]) -> Bool {
    // The loop has no exit, so that it looks at many bytes at once.
    var special: UInt8 = 0
    for index in bytes.indices {
      let byte = unsafe bytes[index]
      special |=
        byte == UInt8(ascii: "\"") || byte == UInt8(ascii: ",") || byte == 0x0a || byte == 0x0d
          || byte >= 0x80
        ? 1 : 0
    }
    let needsQuotes =
      unsafe special != 0 || bytes.isEmpty || bytes.first == 0x20 || bytes.last == 0x20
    guard needsQuotes else {
      line.reserve(forLarge: bytes.count)
      unsafe line.append(contentsOf: bytes)
      return true
    }
    line.reserve(forLarge: bytes.count)
    line.append(UInt8(ascii: "\""))
    func append(_ byte: UInt8) {
      if byte == UInt8(ascii: "\"") { line.append(byte) }
      line.append(byte)
    }
    let isUTF8 = unsafe Span<UInt8>(_unsafeBytes: bytes).isUTF8
    if isUTF8 {
      for index in bytes.indices { unsafe append(bytes[index]) }
    } else {
      unsafe bytes.forEachRepairedByte(append)
    }
    line.append(UInt8(ascii: "\""))
    return isUTF8
  }
}
