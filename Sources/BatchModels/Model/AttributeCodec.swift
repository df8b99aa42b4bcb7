public import BatchStore

/// How an attribute's values are stored in the database.
///
///     .attribute("created", \.created, as: .iso8601)
public struct AttributeCodec<Value>: Sendable {
  /// What the values are called in errors: `Int64`, `ISO 8601 date`.
  public let typeName: String
  /// What a getter, which cannot throw, returns if there is no value.
  public let placeholder: @Sendable () -> Value
  /// The Swift value, or nil if the stored one does not fit.
  public let decode: @Sendable (SQLValue) -> Value?
  /// The stored value.
  public let encode: @Sendable (Value) -> SQLValue
  /// What SQL may take the stored values for.
  @usableFromInline let form: AttributeForm
  /// Stored values of which all can be decoded; of others some may be.
  @usableFromInline let alwaysFit: StorageClasses
  /// All stored values that a value is decoded from, by which an index finds it; nil if only the
  /// codec can tell.
  ///
  /// Texts stand for those that are equal to them, too.
  @usableFromInline let storedForms: @Sendable (Value) -> [SQLValue]?
  /// A stored value that is not NULL, by which a new table knows the type of the column.
  @usableFromInline let sample: @Sendable () -> SQLValue

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
    alwaysFit = []
    storedForms = { _ in nil }
    sample = { encode(placeholder()) }
  }

  /// A codec of which more is known.
  @usableFromInline
  init(
    typeName: String,
    form: AttributeForm,
    alwaysFit: StorageClasses = [],
    storedForms: @escaping @Sendable (Value) -> [SQLValue]? = { _ in nil },
    sample: (@Sendable () -> SQLValue)? = nil,
    placeholder: @autoclosure @escaping @Sendable () -> Value,
    decode: @escaping @Sendable (SQLValue) -> Value?,
    encode: @escaping @Sendable (Value) -> SQLValue
  ) {
    self.typeName = typeName
    self.form = form
    self.alwaysFit = alwaysFit
    self.storedForms = storedForms
    self.sample = sample ?? { encode(placeholder()) }
    self.placeholder = placeholder
    self.decode = decode
    self.encode = encode
  }

  /// The same codec for an attribute that may be NULL.
  @inlinable
  public var optional: AttributeCodec<Value?> {
    AttributeCodec<Value?>(
      typeName: "\(typeName)?",
      form: form,
      alwaysFit: alwaysFit.union(.null),
      storedForms: { $0.map(storedForms) ?? [.null] },
      sample: sample,
      placeholder: nil,
      decode: { stored in
        if case .null = stored { return .some(nil) }
        return decode(stored).map(Optional.some)
      },
      encode: { value in value.map(encode) ?? .null }
    )
  }
}

/// What the stored values of an attribute are to SQL.
@usableFromInline
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
  /// A stored value that is not NULL.
  var sample: @Sendable () -> SQLValue { get }
}

extension AttributeCodec: AttributeCoding {
  func fits(_ value: SQLValue) -> Bool { decode(value) != nil }
  var storedPlaceholder: SQLValue { encode(placeholder()) }
}
