import BatchIdentifiers

extension JSONReader {
  mutating func readString() throws(BatchError) -> String {
    let opening = offset
    offset += 1
    var content: [UInt8] = []
    while let byte = peek {
      switch byte {
      case UInt8(ascii: "\""):
        offset += 1
        // The whole document was checked to be UTF-8, and escapes only add complete characters.
        return String(decoding: content, as: UTF8.self)
      case UInt8(ascii: "\\"):
        content.append(contentsOf: String(try readEscape()).utf8)
      case 0x0A, 0x0D:
        throw error(
          "the string is not closed on its line",
          at: position(at: opening),
          remedy: "close it with '\"', and write a line break as \\n"
        )
      case 0..<0x20:
        throw error(
          "\(found) in a string",
          remedy: "write a control character as \\u00XX or a tab as \\t"
        )
      default:
        content.append(byte)
        offset += 1
      }
    }
    throw error("the string is not closed", at: position(at: opening), remedy: "add '\"'")
  }

  private mutating func readEscape() throws(BatchError) -> Unicode.Scalar {
    let start = offset
    offset += 1
    guard let byte = peek else { throw error("an escape that the end of the file cuts off") }
    let scalar: Unicode.Scalar
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): scalar = .init(byte)
    case UInt8(ascii: "b"): scalar = "\u{8}"
    case UInt8(ascii: "f"): scalar = "\u{C}"
    case UInt8(ascii: "n"): scalar = "\n"
    case UInt8(ascii: "r"): scalar = "\r"
    case UInt8(ascii: "t"): scalar = "\t"
    case UInt8(ascii: "u"):
      offset += 1
      return try readUnicodeEscape(from: start)
    default:
      throw error(
        "unknown escape: a backslash and \(found)",
        at: position(at: start),
        remedy: "write a backslash as \\\\"
      )
    }
    offset += 1
    return scalar
  }

  /// Reads the digits of an escape, or of the two escapes for a surrogate pair.
  private mutating func readUnicodeEscape(from start: Int) throws(BatchError) -> Unicode.Scalar {
    let first = try readFourHexDigits(from: start)
    if let scalar = Unicode.Scalar(UInt32(first)) { return scalar }
    if UTF16.isLeadSurrogate(first), take("\\"), take("u") {
      let second = try readFourHexDigits(from: start)
      if UTF16.isTrailSurrogate(second) {
        return UTF16.decode(UTF16.EncodedScalar([first, second]))
      }
    }
    throw error(
      "half of a surrogate pair",
      at: position(at: start),
      remedy: "write the character itself, or both halves"
    )
  }

  private mutating func readFourHexDigits(from start: Int) throws(BatchError) -> UInt16 {
    let digits = bytes[offset...].prefix(4)
    guard digits.count == 4, digits.allSatisfy(\.isHexDigit),
      let value = UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
    else {
      throw error("expected four hexadecimal digits after \\u", at: position(at: start))
    }
    offset += 4
    return value
  }
}

extension UInt8 {
  /// Stricter than the standard library's integer parser, which accepts a sign.
  fileprivate var isHexDigit: Bool { Unicode.Scalar(self).properties.isASCIIHexDigit }
}
