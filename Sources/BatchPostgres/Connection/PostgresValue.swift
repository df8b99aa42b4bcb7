#if PostgreSQL
import BatchIdentifiers
import BatchRuns

/// A value bound to a parameter; values never become part of the SQL text.
package enum PostgresValue: Sendable, Hashable {
  /// A NULL, of type `text` until it is cast.
  case null
  case boolean(Bool)
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])
  case array(PostgresArray)
  /// The text form of a value, with the type that the server infers for the parameter.
  case literal(String)

  /// The declared type of the parameter: an OID of `pg_type`; 0 to let the server infer it.
  var type: UInt32 {
    switch self {
    case .literal: 0
    case .boolean: 16
    case .integer: 20
    case .real: 701
    case .null, .text: 25
    case .blob: 17
    case .array(let array): array.element.arrayType
    }
  }

  var isBinary: Bool {
    switch self {
    case .blob, .array: true
    default: false
    }
  }

  /// - Throws: `BatchError` of code `invalidValue` for a text with a NUL character, which
  ///   PostgreSQL cannot store.
  func append(to bytes: inout [UInt8]) throws(BatchError) {
    switch self {
    case .null: break
    case .boolean(let value): bytes.append(UInt8(ascii: value ? "t" : "f"))
    case .integer(let value): bytes.append(contentsOf: String(value).utf8)
    case .real(let value): bytes.append(contentsOf: Self.text(of: value).utf8)
    case .text(let text), .literal(let text):
      guard !text.utf8.contains(0) else {
        throw BatchError(
          .invalidValue,
          "the text \(text.quotedForMessage) holds a NUL character, which PostgreSQL cannot store"
        )
      }
      bytes.append(contentsOf: text.utf8)
    case .blob(let value): bytes += value
    case .array(let array): array.append(to: &bytes)
    }
  }

  static func text(of value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Infinity" : "Infinity" }
    return "\(value)"
  }
}

extension [UInt8] {
  /// Appends an integer in network byte order.
  mutating func append(bigEndian value: some FixedWidthInteger) {
    for shift in stride(from: type(of: value).bitWidth - 8, through: 0, by: -8) {
      append(UInt8(truncatingIfNeeded: value >> shift))
    }
  }
}
#endif
