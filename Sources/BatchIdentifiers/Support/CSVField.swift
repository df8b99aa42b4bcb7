/// Writes fields of RFC 4180, quoted if necessary.
///
/// An empty value is quoted, and one with the text of NULL: unquoted, these fields are NULL.
package struct CSVField: Sendable {
  package let delimiter: UInt8
  /// The text of NULL.
  private let null: [UInt8]
  private let quotesAll: Bool
  /// Whether numbers, `true`, `false` or Base64 may have the delimiter.
  private let isDelimiterPlain: Bool

  package init(delimiter: UInt8 = UInt8(ascii: ","), null: [UInt8] = [], quotesAll: Bool = false) {
    (self.delimiter, self.null, self.quotesAll) = (delimiter, null, quotesAll)
    isDelimiterPlain =
      switch delimiter {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "."), UInt8(ascii: "+"),
        UInt8(ascii: "-"), UInt8(ascii: "/"), UInt8(ascii: "="):
        true
      default: false
      }
  }

  package func appendNull(to line: inout [UInt8]) {
    if !null.isEmpty { line.append(contentsOf: null) }
  }

  /// Quotes a number, a boolean or Base64 that begins at an offset of the line, if necessary.
  package func close(from start: Int, in line: inout [UInt8]) {
    guard needsQuotes(line.span.extracting(start...)) else { return }
    line.insert(UInt8(ascii: "\""), at: start)
    line.append(UInt8(ascii: "\""))
  }

  private func needsQuotes(_ plain: Span<UInt8>) -> Bool {
    quotesAll || plain.isEmpty || plain.isSame(as: null.span)
      || isDelimiterPlain && plain.contains(delimiter)
  }

  /// Appends a text; returns whether it is UTF-8: if not, it is repaired with U+FFFD.
  @discardableResult
  package func append(_ bytes: UnsafeRawBufferPointer, to line: inout [UInt8]) -> Bool {
    // The loop has no exit, so that it looks at many bytes at once.
    var special: UInt8 = 0
    for index in bytes.indices {
      let byte = unsafe bytes[index]
      special |=
        byte == UInt8(ascii: "\"") || byte == delimiter || byte == 0x0a || byte == 0x0d
          || byte >= 0x80
        ? 1 : 0
    }
    let needsQuotes =
      unsafe special != 0 || quotesAll || bytes.isEmpty || bytes.first == 0x20
      || bytes.last == 0x20 || bytes.count == null.count && bytes.elementsEqual(null)
    guard needsQuotes else {
      line.reserve(forLarge: bytes.count)
      unsafe line.append(contentsOf: bytes)
      return true
    }
    line.reserve(forLarge: bytes.count)
    line.append(UInt8(ascii: "\""))
    func append(_ byte: UInt8) {
      if byte == UInt8(ascii: "\"") { line.append(byte) }
      line.append(byte)
    }
    let isUTF8 = unsafe Span<UInt8>(_unsafeBytes: bytes).isUTF8
    if isUTF8 {
      for index in bytes.indices { unsafe append(bytes[index]) }
    } else {
      unsafe bytes.forEachRepairedByte(append)
    }
    line.append(UInt8(ascii: "\""))
    return isUTF8
  }
}
