import CSQLite

/// The collation `_batch_text`, by which SQLite compares texts as Swift compares strings.
///
/// Strings that are canonically equivalent are equal, and the others are in the order of their
/// normalised scalars, which is neither the order of bytes nor that of any language. Swift's own
/// order is not quite total, so the collation serves equality and sorting, and no index.
package enum TextCollation {
  package static let sqlName = "_batch_text"

  /// Makes the collation known to a connection.
  static func register(in database: OpaquePointer) -> Int32 {
    unsafe sqlite3_create_collation_v2(
      database,
      sqlName,
      SQLITE_UTF8,
      nil,
      { _, leftCount, left, rightCount, right in
        let left = unsafe UnsafeRawBufferPointer(start: left, count: Int(leftCount))
        let right = unsafe UnsafeRawBufferPointer(start: right, count: Int(rightCount))
        return unsafe TextCollation.compare(left, right)
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
    // Swift 6.3 says of "e\u{301}" and "éa" that neither is less, and SQLite wants a decision.
    let isLess =
      left < right
      || !(right < left) && left.unicodeScalars.lexicographicallyPrecedes(right.unicodeScalars)
    return isLess ? -1 : 1
  }

  /// All texts that are equal to a text, itself first, if they are few; nil otherwise.
  ///
  /// A text in ASCII is equal to its very bytes only, but for three characters that one other each
  /// is equivalent to: the semicolon (U+037E, the Greek question mark), the backtick (U+1FEF) and
  /// the K (U+212A, the Kelvin sign). Of these there may be four.
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

  /// The character outside ASCII that is equivalent to one of ASCII.
  private static func twin(of byte: UInt8) -> Unicode.Scalar? {
    switch byte {
    case UInt8(ascii: ";"): "\u{37E}"
    case UInt8(ascii: "`"): "\u{1FEF}"
    case UInt8(ascii: "K"): "\u{212A}"
    default: nil
    }
  }
}
