indirect enum RegularExpressionPart {
  case step(RegularExpression.Step)
  case sequence([RegularExpressionPart])
  case either(RegularExpressionPart, RegularExpressionPart)
  /// A part with its minimum and maximum number of repetitions; nil for no maximum.
  case repeated(RegularExpressionPart, Int, Int?)
}

struct RegularExpressionParser {
  private typealias Part = RegularExpressionPart
  private typealias Refusal = RegularExpression.Refusal

  static let word: [ClosedRange<UInt32>] = [0x30...0x39, 0x41...0x5a, 0x5f...0x5f, 0x61...0x7a]
  private static let digit: [ClosedRange<UInt32>] = [0x30...0x39]
  private static let space: [ClosedRange<UInt32>] = [0x09...0x0d, 0x20...0x20]
  /// Limits the recursion, since nested parentheses are parsed recursively.
  private static let maximumDepth = 200

  private let pattern: [UInt32]
  private var place = 0
  private var depth = 0

  init(_ pattern: [UInt32]) {
    self.pattern = pattern
  }

  mutating func parse() throws(RegularExpression.Refusal) -> RegularExpressionPart {
    let whole = try alternatives()
    guard place == pattern.count else {
      throw Refusal(reason: "a closing parenthesis is unmatched")
    }
    return whole
  }

  /// Consumes the next character if it is this one.
  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard place < pattern.count, pattern[place] == character.value else { return false }
    place += 1
    return true
  }

  private mutating func next() -> UInt32? {
    guard place < pattern.count else { return nil }
    defer { place += 1 }
    return pattern[place]
  }

  private mutating func alternatives() throws(RegularExpression.Refusal) -> RegularExpressionPart {
    var found = try sequence()
    while take("|") { found = .either(found, try sequence()) }
    return found
  }

  private mutating func sequence() throws(RegularExpression.Refusal) -> RegularExpressionPart {
    var parts: [Part] = []
    while place < pattern.count, !["|", ")"].contains(Unicode.Scalar(pattern[place])) {
      let bounds: (Int, Int?)? =
        if take("*") {
          (0, nil)
        } else if take("+") {
          (1, nil)
        } else if take("?") {
          (0, 1)
        } else if take("{") {
          try braces()
        } else {
          nil
        }
      if let (least, most) = bounds {
        guard let last = parts.popLast() else {
          throw Refusal(reason: "there is nothing to repeat before *, +, ? or {")
        }
        parts.append(.repeated(last, least, most))
      } else {
        parts.append(try single())
      }
    }
    return .sequence(parts)
  }

  private mutating func single() throws(RegularExpression.Refusal) -> RegularExpressionPart {
    guard let character = next().flatMap(Unicode.Scalar.init) else { return .sequence([]) }
    switch character {
    case "(":
      depth += 1
      guard depth <= Self.maximumDepth else { throw Refusal(reason: "too many parentheses") }
      let inside = try alternatives()
      depth -= 1
      guard take(")") else { throw Refusal(reason: "a parenthesis is not closed") }
      return inside
    case ".":
      return .step(.any)
    case "^": return .step(.start)
    case "$": return .step(.end)
    case "[": return .step(try set())
    case "\\": return .step(try escaped())
    default: return .step(.character(character.value))
    }
  }

  private mutating func escaped() throws(RegularExpression.Refusal) -> RegularExpression.Step {
    if take("b") { return .boundary }
    if take("w") { return .set(Self.word, isNegated: false) }
    if take("W") { return .set(Self.word, isNegated: true) }
    if take("d") { return .set(Self.digit, isNegated: false) }
    if take("D") { return .set(Self.digit, isNegated: true) }
    if take("s") { return .set(Self.space, isNegated: false) }
    if take("S") { return .set(Self.space, isNegated: true) }
    return .character(try escapedCharacter())
  }

  private mutating func escapedCharacter() throws(RegularExpression.Refusal) -> UInt32 {
    if take("u") { return try hexadecimal(4) }
    if take("x") { return try hexadecimal(2) }
    let character = next().flatMap(Unicode.Scalar.init) ?? "\0"
    switch character {
    case "a": return 0x07
    case "f": return 0x0c
    case "n": return 0x0a
    case "r": return 0x0d
    case "t": return 0x09
    case "v": return 0x0b
    case "\\", "(", ")", "*", ".", "+", "?", "[", "$", "^", "{", "|", "}", "]", "-":
      return character.value
    default: throw Refusal(reason: "there is no such escape as \\\(character)")
    }
  }

  private mutating func hexadecimal(_ count: Int) throws(RegularExpression.Refusal) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<count {
      guard let digit = next().flatMap(Unicode.Scalar.init).map(Character.init)?.hexDigitValue
      else { throw Refusal(reason: "\\u has four hexadecimal digits, and \\x two") }
      value = value << 4 | UInt32(digit)
    }
    return value
  }

  private mutating func braces() throws(RegularExpression.Refusal) -> (Int, Int?) {
    let least = try number()
    guard take(",") else {
      guard take("}"), let least, least > 0 else {
        throw Refusal(reason: "after { there is no number from 1 and }")
      }
      return (least, least)
    }
    let most = try number()
    guard take("}") else { throw Refusal(reason: "a { is not closed") }
    if let most, most < max(least ?? 0, 1) {
      throw Refusal(reason: "the second number in {m,n} is below the first, or 0")
    }
    return (least ?? 0, most)
  }

  private mutating func number() throws(RegularExpression.Refusal) -> Int? {
    var value: Int?
    while place < pattern.count, (0x30...0x39).contains(pattern[place]) {
      value = (value ?? 0) * 10 + Int(pattern[place] - 0x30)
      place += 1
      guard value ?? 0 <= RegularExpression.maximumSteps else {
        throw Refusal(reason: "the regular expression is too long")
      }
    }
    return value
  }

  private mutating func set() throws(RegularExpression.Refusal) -> RegularExpression.Step {
    let isNegated = take("^")
    var ranges: [ClosedRange<UInt32>] = []
    repeat {
      let first = try member()
      let last = take("-") ? try member() : first
      if first <= last { ranges.append(first...last) }
    } while !take("]")
    return .set(ranges, isNegated: isNegated)
  }

  private mutating func member() throws(RegularExpression.Refusal) -> UInt32 {
    guard let character = next() else { throw Refusal(reason: "a [ is not closed") }
    if Unicode.Scalar(character) == "\\" { return try escapedCharacter() }
    if Unicode.Scalar(character) == "[", place < pattern.count,
      Unicode.Scalar(pattern[place]) == ":"
    {
      throw Refusal(reason: "classes such as [:alpha:] are not supported")
    }
    return character
  }
}
