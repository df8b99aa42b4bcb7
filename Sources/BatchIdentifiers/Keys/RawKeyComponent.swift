/// A component of an encoded key, with its bytes in place.
///
/// The buffers are valid only during the call of the closure that gets the component, and as unsafe
/// as any others.
@safe public enum RawKeyComponent {
  /// An SQL NULL.
  case null
  /// An INTEGER.
  case integer(Int64)
  /// A REAL, never NaN.
  case real(Double)
  /// The bytes of a TEXT, as SQLite stores them: not necessarily UTF-8.
  case text(UnsafeRawBufferPointer)
  /// The bytes of a BLOB.
  case blob(UnsafeRawBufferPointer)
}
