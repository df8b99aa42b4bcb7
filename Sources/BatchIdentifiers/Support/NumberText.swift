/// Writes numbers as digits, for exports.
package enum NumberText {
  package static func append(_ value: Int64, to line: inout [UInt8]) {
    var digits = InlineArray<20, UInt8>(repeating: UInt8(ascii: "-"))
    var rest = value.magnitude
    var start = digits.count
    repeat {
      let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
      start -= 1
      digits[start] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: digit)
      rest = quotient
    } while rest > 0
    if value < 0 { start -= 1 }
    line.append(copying: digits.span.extracting(start..<digits.count))
  }

  /// Appends the shortest digits of a number; an infinity is `1e999`, which JSON readers parse as
  /// infinity.
  package static func append(_ value: Double, to line: inout [UInt8]) {
    if value.isInfinite {
      line.append(contentsOf: (value < 0 ? "-1e999" : "1e999").utf8)
    } else if value.magnitude < 0x1p53, let integer = Int64(exactly: value), integer != 0 {
      // Most numbers in tables are whole.
      append(integer, to: &line)
      line.append(UInt8(ascii: "."))
      line.append(UInt8(ascii: "0"))
    } else {
      line.append(contentsOf: value.description.utf8)
    }
  }
}
