package import BatchIdentifiers

extension Duration {
  private static let units: [(name: String, factor: Int64)] = [
    ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
  ]

  /// Parses a duration with units: `50ms`, `1.5s`, `10m`, `3h55m`, `1d12h`.
  package init(parsing text: String) throws(BatchError) {
    // Each number begins a part: 3h and 55m.
    var starts = [text.startIndex]
    for (index, next) in zip(text.indices, text.indices.dropFirst())
    where text[index].isLetter && text[next].isASCII && text[next].isNumber {
      starts.append(next)
    }
    var sum: Int64 = 0
    var last = Int64.max
    for (start, end) in zip(starts, starts.dropFirst() + [text.endIndex]) {
      let part = try Quantity(
        parsing: text[start..<end],
        of: text,
        name: "duration",
        example: "5s",
        units: Self.units
      )
      guard part.unit < last, end == text.endIndex || part.isWhole else {
        throw BatchError(
          .invalidJob,
          "\(text.quotedForMessage) is not a duration: its units are mixed up",
          remedy: "write whole numbers from the largest unit to the smallest, such as \"1d12h\""
        )
      }
      let (total, overflow) = sum.addingReportingOverflow(part.amount)
      guard !overflow else { throw Quantity.tooLarge(text, "duration", "5s") }
      (sum, last) = (total, part.unit)
    }
    self = .nanoseconds(sum)
  }

  /// The duration for people: `0.41 s`, `3:05`, `2:10:00`.
  package var shown: String {
    let value = self / .seconds(1)
    let digits: Double = value < 10 ? 100 : 10
    guard value >= 60 else { return "\((value * digits).rounded() / digits) s" }
    let whole = Int(value.rounded())
    let padded = { (number: Int) in number < 10 ? "0\(number)" : "\(number)" }
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60)
    return hours > 0
      ? "\(hours):\(padded(minutes)):\(padded(seconds))" : "\(minutes):\(padded(seconds))"
  }
}

package struct ByteSize: Hashable, Sendable, CustomStringConvertible {
  package let bytes: Int64

  package init(bytes: Int64) { self.bytes = bytes }

  /// The size for people, such as `4.2 MB`, `64 MB`, `999 bytes`.
  package var description: String {
    let units = ["bytes", "kB", "MB", "GB", "TB"]
    var amount = Double(bytes)
    var unit = 0
    while amount >= 1000, unit < units.count - 1 {
      amount /= 1000
      unit += 1
    }
    let tenths = (amount * 10).rounded() / 10
    return "\(tenths == tenths.rounded() ? "\(Int64(tenths))" : "\(tenths)") \(units[unit])"
  }

  /// The size as ``init(parsing:)`` reads it, in the largest unit of which it is a whole number.
  package var exactText: String {
    let units: [(name: String, bytes: Int64)] = [
      ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000),
    ]
    guard let unit = units.first(where: { bytes > 0 && bytes % $0.bytes == 0 }) else {
      return "\(bytes)B"
    }
    return "\(bytes / unit.bytes)\(unit.name)"
  }

  /// Parses a size with a unit: `512B`, `64MB` (64,000,000 bytes), `1GiB` (1,073,741,824 bytes).
  package init(parsing text: String) throws(BatchError) {
    let quantity = try Quantity(
      parsing: text[...],
      of: text,
      name: "size",
      example: "64MB",
      units: [
        ("B", 1), ("kB", 1000), ("KB", 1000), ("MB", 1_000_000), ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30),
        ("TiB", 1 << 40),
      ]
    )
    bytes = quantity.amount
  }
}

/// A decimal number with a unit, as a whole number of the smallest unit.
private struct Quantity {
  let amount: Int64
  /// The number of smallest units in one of this unit.
  let unit: Int64
  /// Whether the number was written without decimals.
  let isWhole: Bool

  init(
    parsing text: Substring,
    of whole: String,
    name: String,
    example: String,
    units: [(name: String, factor: Int64)]
  ) throws(BatchError) {
    func failure(_ reason: String) -> BatchError {
      Self.failure(whole, name, example, reason)
    }
    if text.isEmpty { throw failure("it is empty") }
    if text.hasPrefix("-") { throw failure("it is negative") }
    let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    let parts = number.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count <= 2, parts.allSatisfy({ !$0.isEmpty }) else {
      throw failure(number.isEmpty ? "it begins with no number" : "the number is malformed")
    }
    let unit = String(text[number.endIndex...])
    let names = units.map(\.name)
    guard let factor = units.first(where: { $0.name == unit })?.factor else {
      if unit.isEmpty { throw failure("the unit is missing") }
      let bare = String(unit.filter { !$0.isWhitespace })
      if bare != unit, names.contains(bare) {
        throw BatchError(
          .invalidJob,
          "\(whole.quotedForMessage) is not a \(name)",
          remedy: "write \"\(number)\(bare)\", without a space"
        )
      }
      throw BatchError(
        .invalidJob,
        "\(whole.quotedForMessage) is not a \(name): unknown unit",
        remedy: "the units are \(names.joined(separator: ", "))"
      )
    }
    let fraction = parts.count == 2 ? parts[1] : ""
    guard fraction.count <= 6 else { throw failure("more than six decimals") }
    let scale = (0..<fraction.count).reduce(Int64(1)) { scale, _ in scale * 10 }
    guard let digits = Int64(parts[0] + fraction) else {
      throw Self.tooLarge(whole, name, example)
    }
    let product = digits.multipliedReportingOverflow(by: factor)
    guard !product.overflow else { throw Self.tooLarge(whole, name, example) }
    amount = product.partialValue / scale
    self.unit = factor
    isWhole = parts.count == 1
  }

  static func tooLarge(_ text: String, _ name: String, _ example: String) -> BatchError {
    failure(text, name, example, "it is too large")
  }

  private static func failure(
    _ text: String,
    _ name: String,
    _ example: String,
    _ reason: String
  ) -> BatchError {
    BatchError(
      .invalidJob,
      "\(text.quotedForMessage) is not a \(name): \(reason)",
      remedy: "expected a number and a unit, such as \"\(example)\""
    )
  }
}
