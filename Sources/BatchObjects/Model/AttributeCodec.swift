public import BatchRuns
public import BatchSQLite

/// How an attribute's values are stored in the database.
///
///     .attribute("created", \.created, as: .iso8601)
public struct AttributeCodec<Value>: Sendable {
  /// The name of the values in errors: `Int64`, `ISO 8601 date`.
  public let typeName: String
  /// The value that a getter, which cannot throw, returns if there is none.
  public let placeholder: @Sendable () -> Value
  /// The Swift value, or nil if the stored one does not fit.
  public let decode: @Sendable (SQLValue) -> Value?
  /// The stored value.
  public let encode: @Sendable (Value) -> SQLValue
  /// How SQL can treat the stored values.
  @usableFromInline let form: AttributeForm
  /// Stored values that can all be decoded; some others may be, too.
  @usableFromInline let alwaysFit: StorageClasses
  /// All stored values that decode to a value, so that an index finds it; nil if only the codec can
  /// tell.
  ///
  /// A text also stands for texts equal to it.
  @usableFromInline let storedForms: @Sendable (Value) -> [SQLValue]?
  /// A stored value that is not NULL, from which a new table derives the column's type.
  @usableFromInline let sample: @Sendable () -> SQLValue

  /// Creates a codec from its parts.
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

  /// A codec with more known properties.
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

  /// The same codec for a nullable attribute.
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

/// How SQL can treat the stored values of an attribute.
@usableFromInline
enum AttributeForm: Sendable {
  /// They compare in SQL as the Swift values do; see ``Representation``.
  case canonical
  /// They are seconds since 1970.
  case unixSeconds
  /// Only the codec can tell.
  case other
}

/// A codec whose value type only its attribute knows.
protocol AttributeCoding: Sendable {
  var typeName: String { get }
  /// Whether a stored value can be decoded.
  func fits(_ value: SQLValue) -> Bool
  /// The placeholder in stored form.
  var storedPlaceholder: SQLValue { get }
  /// A stored value that is not NULL.
  var sample: @Sendable () -> SQLValue { get }
}

extension AttributeCodec: AttributeCoding {
  func fits(_ value: SQLValue) -> Bool { decode(value) != nil }
  var storedPlaceholder: SQLValue { encode(placeholder()) }
}
