extension XXHash64 {
  /// A UUID of version 8 (custom, RFC 9562) from the hash of a text, in upper case.
  package static func uuid(of text: String) -> String {
    let bytes = Array(text.utf8)
    let high = hash(bytes) & 0xffff_ffff_ffff_0fff | 0x8000
    let low = hash(bytes, seed: 1) & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000
    let digits = [high, low].map { half in
      let digits = String(half, radix: 16, uppercase: true)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
    var parts: [Substring] = []
    var rest = digits[...]
    for count in [8, 4, 4, 4, 12] {
      parts.append(rest.prefix(count))
      rest = rest.dropFirst(count)
    }
    return parts.joined(separator: "-")
  }

  /// Whether a UUID may be one from ``uuid(of:)``, by its version.
  package static func hasMade(_ uuid: String) -> Bool {
    uuid.utf8.dropFirst(14).first == UInt8(ascii: "8")
  }
}
