/// The encoding of RFC 4648 §4, with padding, for blobs in text.
package struct Base64 {
  private static let digits = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
  )

  /// The value of each byte of a text; 64 if it is not a digit.
  private static let values = {
    var values = [UInt8](repeating: 64, count: 256)
    for (value, digit) in digits.enumerated() { values[Int(digit)] = UInt8(value) }
    return values
  }()

  /// Nil if the text is not valid.
  package static func bytes(of text: ArraySlice<UInt8>) -> [UInt8]? {
    guard text.count % 4 == 0 else { return nil }
    let padding = text.suffix(2).reversed().prefix { $0 == UInt8(ascii: "=") }.count
    let values = values
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 4 * 3)
    var group: UInt32 = 0
    var count = 0
    for digit in text.dropLast(padding) {
      let value = values[Int(digit)]
      guard value < 64 else { return nil }
      group = group << 6 | UInt32(value)
      count += 1
      guard count == 4 else { continue }
      bytes.append(UInt8(truncatingIfNeeded: group >> 16))
      bytes.append(UInt8(truncatingIfNeeded: group >> 8))
      bytes.append(UInt8(truncatingIfNeeded: group))
      count = 0
      group = 0
    }
    // A padded group has two or three digits left.
    if count > 1 { bytes.append(UInt8(truncatingIfNeeded: group >> (count == 2 ? 4 : 10))) }
    if count > 2 { bytes.append(UInt8(truncatingIfNeeded: group >> 2)) }
    return bytes
  }

  /// Appends bytes as a JSON value.
  ///
  /// It is `{"$base64":true,"encoded":"…"}` for a blob,
  /// `{"$base64":true,"encoded":"…","type":"text"}` for a text that is not UTF-8.
  package static func appendObject(
    _ bytes: UnsafeRawBufferPointer,
    isText: Bool = false,
    to json: inout [UInt8]
  ) {
    json.append(contentsOf: #"{"$base64":true,"encoded":""#.utf8)
    unsafe append(bytes, to: &json)
    json.append(contentsOf: (isText ? #"","type":"text"}"# : #""}"#).utf8)
  }

  package static func append(_ bytes: UnsafeRawBufferPointer, to text: inout [UInt8]) {
    text.reserve(forLarge: (bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let count = min(3, bytes.count - start)
      var group: UInt32 = 0
      for offset in 0..<3 {
        group = group << 8 | (offset < count ? UInt32(unsafe bytes[start + offset]) : 0)
      }
      for digit in 0..<4 {
        text.append(
          digit <= count
            ? digits[Int(group >> (18 - 6 * UInt32(digit)) & 63)] : UInt8(ascii: "=")
        )
      }
    }
  }
}
