package import BatchPlatform
package import BatchRuns

extension SQLValue {
  /// A number, if a `Double` holds it exactly.
  package var double: Double? {
    switch self {
    case .real(let value): value
    case .integer(let value): Double(exactly: value)
    default: nil
    }
  }

  /// The text of a TEXT, with U+FFFD for bytes that are not UTF-8.
  package var string: String? {
    switch self {
    case .text(let text): text
    case .invalidText(let bytes): String(decoding: bytes, as: UTF8.self)
    default: nil
    }
  }

  /// A UUID from a TEXT in the form of `uuidString` or in lower case, or from a BLOB of 16 bytes.
  ///
  /// A text in mixed case is rejected: a UUID has too many such forms for an index to find all of
  /// them.
  package var uuid: UUID? {
    switch self {
    case .text(let text): text.hasOneCase ? UUID(uuidString: text) : nil
    case .blob(let bytes) where bytes.count == 16:
      UUID(
        uuid: (
          bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
          bytes[8], bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]
        )
      )
    default: nil
    }
  }

  /// A decimal number from an INTEGER, from a REAL by its shortest decimal form, or from a TEXT
  /// unless it has more digits than a `Decimal`.
  package var decimal: Decimal? {
    switch self {
    case .integer(let value): Decimal(value)
    case .real(let value) where value.isFinite: Decimal(wholeText: value.description)
    case .text(let text): Decimal(wholeText: text)
    default: nil
    }
  }
}

extension String {
  /// Whether all ASCII letters have the same case.
  fileprivate var hasOneCase: Bool {
    var cases: UInt8 = 0
    // Letters have this bit; digits and hyphens do not. The next bit is the case.
    for byte in utf8 where byte & 0x40 != 0 { cases |= byte & 0x20 == 0 ? 1 : 2 }
    return cases != 3
  }
}
