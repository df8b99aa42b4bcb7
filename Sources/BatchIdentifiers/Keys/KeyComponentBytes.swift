/// A component of an encoded key, with its bytes in place; outside the module, it is
/// ``RawKeyComponent``.
enum KeyComponentBytes: ~Escapable {
  case null
  case integer(Int64)
  /// Never NaN.
  case real(Double)
  /// Not necessarily UTF-8.
  case text(Span<UInt8>)
  case blob(Span<UInt8>)
}
