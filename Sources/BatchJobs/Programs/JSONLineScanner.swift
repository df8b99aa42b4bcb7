import BatchIdentifiers
import BatchRuns

/// Scans lines of one JSON object each (RFC 8259), without building a tree.
///
/// The job file has a separate reader that tracks lines and columns; this one must handle hundreds
/// of thousands of lines per second.
struct JSONLineScanner {
  struct Problem: Error {
    let message: String

    init(_ message: String) { self.message = message }
  }

  /// For an object, the scanner is then before its first member.
  enum Value {
    case null
    case boolean(Bool)
    case integer(Int64)
    case real(Double)
    case string(ArraySlice<UInt8>)
    case object
  }

  private let bytes: [UInt8]
  private(set) var offset = 0

  /// All lines must end with a line feed.
  init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  // MARK: Lines

  /// Skips white space, and throws unless the line ends there.
  mutating func endLine() throws(Problem) {
    skipSpace()
    guard next == 0x0a else { throw Problem("goes on after its end") }
    offset += 1
  }

  mutating func skipLine(from start: Int) {
    offset = (bytes[start...].firstIndex(of: 0x0a) ?? bytes.endIndex - 1) + 1
  }

  /// Goes on at another line.
  mutating func begin(at offset: Int) { self.offset = offset }

  mutating func readNull() -> Bool {
    skipSpace()
    return (try? skip("null")) != nil
  }

  // MARK: Objects

  /// Calls `body` with the key of each member of an object, to read the value.
  mutating func forEachMember(
    _ body: (inout JSONLineScanner, ArraySlice<UInt8>) throws(Problem) -> Void
  ) throws(Problem) {
    skipSpace()
    guard next == UInt8(ascii: "{") else { throw Problem("is not a JSON object: \(restOfLine)") }
    offset += 1
    skipSpace()
    if next == UInt8(ascii: "}") {
      offset += 1
      return
    }
    while true {
      skipSpace()
      let key = try readString()
      skipSpace()
      guard next == UInt8(ascii: ":") else { throw Problem("is not JSON: a colon is missing") }
      offset += 1
      try body(&self, key)
      skipSpace()
      switch next {
      case UInt8(ascii: ","): offset += 1
      case UInt8(ascii: "}"):
        offset += 1
        return
      default: throw Problem("is not JSON: a comma or brace is missing")
      }
    }
  }

  // MARK: Values

  /// Reads a value, or stops before the brace of an object.
  mutating func readValue() throws(Problem) -> Value {
    skipSpace()
    switch next {
    case UInt8(ascii: "\""): return .string(try readString())
    case UInt8(ascii: "{"): return .object
    case UInt8(ascii: "n"):
      try skip("null")
      return .null
    case UInt8(ascii: "t"):
      try skip("true")
      return .boolean(true)
    case UInt8(ascii: "f"):
      try skip("false")
      return .boolean(false)
    case UInt8(ascii: "I"):
      // Python writes infinity like this.
      try skip("Infinity")
      return .real(.infinity)
    case UInt8(ascii: "-") where bytes[min(offset + 1, bytes.count)...].first == UInt8(ascii: "I"):
      try skip("-Infinity")
      return .real(-.infinity)
    case UInt8(ascii: "["): throw Problem("has an array where a value is expected")
    default: return try readNumber()
    }
  }

  /// Skips any value, and returns its bytes; looks into arrays and objects only for their ends.
  @discardableResult
  mutating func skipValue() throws(Problem) -> ArraySlice<UInt8> {
    skipSpace()
    let start = offset
    var depth = 0
    repeat {
      skipSpace()
      switch next {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
        offset += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        guard depth > 0 else { throw Problem("has no JSON value where one is expected") }
        depth -= 1
        offset += 1
      case UInt8(ascii: ","), UInt8(ascii: ":"):
        guard depth > 0 else { throw Problem("has no JSON value where one is expected") }
        offset += 1
      default: _ = try readValue()
      }
    } while depth > 0
    return bytes[start..<offset]
  }

  /// Skips a number if one comes next, and returns all of its digits.
  mutating func readDigits() throws(Problem) -> ArraySlice<UInt8>? {
    skipSpace()
    guard isDigit || next == UInt8(ascii: "-") else { return nil }
    let start = offset
    _ = try readNumber()
    return bytes[start..<offset]
  }

  /// Returns the bytes of a string: well-formed UTF-8, with escapes resolved.
  mutating func readString() throws(Problem) -> ArraySlice<UInt8> {
    skipSpace()
    guard next == UInt8(ascii: "\"") else { throw Problem("has no string where one is expected") }
    offset += 1
    let start = offset
    var isASCII = true
    while true {
      switch next {
      case UInt8(ascii: "\""):
        let content = bytes[start..<offset]
        offset += 1
        if !isASCII { try checkUTF8(content) }
        return content
      case UInt8(ascii: "\\"): return try readEscapedString(from: start)
      case ..<0x20: throw Problem("has a control character in a string")
      case 0x80...: isASCII = false
      default: break
      }
      offset += 1
    }
  }

  private mutating func readEscapedString(from start: Int) throws(Problem) -> ArraySlice<UInt8> {
    var content = Array(bytes[start..<offset])
    while next != UInt8(ascii: "\"") {
      let byte = next
      guard byte >= 0x20 else { throw Problem("has a control character in a string") }
      offset += 1
      if byte == UInt8(ascii: "\\") {
        try readEscape(into: &content)
      } else {
        content.append(byte)
      }
    }
    offset += 1
    try checkUTF8(content[...])
    return content[...]
  }

  private mutating func readEscape(into content: inout [UInt8]) throws(Problem) {
    let byte = next
    offset += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): content.append(byte)
    case UInt8(ascii: "b"): content.append(0x08)
    case UInt8(ascii: "f"): content.append(0x0c)
    case UInt8(ascii: "n"): content.append(0x0a)
    case UInt8(ascii: "r"): content.append(0x0d)
    case UInt8(ascii: "t"): content.append(0x09)
    case UInt8(ascii: "u"):
      var unit = try readUnit()
      if 0xd800..<0xdc00 ~= unit {
        guard next == UInt8(ascii: "\\"), offset + 1 < bytes.count,
          bytes[offset + 1] == UInt8(ascii: "u")
        else { throw Problem("has half a character in a string") }
        offset += 2
        let low = try readUnit()
        guard 0xdc00..<0xe000 ~= low else { throw Problem("has half a character in a string") }
        unit = 0x10000 + (unit - 0xd800) << 10 + (low - 0xdc00)
      }
      guard let scalar = Unicode.Scalar(unit) else {
        throw Problem("has half a character in a string")
      }
      content.append(contentsOf: Character(scalar).utf8)
    default: throw Problem("has an unknown escape in a string")
    }
  }

  private mutating func readUnit() throws(Problem) -> UInt32 {
    var unit: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = Character(Unicode.Scalar(next)).hexDigitValue else {
        throw Problem("has an unknown escape in a string")
      }
      unit = unit << 4 | UInt32(digit)
      offset += 1
    }
    return unit
  }

  private func checkUTF8(_ content: ArraySlice<UInt8>) throws(Problem) {
    guard String(validating: content, as: UTF8.self) != nil else {
      throw Problem("has a string that is not UTF-8")
    }
  }

  private mutating func readNumber() throws(Problem) -> Value {
    let start = offset
    if next == UInt8(ascii: "-") { offset += 1 }
    let digits = offset
    var magnitude: UInt64 = 0
    while isDigit {
      // 19 digits fit into 64 bits; longer numbers are read as a real.
      magnitude = magnitude &* 10 &+ UInt64(next - UInt8(ascii: "0"))
      offset += 1
    }
    let count = offset - digits
    guard count > 0, count == 1 || bytes[digits] != UInt8(ascii: "0") else {
      throw Problem("has no JSON value where one is expected")
    }
    let isNegative = digits > start
    var isInteger = true
    if next == UInt8(ascii: ".") {
      isInteger = false
      offset += 1
      try skipDigits()
    }
    if next | 0x20 == UInt8(ascii: "e") {
      isInteger = false
      offset += 1
      if next == UInt8(ascii: "-") || next == UInt8(ascii: "+") { offset += 1 }
      try skipDigits()
    }
    if isInteger, count <= 19 {
      if isNegative, magnitude <= 1 << 63 {
        return .integer(Int64(bitPattern: 0 &- magnitude))
      }
      if !isNegative, let value = Int64(exactly: magnitude) { return .integer(value) }
    }
    guard let value = Double(String(decoding: bytes[start..<offset], as: UTF8.self)) else {
      throw Problem("has no JSON value where one is expected")
    }
    // A number that is too large is an infinity, which exports write this way.
    return .real(value)
  }

  /// Reads the object that stands for bytes: `{"$base64": true, "encoded": …}`.
  mutating func readingBytes() throws(Problem) -> (ValueBlock.Kind, [UInt8]) {
    var encoded: ArraySlice<UInt8>?
    var isMarked = false
    var kind = ValueBlock.Kind.blob
    try forEachMember { scanner, key throws(Problem) in
      switch String(decoding: key, as: UTF8.self) {
      case "$base64":
        guard case .boolean(true) = try scanner.readValue() else {
          throw .init("has a \"$base64\" that is not true")
        }
        isMarked = true
      case "encoded": encoded = try scanner.readString()
      case "type":
        guard try scanner.readString().elementsEqual("text".utf8) else {
          throw .init("has bytes whose type is not \"text\"")
        }
        kind = .text
      default: throw .init("has an object where a value is expected")
      }
    }
    guard isMarked, let encoded else {
      throw .init("has an object without \"$base64\" and \"encoded\" where a value is expected")
    }
    guard let bytes = Base64.bytes(of: encoded) else {
      let text = String(decoding: encoded.prefix(40), as: UTF8.self)
      throw .init("has an \"encoded\" that is not Base64, \(text.quotedForMessage)")
    }
    return (kind, bytes)
  }

  // MARK: Bytes

  /// The bytes from an offset to the present one.
  func bytes(from start: Int) -> ArraySlice<UInt8> { bytes[start..<offset] }

  /// Skips white space; returns whether an array comes next.
  mutating func isAtArray() -> Bool {
    skipSpace()
    return next == UInt8(ascii: "[")
  }

  /// Quoted and shortened for a message.
  private var restOfLine: String {
    let line = bytes[min(offset, bytes.count)...].prefix(400).prefix { $0 != 0x0a }
    return String(decoding: line, as: UTF8.self).quotedForMessage
  }

  /// The next byte; a line feed at the end, since every line has one.
  private var next: UInt8 { offset < bytes.count ? bytes[offset] : 0x0a }

  private var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= next }

  private mutating func skipDigits() throws(Problem) {
    guard isDigit else { throw Problem("has no JSON value where one is expected") }
    while isDigit { offset += 1 }
  }

  private mutating func skipSpace() {
    while next == 0x20 || next == 0x09 || next == 0x0d { offset += 1 }
  }

  private mutating func skip(_ word: StaticString) throws(Problem) {
    let end = offset + word.utf8CodeUnitCount
    guard end <= bytes.count,
      word.withUTF8Buffer({ unsafe bytes[offset..<end].elementsEqual($0) })
    else { throw Problem("has no JSON value where one is expected") }
    offset = end
  }
}
