import BatchRuns

extension SQLValue {
  /// The value of a column's DEFAULT in the schema, if it is a literal; SQLite computes an
  /// expression such as `CURRENT_TIMESTAMP` only when a row is inserted.
  package init?(literal text: String) {
    var text = text.trimmedOfSpaces
    while text.hasPrefix("("), text.hasSuffix(")") {
      text = text.dropFirst().dropLast().trimmedOfSpaces
    }
    switch text.uppercased() {
    case "NULL": self = .null
    case "TRUE": self = .integer(1)
    case "FALSE": self = .integer(0)
    default:
      guard
        let value = Self.string(text, in: "'") ?? Self.string(text, in: "\"")
          ?? Self.bytes(text) ?? Self.number(text)
      else { return nil }
      self = value
    }
  }

  private static func string(_ text: Substring, in quote: Character) -> SQLValue? {
    guard text.count >= 2, text.first == quote, text.last == quote else { return nil }
    let content = text.dropFirst().dropLast()
    // A quote in the text is doubled.
    let rest = content.replacing("\(quote)\(quote)", with: "")
    guard !rest.contains(quote) else { return nil }
    return .text(String(content).replacing("\(quote)\(quote)", with: "\(quote)"))
  }

  private static func bytes(_ text: Substring) -> SQLValue? {
    guard let match = text.wholeMatch(of: /[xX]'((?:[0-9a-fA-F]{2})*)'/) else { return nil }
    let digits = Array(match.1)
    return .blob(
      stride(from: 0, to: digits.count, by: 2).compactMap {
        UInt8(String(digits[$0...$0 + 1]), radix: 16)
      }
    )
  }

  private static func number(_ text: Substring) -> SQLValue? {
    let pattern = /([+-]?) *([0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?)/
    guard let match = text.wholeMatch(of: pattern) else { return nil }
    let digits = (match.1 == "-" ? "-" : "") + match.2
    if let integer = Int64(digits) { return .integer(integer) }
    // Swift requires a digit on both sides of the point.
    let parts = digits.replacing("-.", with: "-0.").replacing(/\.(?=[eE]|$)/, with: ".0")
    return Double(parts.hasPrefix(".") ? "0\(parts)" : parts).map { .real($0) }
  }
}

extension StringProtocol where SubSequence == Substring {
  fileprivate var trimmedOfSpaces: Substring {
    var text = self[...]
    while text.first?.isWhitespace == true { text.removeFirst() }
    while text.last?.isWhitespace == true { text.removeLast() }
    return text
  }
}
