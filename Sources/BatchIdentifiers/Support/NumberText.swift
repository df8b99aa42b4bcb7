/// Writes numbers as digits, for exports.
package enum NumberText {
  /// Appends an integer in decimal digits.
  package static func append(_ value: Int64, to line: inout [UInt8]) {
    if value < 0 { line.append(UInt8(ascii: "-")) }
    var rest = value.magnitude
    let start = line.count
    repeat {
      line.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
      rest /= 10
    } while rest > 0
    line[start...].reverse()
  }

  /// Appends the shortest digits of a number; an infinity is `1e999`, which JSON readers parse as
  /// one.
  package static func append(_ value: Double, to line: inout [UInt8]) {
    if value.isInfinite {
      line.append(contentsOf: (value < 0 ? "-1e999" : "1e999").utf8)
    } else {
      line.append(contentsOf: value.description.utf8)
    }
  }
}
