/// Writes strings of JSON, with their quotes.
///
/// The bytes are written directly to the output line, since exports write millions of strings.
package enum JSONString {
  package static func append(_ text: String, to json: inout [UInt8]) {
    var text = text
    _ = text.withUTF8 { bytes in
      unsafe append(UnsafeRawBufferPointer(bytes), to: &json)
    }
  }

  /// Appends text given as bytes, repairs invalid UTF-8 with U+FFFD, and returns whether it was
  /// valid.
  @discardableResult
  package static func append(_ bytes: UnsafeRawBufferPointer, to json: inout [UInt8]) -> Bool {
    json.reserve(forLarge: bytes.count)
    json.append(UInt8(ascii: "\""))
    // Most texts need no escape. The loop has no exit, so that it looks at many bytes at once.
    var special: UInt8 = 0
    for index in bytes.indices {
      let byte = unsafe bytes[index]
      special |=
        byte < 0x20 || byte >= 0x80 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
        ? 1 : 0
    }
    if special == 0 {
      unsafe json.append(contentsOf: bytes)
      json.append(UInt8(ascii: "\""))
      return true
    }
    var plain = 0
    var isASCII = true
    for index in bytes.indices {
      let byte = unsafe bytes[index]
      if byte >= 0x80, isASCII {
        // Only text outside ASCII can be invalid.
        isASCII = false
        let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[index...])
        guard unsafe Span<UInt8>(_unsafeBytes: rest).isUTF8 else {
          unsafe json.append(contentsOf: bytes[plain..<index])
          unsafe rest.forEachRepairedByte { appendEscaped($0, to: &json) }
          json.append(UInt8(ascii: "\""))
          return false
        }
      }
      if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
        unsafe json.append(contentsOf: bytes[plain..<index])
        appendEscaped(byte, to: &json)
        plain = index + 1
      }
    }
    unsafe json.append(contentsOf: bytes[plain...])
    json.append(UInt8(ascii: "\""))
    return true
  }

  private static func appendEscaped(_ byte: UInt8, to json: inout [UInt8]) {
    switch byte {
    case UInt8(ascii: "\""): json.append(contentsOf: "\\\"".utf8)
    case UInt8(ascii: "\\"): json.append(contentsOf: "\\\\".utf8)
    case 0x0a: json.append(contentsOf: "\\n".utf8)
    case 0x0d: json.append(contentsOf: "\\r".utf8)
    case 0x09: json.append(contentsOf: "\\t".utf8)
    case ..<0x20:
      json.append(contentsOf: "\\u00".utf8)
      json.append(PercentEncoding.hexDigit(byte >> 4, uppercase: false))
      json.append(PercentEncoding.hexDigit(byte & 15, uppercase: false))
    default: json.append(byte)
    }
  }
}

extension [UInt8] {
  /// Makes room for many more bytes: an array that grows by itself doubles its memory.
  package mutating func reserve(forLarge count: Int) {
    if count >= 1 << 16 { reserveCapacity(self.count + count + 1024) }
  }
}
