import BatchRuns
import BatchSQLite

/// A property of a class and its column.
public struct ModelProperty<Model: PersistentModel>: Sendable {
  let name: String
  let keyPath: any AnyKeyPath & Sendable
  /// Nil unless the property is an attribute; an inherited one belongs to the extended mapping.
  var attribute: MappedAttribute?
  /// Nil unless the property is a relationship.
  var relationship: MappedRelationship?
  var unique: [String]?
  var index: [String]?

  /// Declares a property with a codec.
  public static func attribute<Value>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable,
    column: String? = nil,
    as codec: AttributeCodec<Value>
  ) -> ModelProperty {
    let attribute = MappedAttribute(name: name, column: column ?? name, codec)
    return ModelProperty(name: name, keyPath: property, attribute: attribute)
  }

  /// Declares a nullable property with a codec.
  @inlinable
  public static func attribute<Value>(
    _ name: String,
    _ property: any KeyPath<Model, Value?> & Sendable,
    column: String? = nil,
    as codec: AttributeCodec<Value>
  ) -> ModelProperty {
    attribute(name, property, column: column, as: codec.optional)
  }

  /// Declares a property of a type with one obvious stored form.
  @inlinable
  public static func attribute<Value: AttributeValue>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable,
    column: String? = nil
  ) -> ModelProperty {
    attribute(name, property, column: column, as: Value.codec)
  }

  /// Declares a nullable property of a type with one obvious stored form.
  @inlinable
  public static func attribute<Value: AttributeValue>(
    _ name: String,
    _ property: any KeyPath<Model, Value?> & Sendable,
    column: String? = nil
  ) -> ModelProperty {
    attribute(name, property, column: column, as: Value.codec.optional)
  }

  /// Declares a property of a superclass again, with its key path in this class, for predicates and
  /// orders.
  ///
  /// - Precondition: The extended mapping has an attribute with the name.
  public static func inherited<Value>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable
  ) -> ModelProperty {
    ModelProperty(name: name, keyPath: property, attribute: nil)
  }
}

struct MappedAttribute: Sendable {
  let name: String
  let column: String
  let codec: any AttributeCoding
  /// The storage classes whose values can certainly be decoded.
  let alwaysFit: StorageClasses
  var isVersion = false
  /// Whether the history keeps the value when the row is deleted.
  var isPreserved = false
  /// Makes the value of a new object until it is set; nil for the default of the table.
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
