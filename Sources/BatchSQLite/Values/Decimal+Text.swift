package import BatchPlatform

extension Decimal {
  /// Parses a whole text `[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?`; `Decimal(string:)` would
  /// accept a prefix, and takes ten times as long for a few digits.
  package init?(wholeText text: String) {
    var rest = text.utf8[...]
    var significand: UInt64 = 0
    func skipSign() -> FloatingPointSign {
      let sign = rest.first
      if sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { rest.removeFirst() }
      return sign == UInt8(ascii: "-") ? .minus : .plus
    }
    func readDigits() -> Int {
      let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      // If the number is longer, these digits are not used.
      for digit in digits { significand = significand &* 10 &+ UInt64(digit - UInt8(ascii: "0")) }
      rest = rest[digits.endIndex...]
      return digits.count
    }
    let sign = skipSign()
    var count = readDigits()
    guard count > 0 else { return nil }
    var fraction = 0
    if rest.first == UInt8(ascii: ".") {
      rest.removeFirst()
      fraction = readDigits()
      count += fraction
    }
    if rest.isEmpty, count <= 18 {
      let digits = Decimal(significand)
      self = significand == 0 ? 0 : Decimal(sign: sign, exponent: -fraction, significand: digits)
      return
    }
    if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
      rest.removeFirst()
      _ = skipSign()
      guard (1...3).contains(readDigits()) else { return nil }
    }
    guard rest.isEmpty, let value = Decimal(string: text), !value.isNaN else { return nil }
    // `Decimal` rounds numbers of 39 digits or more.
    guard text.utf8.count < 39 || Self.digits(of: text) == Self.digits(of: value.description) else {
      return nil
    }
    self = value
  }

  /// The digits of a number, without leading and trailing zeros.
  private static func digits(of text: String) -> Substring {
    let mantissa = text.prefix { $0 != "e" && $0 != "E" }
    let digits = String(mantissa.filter(\.isWholeNumber)).drop { $0 == "0" }
    return digits.lastIndex { $0 != "0" }.map { digits[...$0] } ?? ""
  }
}
