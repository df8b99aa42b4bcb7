import CSQLite

/// The collation `_batch_text`, which makes SQLite compare texts as Swift compares strings.
///
/// Canonically equivalent strings are equal. Others are in the order of their normalised scalars,
/// which is neither the order of bytes nor that of any language. Swift's own order is not quite
/// total, so the collation serves equality and sorting but no index.
package enum SwiftCollation {
  package static let sqlName = "_batch_text"

  static func register(in database: OpaquePointer) -> Int32 {
    unsafe sqlite3_create_collation_v2(
      database,
      sqlName,
      SQLITE_UTF8,
      nil,
      { _, leftCount, left, rightCount, right in
        let left = unsafe UnsafeRawBufferPointer(start: left, count: Int(leftCount))
        let right = unsafe UnsafeRawBufferPointer(start: right, count: Int(rightCount))
        return unsafe SwiftCollation.compare(left, right)
      },
      nil
    )
  }

  static func compare(
    _ left: UnsafeRawBufferPointer,
    _ right: UnsafeRawBufferPointer
  ) -> Int32 {
    if unsafe left.allSatisfy({ $0 < 0x80 }), unsafe right.allSatisfy({ $0 < 0x80 }) {
      if unsafe left.elementsEqual(right) { return 0 }
      return unsafe left.lexicographicallyPrecedes(right) ? -1 : 1
    }
    let left = unsafe String(decoding: left, as: UTF8.self)
    let right = unsafe String(decoding: right, as: UTF8.self)
    if left == right { return 0 }
    // In Swift 6.3, neither of "e\u{301}" and "éa" is less, but SQLite needs a decision.
    let isLess =
      left < right
      || !(right < left) && left.unicodeScalars.lexicographicallyPrecedes(right.unicodeScalars)
    return isLess ? -1 : 1
  }

  /// All texts equal to a text, the text itself first; nil if there are many.
  ///
  /// An ASCII text equals only its own bytes, with three exceptions. The semicolon is equivalent to
  /// U+037E (the Greek question mark), the backtick to U+1FEF, and the K to U+212A (the Kelvin
  /// sign). The text may contain up to four of them.
  package static func texts(equalTo text: String) -> [String]? {
    var count = 0
    for byte in text.utf8 {
      if byte >= 0x80 { return nil }
      if twin(of: byte) != nil { count += 1 }
    }
    if count == 0 { return [text] }
    guard count <= 4 else { return nil }
    var texts = [String.UnicodeScalarView()]
    for scalar in text.unicodeScalars {
      let twin = twin(of: UInt8(scalar.value))
      texts = texts.map { $0 + [scalar] } + (twin.map { twin in texts.map { $0 + [twin] } } ?? [])
    }
    return texts.map { String($0) }
  }

  /// The non-ASCII character that is equivalent to an ASCII one.
  private static func twin(of byte: UInt8) -> Unicode.Scalar? {
    switch byte {
    case UInt8(ascii: ";"): "\u{37E}"
    case UInt8(ascii: "`"): "\u{1FEF}"
    case UInt8(ascii: "K"): "\u{212A}"
    default: nil
    }
  }
}
