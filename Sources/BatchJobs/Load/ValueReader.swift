import BatchIdentifiers
import BatchPlatform
import BatchRuns

/// Reads the values of a field as the type that it has.
package struct ValueReader: Sendable {
  package let name: String
  package let type: Job.ValueType

  package init(_ name: String, _ type: Job.ValueType) { (self.name, self.type) = (name, type) }

  /// Reads a text, as CSV has only texts.
  func read(
    _ text: Span<UInt8>,
    into values: inout ValueBlock,
    _ row: Int,
    _ column: Int
  ) throws(RecordProblem) {
    switch type {
    case .text, .any:
      guard text.isUTF8 else { throw problem(text, "is not UTF-8") }
      try set(text, .text, in: &values, row, column)
    case .integer:
      guard let number = Self.integer(text) ?? Self.wholeNumber(text) else {
        throw problem(text, "is not a whole number of 64 bits")
      }
      values.set(row, column, integer: number)
    case .real:
      guard let number = Self.real(text) else { throw problem(text, "is not a number") }
      if number.isInfinite && !Self.isInfinity(text) || number == 0 && Self.hasDigits(text) {
        throw problem(text, "is beyond the numbers of double precision")
      }
      values.set(row, column, real: number)
    case .number:
      if let number = Self.integer(text) { return values.set(row, column, integer: number) }
      guard Self.real(text) != nil else { throw problem(text, "is not a number") }
      // The table converts it, with all of its digits if it can.
      try set(text, .text, in: &values, row, column)
    case .boolean:
      guard let flag = Self.boolean(text) else { throw problem(text, "is neither true nor false") }
      values.set(row, column, integer: flag ? 1 : 0)
    case .blob:
      guard let bytes = Base64.bytes(of: Array(copying: text)[...]) else {
        throw problem(text, "is not Base64")
      }
      try set(bytes.span, .blob, in: &values, row, column)
    }
  }

  /// Reads a value of JSON.
  func read(
    _ scanner: inout JSONLineScanner,
    into values: inout ValueBlock,
    _ row: Int,
    _ column: Int
  ) throws(RecordProblem) {
    do {
      if scanner.isAtArray() { return try readNested(&scanner, into: &values, row, column) }
      let start = scanner.offset
      switch try scanner.readValue() {
      case .null: values.setNull(row, column)
      case .string(let bytes): try read(bytes.span, into: &values, row, column)
      case .boolean(let flag):
        switch type {
        case .any, .boolean, .integer, .number: values.set(row, column, integer: flag ? 1 : 0)
        default: try read((flag ? "true" : "false").utf8Array.span, into: &values, row, column)
        }
      case .integer(let number):
        switch type {
        case .any, .integer, .number: values.set(row, column, integer: number)
        case .real where number != 0: values.set(row, column, real: Double(number))
        case .real:
          // Zero has a sign.
          try read(Array(scanner.bytes(from: start)).span, into: &values, row, column)
        default: try read(String(number).utf8Array.span, into: &values, row, column)
        }
      case .real(let number):
        switch type {
        case .any: values.set(row, column, real: number)
        case .real where number.isNormal: values.set(row, column, real: number)
        // With all of its digits.
        default:
          try read(Array(scanner.bytes(from: start)).span, into: &values, row, column)
        }
      case .object:
        guard let (kind, bytes) = try? scanner.readingBytes() else {
          scanner.begin(at: start)
          return try readNested(&scanner, into: &values, row, column)
        }
        guard [.blob, .text, .any].contains(type) else {
          throw RecordProblem("\(name) is bytes, and not of the type \(type.rawValue)")
        }
        try set(bytes.span, kind, in: &values, row, column)
      }
    } catch let error as RecordProblem {
      throw error
    } catch {
      throw RecordProblem((error as? JSONLineScanner.Problem)?.message ?? "\(error)")
    }
  }

  /// Stores an array or an object as the text of its JSON.
  private func readNested(
    _ scanner: inout JSONLineScanner,
    into values: inout ValueBlock,
    _ row: Int,
    _ column: Int
  ) throws(RecordProblem) {
    let text: [UInt8]
    do throws(JSONLineScanner.Problem) {
      text = Array(try scanner.skipValue())
    } catch {
      throw RecordProblem(error.message)
    }
    guard type == .text || type == .any else {
      throw problem(text.span, "is an array or an object")
    }
    guard text.span.isUTF8 else { throw problem(text.span, "is not UTF-8") }
    try set(text.span, .text, in: &values, row, column)
  }

  private func set(
    _ bytes: Span<UInt8>,
    _ kind: ValueBlock.Kind,
    in values: inout ValueBlock,
    _ row: Int,
    _ column: Int
  ) throws(RecordProblem) {
    do throws(BatchError) {
      try values.set(row, column, kind, bytes: bytes)
    } catch {
      throw RecordProblem(error.message)
    }
  }

  private func problem(_ text: Span<UInt8>, _ reason: String) -> RecordProblem {
    let start = String(decoding: Array(copying: text.extracting(first: 60)), as: UTF8.self)
    let shown = text.count > 60 ? start + "…" : start
    return RecordProblem("\(name) is \(shown.quotedForMessage), which \(reason)")
  }
}

// MARK: - Texts of values

extension ValueReader {
  private static func integer(_ text: Span<UInt8>) -> Int64? {
    guard (1...20).contains(text.count) else { return nil }
    let isNegative = text[0] == UInt8(ascii: "-")
    var index = isNegative || text[0] == UInt8(ascii: "+") ? 1 : 0
    guard index < text.count else { return nil }
    var value: Int64 = 0
    while index < text.count {
      let digit = text[index] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      let (tens, overflows) = value.multipliedReportingOverflow(by: 10)
      // The least number has no positive twin.
      let (sum, overflowsToo) = tens.subtractingReportingOverflow(Int64(digit))
      guard !overflows, !overflowsToo else { return nil }
      value = sum
      index += 1
    }
    if isNegative { return value }
    return value == .min ? nil : -value
  }

  /// A number such as `12.0` or `1e3`, which other programs write for a whole one.
  private static func wholeNumber(_ text: Span<UInt8>) -> Int64? {
    var end = text.count
    while end > 0, text[end - 1] == UInt8(ascii: "0") { end -= 1 }
    if end > 1, text[end - 1] == UInt8(ascii: ".") {
      return integer(text.extracting(0..<(end - 1)))
    }
    // A double does not hold all whole numbers of 64 bits.
    guard text.count <= 40, real(text) != nil else { return nil }
    return Decimal(string: String(decoding: Array(copying: text), as: UTF8.self)).flatMap {
      Int64($0.description)
    }
  }

  /// Whether a number has a digit besides zeros before its exponent.
  private static func hasDigits(_ text: Span<UInt8>) -> Bool {
    for index in text.indices {
      switch text[index] {
      case UInt8(ascii: "1")...UInt8(ascii: "9"): return true
      case UInt8(ascii: "e"), UInt8(ascii: "E"): return false
      default: break
      }
    }
    return false
  }

  /// Whether it is the text that exports write for an infinity.
  private static func isInfinity(_ text: Span<UInt8>) -> Bool {
    ["1e999", "-1e999"].contains(String(decoding: Array(copying: text), as: UTF8.self))
  }

  private static func real(_ text: Span<UInt8>) -> Double? {
    var hasDigit = false
    for index in text.indices {
      switch text[index] {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): hasDigit = true
      case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "e"),
        UInt8(ascii: "E"):
        break
      default: return nil
      }
    }
    guard hasDigit, text.count <= 1_000 else { return nil }
    return Double(String(decoding: Array(copying: text), as: UTF8.self))
  }

  private static func boolean(_ text: Span<UInt8>) -> Bool? {
    guard text.count <= 5 else { return nil }
    return switch String(decoding: Array(copying: text), as: UTF8.self).lowercased() {
    case "true", "t", "1": true
    case "false", "f", "0": false
    default: nil
    }
  }
}

extension String {
  fileprivate var utf8Array: [UInt8] { Array(utf8) }
}
