/// Percent-escapes of RFC 3986, on bytes.
package enum PercentEncoding {
  /// The characters that need no escape.
  package enum Allowed {
    /// Letters, digits and `-._~`.
    case unreserved
    /// The characters of one path component.
    case pathComponent
    /// The characters of a path, with its slashes.
    case path
  }

  static func isAllowed(_ byte: UInt8, _ allowed: Allowed) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
      UInt8(ascii: "_"), UInt8(ascii: "~"):
      true
    case UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "&")...UInt8(ascii: ","),
      UInt8(ascii: ":"), UInt8(ascii: ";"), UInt8(ascii: "="), UInt8(ascii: "@"):
      allowed != .unreserved
    case UInt8(ascii: "/"):
      allowed == .path
    default:
      false
    }
  }

  package static func append(_ bytes: Span<UInt8>, to text: inout [UInt8], _ allowed: Allowed) {
    for index in bytes.indices {
      let byte = bytes[index]
      if isAllowed(byte, allowed) { text.append(byte) } else { appendEscape(byte, to: &text) }
    }
  }

  package static func appendEscape(_ byte: UInt8, to text: inout [UInt8]) {
    text.append(UInt8(ascii: "%"))
    text.append(hexDigit(byte >> 4, uppercase: true))
    text.append(hexDigit(byte & 15, uppercase: true))
  }

  /// Nil if an escape is malformed.
  package static func decode(_ text: Span<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var index = 0
    while index < text.count {
      guard text[index] == UInt8(ascii: "%") else {
        bytes.append(text[index])
        index += 1
        continue
      }
      guard let byte = escape(in: text, at: index) else { return nil }
      bytes.append(byte)
      index += 3
    }
    return bytes
  }

  static func isWellFormed(_ text: Span<UInt8>, _ allowed: Allowed) -> Bool {
    var index = 0
    while index < text.count {
      if text[index] == UInt8(ascii: "%") {
        guard escape(in: text, at: index) != nil else { return false }
        index += 3
      } else if isAllowed(text[index], allowed) {
        index += 1
      } else {
        return false
      }
    }
    return true
  }

  /// The byte of the escape at an index; nil if that is malformed.
  private static func escape(in text: Span<UInt8>, at index: Int) -> UInt8? {
    guard text.count - index >= 3, let high = hexValue(text[index + 1]),
      let low = hexValue(text[index + 2])
    else { return nil }
    return high << 4 | low
  }

  static func hexDigit(_ value: UInt8, uppercase: Bool) -> UInt8 {
    value < 10
      ? UInt8(ascii: "0") + value
      : (uppercase ? UInt8(ascii: "A") : UInt8(ascii: "a")) + value - 10
  }

  static func hexValue(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
