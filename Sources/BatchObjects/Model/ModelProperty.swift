import BatchRuns
import BatchSQLite

/// A property of a class and its column.
public struct ModelProperty<Model: PersistentModel>: Sendable {
  let name: String
  let keyPath: any AnyKeyPath & Sendable
  /// The attribute, if the property is one; an inherited one is the extended mapping's.
  var attribute: MappedAttribute?
  /// The relationship, if the property is one.
  var relationship: MappedRelationship?
  /// The properties declared unique, if this is such a declaration.
  var unique: [String]?
  /// The indexed properties, if this is such a declaration.
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

  /// A nullable property with a codec.
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

  /// A nullable property of such a type.
  @inlinable
  public static func attribute<Value: AttributeValue>(
    _ name: String,
    _ property: any KeyPath<Model, Value?> & Sendable,
    column: String? = nil
  ) -> ModelProperty {
    attribute(name, property, column: column, as: Value.codec.optional)
  }

  /// A property of a superclass, under its key path in this class, for predicates and orders.
  ///
  /// - Precondition: The extended mapping has an attribute with the name.
  public static func inherited<Value>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable
  ) -> ModelProperty {
    ModelProperty(name: name, keyPath: property, attribute: nil)
  }
}

/// An attribute as declared in a mapping.
struct MappedAttribute: Sendable {
  let name: String
  let column: String
  let codec: any AttributeCoding
  /// Stored values that can certainly be decoded.
  let alwaysFit: StorageClasses
  /// Whether the column counts the row's updates.
  var isVersion = false
  /// Whether the history keeps the value when the row is deleted.
  var isPreserved = false
  /// The value of a new object until it is set; nil for the table's default.
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
