import BatchStore

/// A property of a class and its column.
public struct ModelProperty<Model: PersistentModel>: Sendable {
  let name: String
  let keyPath: any AnyKeyPath & Sendable
  /// The attribute, if the property is one; an inherited one is that of the extended mapping.
  var attribute: MappedAttribute?
  /// The relationship, if the property is one.
  var relationship: MappedRelationship?
  /// The properties of which no two objects have the same values, if that is what this says.
  var unique: [String]?
  /// The properties that an index is over, if that is what this says.
  var index: [String]?

  /// A property with a codec.
  public static func attribute<Value>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable,
    column: String? = nil,
    as codec: AttributeCodec<Value>
  ) -> ModelProperty {
    let attribute = MappedAttribute(name: name, column: column ?? name, codec)
    return ModelProperty(name: name, keyPath: property, attribute: attribute)
  }

  /// A property that may be NULL, with a codec.
  @inlinable
  public static func attribute<Value>(
    _ name: String,
    _ property: any KeyPath<Model, Value?> & Sendable,
    column: String? = nil,
    as codec: AttributeCodec<Value>
  ) -> ModelProperty {
    attribute(name, property, column: column, as: codec.optional)
  }

  /// A property of a type with one obvious form.
  @inlinable
  public static func attribute<Value: AttributeValue>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable,
    column: String? = nil
  ) -> ModelProperty {
    attribute(name, property, column: column, as: Value.codec)
  }

  /// A property of such a type that may be NULL.
  @inlinable
  public static func attribute<Value: AttributeValue>(
    _ name: String,
    _ property: any KeyPath<Model, Value?> & Sendable,
    column: String? = nil
  ) -> ModelProperty {
    attribute(name, property, column: column, as: Value.codec.optional)
  }

  /// A property of a superclass, under the key path that it has in this class, for predicates and
  /// orders.
  ///
  /// - Precondition: The mapping that is extended has an attribute of the name.
  public static func inherited<Value>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable
  ) -> ModelProperty {
    ModelProperty(name: name, keyPath: property, attribute: nil)
  }
}

/// An attribute as a mapping names it.
struct MappedAttribute: Sendable {
  let name: String
  let column: String
  let codec: any AttributeCoding
  /// Stored values that can be decoded for sure.
  let alwaysFit: StorageClasses
  /// Whether the column counts the updates of the row.
  var isVersion = false
  /// Whether the history keeps the value when the row is deleted.
  var isPreserved = false
  /// What an object has that was made and not set yet; nil if that is for the table to say.
  var makeDefault: (@Sendable () -> SQLValue)?

  init<Value>(
    name: String,
    column: String,
    _ codec: AttributeCodec<Value>,
    isVersion: Bool = false
  ) {
    self.name = name
    self.column = column
    self.codec = codec
    alwaysFit = codec.alwaysFit
    self.isVersion = isVersion
  }
}
