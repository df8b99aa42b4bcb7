/// A value as it is bound to SQL.
///
/// A boolean is 0 or 1; a date or timestamp is text.
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
  /// The integer of a literal.
  public init(integerLiteral value: Int64) { self = .integer(value) }

  /// The number of a literal.
  public init(floatLiteral value: Double) { self = .real(value) }

  /// The text of a literal.
  public init(stringLiteral value: String) { self = .text(value) }

  /// 1 for `true` and 0 for `false`.
  public init(booleanLiteral value: Bool) { self = .integer(value ? 1 : 0) }

  /// NULL.
  public init(nilLiteral: ()) { self = .null }
}
