import BatchRuns

/// The type of a parameter's value.
public enum ParameterType: String, CaseIterable, Sendable {
  /// A signed integer of 64 bits.
  case integer
  /// A floating-point number.
  case real
  /// Any text.
  case text
  /// `true` or `false`, bound to SQL as 1 or 0.
  case boolean
  /// A day, such as `2020-01-31`.
  case date
  /// A point in time, such as `2020-01-31T12:00:00Z`; it is converted to UTC.
  case timestamp

  var noun: String {
    switch self {
    case .integer: "an integer"
    case .real: "a number"
    case .text: "a text"
    case .boolean: "a boolean"
    case .date: "a date"
    case .timestamp: "a timestamp"
    }
  }

  var form: String {
    switch self {
    case .integer: "a whole number from \(Int64.min) to \(Int64.max)"
    case .real: "a number such as 1.5"
    case .text: "text"
    case .boolean: "true or false"
    case .date: "YYYY-MM-DD"
    case .timestamp: "YYYY-MM-DDTHH:MM:SSZ"
    }
  }
}

/// The reason why a value does not have its parameter's type; may be nil.
struct ParameterFault: Error, Equatable {
  let reason: String?

  init(_ reason: String? = nil) {
    self.reason = reason
  }
}

extension ParameterType {
  /// Parses the text of a command line.
  func value(parsing text: String) throws(ParameterFault) -> ParameterValue {
    switch self {
    case .text: return .text(text)
    case .integer:
      if let value = Int64(text) { return .integer(value) }
      let digits = text.drop { $0 == "-" || $0 == "+" }
      let isWhole = !digits.isEmpty && digits.utf8.allSatisfy { (0x30...0x39).contains($0) }
      throw ParameterFault(isWhole ? "it does not fit into 64 bits" : nil)
    case .real:
      // The standard library also accepts "nan", "infinity" and hexadecimal floats.
      let isDecimal = text.utf8.allSatisfy { "0123456789+-.eE".utf8.contains($0) }
      guard isDecimal, let value = Double(text) else { throw ParameterFault() }
      guard value.isFinite else { throw ParameterFault("it is too large") }
      return .real(value)
    case .boolean:
      switch text {
      case "true", "1": return .integer(1)
      case "false", "0": return .integer(0)
      default: throw ParameterFault()
      }
    case .date: return .text(try CalendarDate(parsing: text).description)
    case .timestamp: return .text(try Timestamp(parsing: text).description)
    }
  }

  /// Checks and normalizes a value given in code or as a default.
  func value(conforming value: ParameterValue) throws(ParameterFault) -> ParameterValue {
    switch (self, value) {
    case (_, .null), (.integer, .integer), (.text, .text): return value
    case (.real, .integer(let integer)): return .real(Double(integer))
    case (.real, .real(let real)):
      guard real.isFinite else { throw ParameterFault("it is not finite") }
      return value
    case (.boolean, .integer(0)), (.boolean, .integer(1)): return value
    case (.date, .text(let text)), (.timestamp, .text(let text)):
      return try self.value(parsing: text)
    default: throw ParameterFault()
    }
  }
}
