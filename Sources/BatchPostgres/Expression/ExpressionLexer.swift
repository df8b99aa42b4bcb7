#if PostgreSQL
import BatchIdentifiers

/// Scans an expression to find its parameters, and to ensure that it stays inside the parentheses
/// put around it.
///
/// It follows the server's lexer (`src/backend/parser/scan.l`) with `standard_conforming_strings`
/// as the session has it. Where versions differ, or a rule is hard to follow, it refuses the text:
/// dollar quotes, a quote directly after a number, a string after an `E''` string, which would
/// continue it.
struct ExpressionLexer {
  enum Piece: Sendable, Hashable {
    case text(String)
    /// A quoted text whose type depends on the context; several that continue each other are one.
    case literal(String)
    /// `:name`, without the colon.
    case parameter(String)
  }

  struct Refusal: Error, Hashable {
    let reason: String
    let remedy: String?

    init(_ reason: String, remedy: String? = nil) {
      self.reason = reason
      self.remedy = remedy
    }
  }

  private(set) var pieces: [Piece] = []
  /// The unquoted words outside parentheses, in lower case, in their order.
  private(set) var outerWords: [String] = []

  private let bytes: [UInt8]
  private let plainEscapes: Bool
  private var index = 0
  private var depth = 0
  /// Where the text begins that belongs to no piece yet.
  private var pieceStart = 0
  private var tokenCount = 0
  /// The last two tokens, in reverse order.
  private var last = Token.none
  private var beforeLast = Token.none

  private enum Token: Equatable {
    case none
    /// An unquoted word, in lower case; not part of a qualified name.
    case word(String)
    case literal(hasEscapes: Bool)
    case other(UInt8)
  }

  /// Scans a whole text; `escapes` is whether a backslash in a plain string begins an escape,
  /// because `standard_conforming_strings` is off.
  init(_ text: String, escapes: Bool = false) throws(Refusal) {
    bytes = Array(text.utf8)
    plainEscapes = escapes
    if bytes.contains(0) { throw Refusal("the expression holds a NUL character") }
    while let byte = peek() {
      let isComment = byte == UInt8(ascii: "-") && peek(1) == byte
      let isBlock = byte == UInt8(ascii: "/") && peek(1) == UInt8(ascii: "*")
      if [0x20, 0x09, 0x0a, 0x0b, 0x0c, 0x0d].contains(byte) {
        index += 1
      } else if isComment {
        while let next = peek(), next != 0x0a, next != 0x0d { index += 1 }
      } else if isBlock {
        try blockComment()
      } else {
        let next = try token(startingWith: byte)
        (last, beforeLast) = (next, last)
        if depth == 0, case .word(let word) = next { outerWords.append(word) }
        tokenCount += 1
      }
    }
    if depth > 0 { throw Refusal("a parenthesis is not closed") }
    if tokenCount == 0 { throw Refusal("the expression is empty") }
    endPiece(at: index)
  }

  private func peek(_ offset: Int = 0) -> UInt8? {
    index + offset < bytes.count ? bytes[index + offset] : nil
  }

  private mutating func endPiece(at end: Int) {
    guard pieceStart < end else { return }
    pieces.append(.text(String(decoding: bytes[pieceStart..<end], as: UTF8.self)))
    pieceStart = end
  }

  private mutating func token(startingWith byte: UInt8) throws(Refusal) -> Token {
    switch byte {
    case UInt8(ascii: "'"):
      try literal()
      return .literal(hasEscapes: false)
    case UInt8(ascii: "\""): try quoted(by: byte)
    case UInt8(ascii: "("):
      depth += 1
      index += 1
    case UInt8(ascii: ")"):
      depth -= 1
      if depth < 0 { throw Refusal("a closing parenthesis has no opening one") }
      index += 1
    case UInt8(ascii: ";"):
      throw Refusal(
        "a semicolon is not part of an expression",
        remedy: "write one expression only, without a semicolon"
      )
    case UInt8(ascii: "$"):
      throw Refusal(
        "a value cannot begin with \"$\" here",
        remedy: "write texts in single quotes, and :name for a parameter"
      )
    case UInt8(ascii: ":"): try colon()
    case _ where Self.isDigit(byte): try number()
    case _ where Self.isNameByte(byte): return try word()
    default: index += 1
    }
    return .other(byte)
  }

  // MARK: Texts

  private mutating func literal() throws(Refusal) {
    let start = index
    if last == .literal(hasEscapes: true) {
      throw Refusal("a string follows an E'' string", remedy: "join the two with ||")
    }
    // `U&'…'`, with a UESCAPE somewhere after it.
    if start >= 2, bytes[start - 1] == UInt8(ascii: "&"),
      bytes[start - 2] | 0x20 == UInt8(ascii: "u"),
      start == 2 || !Self.isNameByte(bytes[start - 3])
    {
      throw Refusal(
        "a U&'' string is not allowed",
        remedy: "write the characters, or an E'' string"
      )
    }
    let isTyped = isBehindType(at: start)
    try quoted(by: UInt8(ascii: "'"), escapes: plainEscapes)
    let hasBackslash = bytes[start..<index].contains(UInt8(ascii: "\\"))
    guard !isTyped || !hasBackslash else {
      throw Refusal("a backslash is in a string behind its type", remedy: "write an E'' string")
    }
    if !isTyped { endLiteral(from: start) }
  }

  private mutating func endLiteral(from start: Int) {
    // The first part of the literal, and the separator.
    if case .literal = last, case .literal(let part) = pieces.last {
      pieces.removeLast()
      pieces.append(.literal(part + String(decoding: bytes[pieceStart..<index], as: UTF8.self)))
    } else {
      endPiece(at: start)
      pieces.append(.literal(String(decoding: bytes[start..<index], as: UTF8.self)))
    }
    pieceStart = index
  }

  /// Whether the text that begins here follows SQL words that fix its type and cannot be redefined,
  /// as in `interval '1 day'` and `B'01'`.
  private func isBehindType(at start: Int) -> Bool {
    guard case .word(let word) = last else {
      return last == .other(UInt8(ascii: "(")) && beforeLast == .word("extract")
    }
    if ["b", "x", "n"].contains(word) { return Self.isNameByte(bytes[start - 1]) }
    if word == "zone" { return beforeLast == .word("time") }
    if word == "precision" { return beforeLast == .word("double") }
    return Self.typeKeywords.contains(word)
  }

  private static let typeKeywords: Set<String> = [
    "bigint", "bit", "boolean", "char", "character", "dec", "decimal", "float", "int", "integer",
    "interval", "nchar", "numeric", "real", "smallint", "time", "timestamp", "varchar",
  ]

  private mutating func number() throws(Refusal) {
    // Digits, exponents, `0x…`; the server refuses anything that is not a number.
    while let next = peek(), Self.isNameByte(next) || next == UInt8(ascii: ".") { index += 1 }
    // Some versions end a number before the e of `1e'…'`, which then starts an E'' string.
    if let next = peek(), next == UInt8(ascii: "'") || next == UInt8(ascii: "\"") {
      throw Refusal("a quote follows a number", remedy: "write a space between the two")
    }
  }

  private mutating func word() throws(Refusal) -> Token {
    let start = index
    while let next = peek(), Self.isNameByte(next) || next == UInt8(ascii: "$") { index += 1 }
    guard index - start == 1, bytes[start] | 0x20 == UInt8(ascii: "e"), peek() == UInt8(ascii: "'")
    else {
      if last == .other(UInt8(ascii: ".")) { return .other(bytes[start]) }
      return .word(String(decoding: bytes[start..<index], as: UTF8.self).lowercased())
    }
    try quoted(by: UInt8(ascii: "'"), escapes: true)
    endLiteral(from: start)
    return .literal(hasEscapes: true)
  }

  private mutating func quoted(by quote: UInt8, escapes: Bool = false) throws(Refusal) {
    index += 1
    while let next = peek() {
      index += 1
      if escapes, next == UInt8(ascii: "\\"), peek() != nil {
        index += 1
      } else if next == quote {
        if peek() != quote { return }
        index += 1
      }
    }
    throw Refusal("a \(Character(Unicode.Scalar(quote))) is not closed")
  }

  /// Block comments nest.
  private mutating func blockComment() throws(Refusal) {
    var level = 0
    while let next = peek() {
      if next == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "*") {
        level += 1
        index += 2
      } else if next == UInt8(ascii: "*"), peek(1) == UInt8(ascii: "/") {
        level -= 1
        index += 2
        if level == 0 { return }
      } else {
        index += 1
      }
    }
    throw Refusal("a comment is not closed")
  }

  private mutating func colon() throws(Refusal) {
    // A cast, or a named argument.
    if let next = peek(1), next == UInt8(ascii: ":") || next == UInt8(ascii: "=") {
      index += 2
      return
    }
    guard let first = peek(1), Self.isNameByte(first), !Self.isDigit(first) else {
      // The colon of a slice `[a:b]`; the server refuses any other.
      index += 1
      return
    }
    endPiece(at: index)
    index += 1
    let start = index
    while let next = peek(), Self.isNameByte(next) { index += 1 }
    if peek() == UInt8(ascii: "$") || peek() == UInt8(ascii: "'") || peek() == UInt8(ascii: "\"") {
      throw Refusal("a colon is not followed by a parameter name", remedy: "write :name")
    }
    pieces.append(.parameter(String(decoding: bytes[start..<index], as: UTF8.self)))
    pieceStart = index
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...0xff:
      true
    default: false
    }
  }
}
#endif
