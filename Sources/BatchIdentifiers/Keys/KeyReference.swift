/// The text of keys in URIs of identifiers, after the `p`.
///
/// An integer key is its decimal digits. Any other key is its components, joined by commas: `=` and
/// percent-escaped text, `~` and lowercase hexadecimal digits for a blob, `*` and the shortest
/// decimal form of a REAL, plain decimal digits for an INTEGER, `!` for NULL. Each key has exactly
/// one text and each text one key: anything else is refused.
enum KeyReference {
  static func text(of key: EncodedKey) -> String {
    var text: [UInt8] = []
    var reader = EncodedKey.ComponentReader()
    append(key.bytes.span, reader: &reader, to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  static func append(
    _ key: Span<UInt8>,
    reader: inout EncodedKey.ComponentReader,
    to text: inout [UInt8]
  ) {
    var isFirst = true
    reader.forEachComponent(in: key) { component in
      if !isFirst { text.append(UInt8(ascii: ",")) }
      isFirst = false
      switch component {
      case .null:
        text.append(UInt8(ascii: "!"))
      case .integer(let value):
        append(value, to: &text)
      case .real(let value):
        text.append(UInt8(ascii: "*"))
        text.append(contentsOf: value.description.utf8)
      case .text(let bytes):
        text.append(UInt8(ascii: "="))
        PercentEncoding.append(bytes, to: &text, .unreserved)
      case .blob(let bytes):
        text.append(UInt8(ascii: "~"))
        for index in bytes.indices {
          text.append(PercentEncoding.hexDigit(bytes[index] >> 4, uppercase: false))
          text.append(PercentEncoding.hexDigit(bytes[index] & 15, uppercase: false))
        }
      }
    }
  }

  /// Appends decimal digits without a temporary string.
  static func append(_ value: Int64, to text: inout [UInt8]) {
    if value < 0 { text.append(UInt8(ascii: "-")) }
    var rest = value.magnitude
    let start = text.count
    repeat {
      let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
      text.append(UInt8(ascii: "0") + UInt8(digit))
      rest = quotient
    } while rest > 0
    text[start...].reverse()
  }

  /// Nil if the text is not that of any key.
  static func parse(_ text: Span<UInt8>) -> PrimaryKey? {
    if let value = integer(text) { return .integer(value) }
    var encoder = EncodedKey.Encoder()
    return parse(text, into: &encoder) ? .encoded(encoder.key) : nil
  }

  /// Appends the components of a text; returns false if it is not the text of any key.
  static func parse(
    _ text: Span<UInt8>,
    into encoder: inout EncodedKey.Encoder
  ) -> Bool {
    guard !text.isEmpty else { return false }
    var start = 0
    while let end = text.firstIndex(of: UInt8(ascii: ","), from: start) {
      guard append(text.extracting(start..<end), to: &encoder) else { return false }
      start = end + 1
    }
    guard append(text.extracting(start..<text.count), to: &encoder) else { return false }
    return encoder.bytes.count <= EncodedKey.maximumByteCount
  }

  private static func append(
    _ text: Span<UInt8>,
    to encoder: inout EncodedKey.Encoder
  ) -> Bool {
    guard let kind = text.first else { return false }
    let content = text.extracting(droppingFirst: 1)
    switch kind {
    case UInt8(ascii: "!"):
      encoder.appendNull()
      return content.isEmpty
    case UInt8(ascii: "*"):
      // Only the shortest form is accepted, so that each key has one text.
      let digits = String(repairing: content)
      guard let value = Double(digits), value.description == digits, !value.isNaN else {
        return false
      }
      guard value != 0 || value.sign == .plus else { return false }
      encoder.append(value)
      return true
    case UInt8(ascii: "="):
      guard let bytes = unescape(content) else { return false }
      encoder.append(text: bytes.span)
      return true
    case UInt8(ascii: "~"):
      guard let bytes = blob(content) else { return false }
      encoder.append(blob: bytes.span)
      return true
    default:
      guard let value = integer(text) else { return false }
      encoder.append(value)
      return true
    }
  }

  /// Parses decimal digits, without a plus sign or leading zeros.
  static func integer(_ text: Span<UInt8>) -> Int64? {
    let isNegative = text.first == UInt8(ascii: "-")
    let digits = text.extracting(droppingFirst: isNegative ? 1 : 0)
    guard let first = digits.first, digits.count <= 19 else { return nil }
    if first == UInt8(ascii: "0"), digits.count > 1 || isNegative { return nil }
    var magnitude: UInt64 = 0
    for index in digits.indices {
      let digit = digits[index] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      // 19 digits fit into 64 bits, so this cannot overflow.
      magnitude = magnitude &* 10 &+ UInt64(digit)
    }
    if isNegative {
      return magnitude <= 1 << 63 ? Int64(bitPattern: 0 &- magnitude) : nil
    }
    return Int64(exactly: magnitude)
  }

  /// The bytes of escaped text; nil unless exactly the required bytes are escaped, in uppercase
  /// digits.
  private static func unescape(_ text: Span<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    var offset = 0
    while offset < text.count {
      let byte = text[offset]
      if byte == UInt8(ascii: "%") {
        guard offset + 2 < text.count,
          let high = uppercaseHexValue(text[offset + 1]),
          let low = uppercaseHexValue(text[offset + 2])
        else { return nil }
        let value = high << 4 | low
        guard !PercentEncoding.isAllowed(value, .unreserved) else { return nil }
        bytes.append(value)
        offset += 3
      } else {
        guard PercentEncoding.isAllowed(byte, .unreserved) else { return nil }
        bytes.append(byte)
        offset += 1
      }
    }
    return bytes
  }

  private static func uppercaseHexValue(_ digit: UInt8) -> UInt8? {
    digit >= UInt8(ascii: "a") ? nil : PercentEncoding.hexValue(digit)
  }

  private static func lowercaseHexValue(_ digit: UInt8) -> UInt8? {
    (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(digit)
      ? nil : PercentEncoding.hexValue(digit)
  }

  private static func blob(_ text: Span<UInt8>) -> [UInt8]? {
    guard text.count.isMultiple(of: 2) else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 2)
    for offset in stride(from: 0, to: text.count, by: 2) {
      guard let high = lowercaseHexValue(text[offset]),
        let low = lowercaseHexValue(text[offset + 1])
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }
}
