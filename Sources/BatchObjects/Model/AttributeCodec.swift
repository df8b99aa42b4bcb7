public import BatchRuns
public import BatchSQLite

/// How an attribute's values are stored in the database.
///
///     .attribute("created", \.created, as: .iso8601)
public struct AttributeCodec<Value>: Sendable {
  /// The name of the values in errors: `Int64`, `ISO 8601 date`.
  public let typeName: String
  /// The value that a getter returns if none can be read, since it cannot throw.
  public let placeholder: @Sendable () -> Value
  /// Decodes a stored value; returns nil if it does not fit.
  public let decode: @Sendable (SQLValue) -> Value?
  /// Encodes a value for the database.
  public let encode: @Sendable (Value) -> SQLValue
  @usableFromInline let form: AttributeForm
  /// The storage classes whose values can all be decoded; values of others may be decodable too.
  @usableFromInline let alwaysFit: StorageClasses
  /// All stored values that decode to a value, so that an index can find them; nil if only the
  /// codec knows.
  ///
  /// A text also stands for texts equal to it.
  @usableFromInline let storedForms: @Sendable (Value) -> [SQLValue]?
  /// A stored value that is not NULL; a new table derives the type of the column from it.
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

  /// The codec for a nullable attribute.
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

/// How SQL can compare the stored values of an attribute.
@usableFromInline
enum AttributeForm: Sendable {
  /// As the Swift values compare; see ``Representation``.
  case canonical
  /// As seconds since 1970.
  case unixSeconds
  /// Only the codec knows.
  case other
}

protocol AttributeCoding: Sendable {
  var typeName: String { get }
  func fits(_ value: SQLValue) -> Bool
  var storedPlaceholder: SQLValue { get }
  var sample: @Sendable () -> SQLValue { get }
}

extension AttributeCodec: AttributeCoding {
  func fits(_ value: SQLValue) -> Bool { decode(value) != nil }
  var storedPlaceholder: SQLValue { encode(placeholder()) }
}
