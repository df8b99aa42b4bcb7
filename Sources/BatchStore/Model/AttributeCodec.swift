/// How the values of an attribute are kept in the database.
///
///     .attribute("created", \.created, as: .iso8601)
public struct AttributeCodec<Value>: Sendable {
  /// What the values are called in errors: `Int64`, `ISO 8601 date`.
  public let typeName: String
  /// What a getter that cannot throw returns when there is no value to return.
  public let placeholder: @Sendable () -> Value
  /// The Swift value, or nil if the stored one does not fit.
  public let decode: @Sendable (SQLValue) -> Value?
  /// The stored value.
  public let encode: @Sendable (Value) -> SQLValue
  /// What SQL may take the stored values for.
  let form: AttributeForm

  /// Makes a codec from its parts.
  public init(
    typeName: String,
    placeholder: @autoclosure @escaping @Sendable () -> Value,
    decode: @escaping @Sendable (SQLValue) -> Value?,
    encode: @escaping @Sendable (Value) -> SQLValue
  ) {
    self.typeName = typeName
    self.placeholder = placeholder
    self.decode = decode
    self.encode = encode
    form = .other
  }

  /// A codec whose stored values SQL may compare.
  init(
    typeName: String,
    form: AttributeForm,
    placeholder: @autoclosure @escaping @Sendable () -> Value,
    decode: @escaping @Sendable (SQLValue) -> Value?,
    encode: @escaping @Sendable (Value) -> SQLValue
  ) {
    self.typeName = typeName
    self.form = form
    self.placeholder = placeholder
    self.decode = decode
    self.encode = encode
  }

  /// The same codec for an attribute that may be NULL.
  public var optional: AttributeCodec<Value?> {
    AttributeCodec<Value?>(
      typeName: "\(typeName)?",
      form: form,
      placeholder: nil,
      decode: { $0 == .null ? .some(nil) : decode($0).map(Optional.some) },
      encode: { $0.map(encode) ?? .null }
    )
  }
}

/// What the stored values of an attribute are to SQL.
enum AttributeForm: Sendable {
  /// They compare in SQL as the Swift values do; see ``Representation``.
  case canonical
  /// They are seconds since 1970.
  case unixSeconds
  /// Only the codec can tell.
  case other
}

/// A codec whose type of values is known only to the attribute that it belongs to.
protocol AttributeCoding: Sendable {
  var typeName: String { get }
  /// Whether a stored value can be decoded.
  func fits(_ value: SQLValue) -> Bool
  /// The placeholder as it would be stored.
  var storedPlaceholder: SQLValue { get }
}

extension AttributeCodec: AttributeCoding {
  func fits(_ value: SQLValue) -> Bool { decode(value) != nil }
  var storedPlaceholder: SQLValue { encode(placeholder()) }
}
