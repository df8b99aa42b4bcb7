package import BatchIdentifiers

/// Reads JSON according to RFC 8259, and records the position of every value and key.
///
/// On Linux, Foundation's decoder reports neither line nor column, does not keep the order, and
/// accepts duplicate keys. All three matter here: a job file is written by hand, `set` is an
/// ordered list, and a second `where` that silently wins would change which rows a job touches.
package struct JSONReader {
  /// In bytes.
  package static let byteLimit = 16 << 20
  package static let depthLimit = 64
  /// The maximum number of values in a document; it limits the memory of its tree.
  package static let valueLimit = 1_000_000

  let bytes: [UInt8]
  let file: String
  var offset = 0
  private var depth = 0
  private var valueCount = 0
  /// The last offset whose position was requested: later positions are counted from there.
  private var mark = (offset: 0, line: 1, column: 1)

  private init(bytes: [UInt8], file: String) {
    self.bytes = bytes
    self.file = file
  }

  /// Reads a document in UTF-8 without a byte order mark.
  ///
  /// Errors have the code `invalidJSON` and name the file, line and column.
  package static func read(_ bytes: [UInt8], file: String) throws(BatchError) -> JSONValue {
    var reader = JSONReader(bytes: bytes, file: file)
    try reader.checkEncoding()
    reader.skipWhitespace()
    guard reader.offset < bytes.count else {
      throw reader.error("the file is empty", remedy: "expected a JSON object")
    }
    let value = try reader.readValue()
    reader.skipWhitespace()
    guard reader.offset == bytes.count else {
      throw reader.error("unexpected \(reader.found) after the end of the document")
    }
    return value
  }
}

// MARK: - Values

extension JSONReader {
  private mutating func readValue() throws(BatchError) -> JSONValue {
    let position = position(at: offset)
    valueCount += 1
    guard valueCount <= Self.valueLimit else {
      throw error("more than \(Self.valueLimit.grouped) values in one file")
    }
    let content: JSONValue.Content =
      switch peek ?? 0 {
      case UInt8(ascii: "{"): try .object(readMembers())
      case UInt8(ascii: "["): try .array(readItems())
      case UInt8(ascii: "\""): try .string(readString())
      case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try readNumber()
      default: try readWord()
      }
    return JSONValue(content: content, position: position)
  }

  private mutating func descend() throws(BatchError) {
    guard depth < Self.depthLimit else {
      throw error("more than \(Self.depthLimit) arrays and objects inside one another")
    }
    depth += 1
  }

  private mutating func readMembers() throws(BatchError) -> [JSONMember] {
    var members: [JSONMember] = []
    var positions: [String: SourcePosition] = [:]
    try descend()
    defer { depth -= 1 }
    offset += 1
    skipWhitespace()
    if take("}") { return members }
    while true {
      guard peek == UInt8(ascii: "\"") else {
        if peek == UInt8(ascii: "}") { throw strayComma() }
        throw error("expected a key in double quotes, found \(found)", remedy: hintForFound)
      }
      let keyPosition = position(at: offset)
      let key = try readString()
      if let first = positions.updateValue(keyPosition, forKey: key) {
        throw error(
          "duplicate key \(key.quotedForMessage)",
          at: keyPosition,
          remedy: "the first one is at \(first)"
        )
      }
      skipWhitespace()
      guard take(":") else {
        throw error("expected ':' after the key \(key.quotedForMessage), found \(found)")
      }
      skipWhitespace()
      try members.append(JSONMember(key: key, keyPosition: keyPosition, value: readValue()))
      skipWhitespace()
      if take("}") { return members }
      guard take(",") else {
        throw error(
          "expected ',' or '}' after the value of \(key.quotedForMessage), found \(found)",
          remedy: hintForFound
        )
      }
      skipWhitespace()
    }
  }

  private mutating func readItems() throws(BatchError) -> [JSONValue] {
    var items: [JSONValue] = []
    try descend()
    defer { depth -= 1 }
    offset += 1
    skipWhitespace()
    if take("]") { return items }
    while true {
      try items.append(readValue())
      skipWhitespace()
      if take("]") { return items }
      guard take(",") else {
        throw error(
          "expected ',' or ']' after item \(items.count) of the array, found \(found)",
          remedy: hintForFound
        )
      }
      skipWhitespace()
      if peek == UInt8(ascii: "]") { throw strayComma() }
    }
  }

  /// Reads `true`, `false` or `null`; the error for anything else says what is wrong.
  private mutating func readWord() throws(BatchError) -> JSONValue.Content {
    let start = offset
    while let byte = peek, byte.isWordByte { offset += 1 }
    let word = String(decoding: bytes[start..<offset], as: UTF8.self)
    switch word {
    case "true": return .boolean(true)
    case "false": return .boolean(false)
    case "null": return .null
    case "": throw error("expected a value, found \(found)", remedy: hintForFound)
    default:
      let lowercased = word.lowercased()
      let remedy =
        ["true", "false", "null"].contains(lowercased)
        ? "write \(lowercased)" : "put text into double quotes"
      offset = start
      throw error("unknown word \(word.quotedForMessage)", remedy: remedy)
    }
  }

  private mutating func strayComma() -> BatchError {
    error("expected a value after ',', found \(found)", remedy: "remove the last comma")
  }
}

// MARK: - Bytes

extension JSONReader {
  var peek: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard peek == UInt8(ascii: character) else { return false }
    offset += 1
    return true
  }

  mutating func skipWhitespace() {
    while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
      offset += 1
    }
  }

  private func checkEncoding() throws(BatchError) {
    guard bytes.count <= Self.byteLimit else {
      throw BatchError(
        .invalidJSON,
        "the file has more than \(Self.byteLimit.grouped) bytes",
        at: file,
        remedy: "is it the right file?"
      )
    }
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
      throw error("the file begins with a byte order mark", remedy: "save it as UTF-8 without BOM")
    }
    if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
      throw error("the file is in UTF-16", remedy: "save it as UTF-8")
    }
    if bytes.starts(with: "SQLite format 3\0".utf8) {
      throw error("the file is a SQLite database, not JSON")
    }
    if let offset = bytes.firstInvalidUTF8Offset {
      throw error("invalid UTF-8", at: position(from: 0, to: offset), remedy: "save it as UTF-8")
    }
  }
}

// MARK: - Positions and errors

extension JSONReader {
  /// The line and column of an offset.
  ///
  /// The total cost is linear in the size of the document as long as offsets increase.
  mutating func position(at target: Int) -> SourcePosition {
    if target < mark.offset { mark = (0, 1, 1) }
    while mark.offset < target {
      let byte = bytes[mark.offset]
      mark.offset += 1
      if byte == 0x0A {
        mark.line += 1
        mark.column = 1
      } else if byte & 0xC0 != 0x80 {
        mark.column += 1
      }
    }
    return SourcePosition(line: mark.line, column: mark.column)
  }

  private func position(from start: Int, to target: Int) -> SourcePosition {
    var copy = self
    copy.mark = (start, 1, 1)
    return copy.position(at: target)
  }

  /// The text at the offset, for a message.
  var found: String {
    guard peek != nil else { return "the end of the file" }
    var decoder = UTF8()
    var iterator = bytes[offset...].makeIterator()
    guard case .scalarValue(let scalar) = decoder.decode(&iterator) else { return "a stray byte" }
    if scalar.isUnprintable { return "the character U+\(hex(scalar))" }
    return "'\(scalar)'"
  }

  /// Advice about the text at the offset for people used to other formats.
  private var hintForFound: String? {
    switch peek {
    case UInt8(ascii: "/"), UInt8(ascii: "#"): "JSON has no comments"
    case UInt8(ascii: "'"): "JSON puts strings into double quotes"
    case UInt8(ascii: "+"): "JSON numbers have no plus sign"
    case UInt8(ascii: "."): "JSON numbers have a digit before the point"
    default: nil
    }
  }

  private func hex(_ scalar: Unicode.Scalar) -> String {
    let digits = String(scalar.value, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }

  func error(
    _ message: String,
    at position: SourcePosition? = nil,
    remedy: String? = nil
  ) -> BatchError {
    let place = position ?? self.position(from: 0, to: offset)
    return BatchError(.invalidJSON, message, at: "\(file):\(place)", remedy: remedy)
  }
}

extension UInt8 {
  fileprivate var isWordByte: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"):
      true
    default: false
    }
  }
}

extension Array<UInt8> {
  fileprivate var firstInvalidUTF8Offset: Int? {
    var decoder = UTF8()
    var iterator = makeIterator()
    var offset = 0
    while true {
      switch decoder.decode(&iterator) {
      case .scalarValue(let scalar): offset += UTF8.width(scalar)
      case .emptyInput: return nil
      case .error: return offset
      }
    }
  }
}
