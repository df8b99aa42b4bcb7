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
