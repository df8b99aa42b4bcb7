/// Scans an SQL expression to ensure that it stays inside the parentheses around it.
///
/// SQLite's own parser decides what an expression means. It cannot decide whether the text is *one*
/// expression: `1) OR (1` compiles between parentheses and changes the statement around them. So
/// the text is scanned by the rules of SQLite's tokenizer
/// (<https://www.sqlite.org/syntax/literal-value.html>, `sqlite3GetToken`). It is refused if a
/// parenthesis, quote or comment is left open or closes one that is not its own, or if it contains
/// a semicolon.
struct ExpressionScanner {
  struct Refusal: Error, Hashable {
    let reason: String
    let remedy: String?

    init(_ reason: String, remedy: String? = nil) {
      self.reason = reason
      self.remedy = remedy
    }
  }

  struct Token {
    enum Kind {
      case open
      case close
      /// A keyword, a name without quotes or a number.
      case word
      case other
    }

    let kind: Kind
    let range: Range<Int>
  }

  private let bytes: [UInt8]
  private var index = 0
  private var depth = 0

  private(set) var tokens: [Token] = []

  private var doubleQuoted: [Range<Int>] = []

  /// The names of the parameters used, without the colon.
  private(set) var parameters: Set<String> = []

  private let subject: SQLExpression.Kind

  init(_ text: String, of kind: SQLExpression.Kind = .expression) throws(Refusal) {
    bytes = Array(text.utf8)
    subject = kind
    while let byte = peek() { try token(startingWith: byte) }
    if depth > 0 { throw Refusal("a parenthesis is not closed") }
    if tokens.isEmpty { throw Refusal("the \(subject) is empty") }
  }

  /// The text with backticks instead of double quotes around names; SQLite treats an unknown name
  /// in double quotes as a string, and so a misspelled column as a constant.
  var textWithoutStringNames: String {
    var rewritten: [UInt8] = []
    var end = 0
    let (double, backtick) = (UInt8(ascii: "\""), UInt8(ascii: "`"))
    for range in doubleQuoted {
      rewritten += bytes[end..<range.lowerBound]
      rewritten.append(backtick)
      var isEscaped = false
      for byte in bytes[range].dropFirst().dropLast() {
        if byte == double {
          isEscaped.toggle()
          if isEscaped { continue }
        }
        if byte == backtick { rewritten.append(backtick) }
        rewritten.append(byte)
      }
      rewritten.append(backtick)
      end = range.upperBound
    }
    rewritten += bytes[end...]
    return String(decoding: rewritten, as: UTF8.self)
  }

  func text(of tokens: ArraySlice<Token>) -> String {
    guard let first = tokens.first, let last = tokens.last else { return "" }
    return String(decoding: bytes[first.range.lowerBound..<last.range.upperBound], as: UTF8.self)
  }

  var outerTokens: [Token] {
    var depth = 0
    return tokens.filter { token in
      if token.kind == .open { depth += 1 }
      defer { if token.kind == .close { depth -= 1 } }
      return depth == 0
    }
  }

  /// Whether a token is this keyword, given in upper case.
  func isKeyword(_ token: Token, _ keyword: StaticString) -> Bool {
    token.kind == .word && token.range.count == keyword.utf8CodeUnitCount
      && text(of: [token]).uppercased() == keyword.description
  }

  private func peek(_ offset: Int = 0) -> UInt8? {
    index + offset < bytes.count ? bytes[index + offset] : nil
  }

  private mutating func token(startingWith byte: UInt8) throws(Refusal) {
    let start = index
    var kind = Token.Kind.other
    switch byte {
    case 0:
      throw Refusal("the \(subject) holds a NUL character")
    case UInt8(ascii: " "), 0x09, 0x0a, 0x0c, 0x0d:
      index += 1
      return
    case UInt8(ascii: "-") where peek(1) == byte:
      while let next = peek(), next != 0x0a { try refuseNul(next) }
      return
    case UInt8(ascii: "/") where peek(1) == UInt8(ascii: "*"):
      try blockComment()
      return
    case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"):
      try quoted(by: byte)
    case UInt8(ascii: "["):
      while let next = peek(), next != UInt8(ascii: "]") { try refuseNul(next) }
      if peek() == nil { throw Refusal("a [ is not closed") }
      index += 1
    case UInt8(ascii: "("):
      depth += 1
      index += 1
      kind = .open
    case UInt8(ascii: ")"):
      depth -= 1
      if depth < 0 { throw Refusal("a closing parenthesis has no opening one") }
      index += 1
      kind = .close
    case UInt8(ascii: ";"):
      throw Refusal(
        "a semicolon is not part of \(subject == .query ? "a" : "an") \(subject)",
        remedy: "write one \(subject) only, without a semicolon"
      )
    case UInt8(ascii: "?"), UInt8(ascii: "@"), UInt8(ascii: "$"), UInt8(ascii: "#"):
      throw Refusal(
        "\"\(Character(Unicode.Scalar(byte)))\" is not a parameter here",
        remedy: "declare the value under parameters and write :name"
      )
    case UInt8(ascii: ":"):
      try parameter()
    case _ where Self.isNameByte(byte):
      // Take the whole name, since SQLite allows $ inside one.
      while let next = peek(), Self.isNameByte(next) || next == UInt8(ascii: "$") { index += 1 }
      kind = .word
    default:
      index += 1
    }
    tokens.append(Token(kind: kind, range: start..<index))
  }

  private mutating func refuseNul(_ byte: UInt8) throws(Refusal) {
    if byte == 0 { throw Refusal("the \(subject) holds a NUL character") }
    index += 1
  }

  private mutating func blockComment() throws(Refusal) {
    index += 2
    while let next = peek() {
      if next == UInt8(ascii: "*"), peek(1) == UInt8(ascii: "/") {
        index += 2
        return
      }
      try refuseNul(next)
    }
    throw Refusal("a comment is not closed")
  }

  private mutating func quoted(by quote: UInt8) throws(Refusal) {
    let start = index
    index += 1
    while let next = peek() {
      try refuseNul(next)
      if next == quote {
        if peek() != quote {
          if quote == UInt8(ascii: "\"") { doubleQuoted.append(start..<index) }
          return
        }
        index += 1
      }
    }
    throw Refusal("a \(Character(Unicode.Scalar(quote))) is not closed")
  }

  private mutating func parameter() throws(Refusal) {
    index += 1
    let start = index
    while let next = peek(), Self.isNameByte(next) { index += 1 }
    let name = String(decoding: bytes[start..<index], as: UTF8.self)
    // For Tcl, SQLite also accepts `:a::b` and `:a(any text)` as names. The second would hide
    // parentheses and quotes from this scanner.
    guard !name.isEmpty, peek() != UInt8(ascii: "("), peek() != UInt8(ascii: ":"),
      peek() != UInt8(ascii: "$")
    else { throw Refusal("a colon is not followed by a parameter name", remedy: "write :name") }
    parameters.insert(name)
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
