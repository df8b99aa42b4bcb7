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

  /// Whether only the very bytes of a text are equal to it: ASCII, without the three characters of
  /// ASCII that others are equivalent to.
  ///
  /// They are the semicolon (U+037E, the Greek question mark), the backtick (U+1FEF) and the K
  /// (U+212A, the Kelvin sign).
  package static func isEqualToItsBytesOnly(_ text: String) -> Bool {
    text.utf8.allSatisfy { byte in
      byte < 0x80 && byte != UInt8(ascii: ";") && byte != UInt8(ascii: "`")
        && byte != UInt8(ascii: "K")
    }
  }
}
