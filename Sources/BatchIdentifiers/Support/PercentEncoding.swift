/// Percent-escapes of RFC 3986, on bytes.
enum PercentEncoding {
  /// What may stand in a URI as it is.
  enum Allowed {
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

  static func append(_ bytes: some Sequence<UInt8>, to text: inout [UInt8], _ allowed: Allowed) {
    for byte in bytes {
      if isAllowed(byte, allowed) { text.append(byte) } else { appendEscape(byte, to: &text) }
    }
  }

  static func appendEscape(_ byte: UInt8, to text: inout [UInt8]) {
    text.append(UInt8(ascii: "%"))
    text.append(hexDigit(byte >> 4, uppercase: true))
    text.append(hexDigit(byte & 15, uppercase: true))
  }

  /// The bytes that a text with escapes stands for, or nil if an escape is malformed.
  static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var iterator = text.makeIterator()
    while let byte = iterator.next() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = iterator.next().flatMap(hexValue),
        let low = iterator.next().flatMap(hexValue)
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  /// Whether a text holds only allowed characters and well-formed escapes.
  static func isWellFormed(_ text: some Sequence<UInt8>, _ allowed: Allowed) -> Bool {
    var iterator = text.makeIterator()
    while let byte = iterator.next() {
      if byte == UInt8(ascii: "%") {
        guard iterator.next().flatMap(hexValue) != nil, iterator.next().flatMap(hexValue) != nil
        else { return false }
      } else if !isAllowed(byte, allowed) {
        return false
      }
    }
    return true
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
