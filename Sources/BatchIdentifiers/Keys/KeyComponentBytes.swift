/// One component of an encoded key, with its bytes still where they are.
///
/// What ``RawKeyComponent`` is outside of the module.
enum KeyComponentBytes: ~Escapable {
  case null
  case integer(Int64)
  /// Never NaN.
  case real(Double)
  /// Not necessarily UTF-8.
  case text(Span<UInt8>)
  case blob(Span<UInt8>)
}
