/// A value as bound to SQL.
///
/// A boolean is 0 or 1, and a date or timestamp is a text.
public enum ParameterValue: Hashable, Sendable {
  /// NULL.
  case null
  /// An integer.
  case integer(Int64)
  /// A floating-point number.
  case real(Double)
  /// A text.
  case text(String)
}

extension ParameterValue: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral
{
  /// Makes an integer from a literal.
  public init(integerLiteral value: Int64) { self = .integer(value) }

  /// Makes a number from a literal.
  public init(floatLiteral value: Double) { self = .real(value) }

  /// Makes a text from a literal.
  public init(stringLiteral value: String) { self = .text(value) }

  /// Makes 1 from `true`, and 0 from `false`.
  public init(booleanLiteral value: Bool) { self = .integer(value ? 1 : 0) }

  /// Makes NULL.
  public init(nilLiteral: ()) { self = .null }
}
