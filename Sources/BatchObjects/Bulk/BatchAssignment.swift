import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// An assignment of a batch request to one column.
public struct BatchAssignment<Model: PersistentModel> {
  enum Value {
    case constant(SQLValue)
    case expression(SQLExpression)
  }

  private enum Target {
    /// A property, and the value for its attribute; nil if the value does not have the right type.
    case attribute(PartialKeyPath<Model>, (MappedAttribute) -> Value?)
    case related(PartialKeyPath<Model>, PersistentIdentifier?)
    case relationship(String, PersistentIdentifier?)
  }

  private let target: Target

  /// Sets a property to a value.
  public static func set<Property>(
    _ property: KeyPath<Model, Property>,
    to value: Property
  ) -> BatchAssignment {
    BatchAssignment(
      target: .attribute(property) { attribute in
        (attribute.codec as? AttributeCodec<Property>).map { .constant($0.encode(value)) }
      }
    )
  }

  /// Sets a property to an SQL expression over the old row, such as `price_cents + 100`.
  ///
  /// The result is not checked against the type of the property.
  public static func set<Property>(
    _ property: KeyPath<Model, Property>,
    toSQL expression: String
  ) -> BatchAssignment {
    BatchAssignment(target: .attribute(property) { _ in .expression(SQLExpression(expression)) })
  }

  /// Relates each row to an object, or to none, by a to-one relationship with a column in the row's
  /// table.
  ///
  /// The object must have been saved.
  public static func set<Destination: ManagedObject>(
    _ relationship: KeyPath<Model, Destination?>,
    to object: Destination?
  ) -> BatchAssignment {
    BatchAssignment(target: .related(relationship, object?.persistentModelID))
  }

  /// Relates each row to the object with an identifier.
  public static func set<Destination: ManagedObject>(
    _ relationship: KeyPath<Model, Destination?>,
    to identifier: PersistentIdentifier
  ) -> BatchAssignment {
    BatchAssignment(target: .related(relationship, identifier))
  }

  /// Relates each row to the object with an identifier, or to none, by a relationship that a class
  /// declares or a foreign key implies.
  public static func set(
    relationship name: String,
    to identifier: PersistentIdentifier?
  ) -> BatchAssignment {
    BatchAssignment(target: .relationship(name, identifier))
  }

  /// Resolves the assignment to a column and its new value.
  ///
  /// - Parameters:
  ///   - entity: The entity whose rows are written.
  ///   - container: The container of the entity.
  ///   - connection: A connection to check that a referenced object exists; nil to leave this to
  ///     foreign keys.
  /// - Returns: The attribute or relationship, its column, and the value to write.
  /// - Throws: `BatchError` with code `unknownAttribute` for a property that is not registered;
  ///   `unknownRelationship`; `valueMismatch` for a constant that the column cannot keep;
  ///   `immutableAttribute` for a relationship without a column in the row's table;
  ///   `foreignIdentifier`, `modelTypeMismatch` or `objectNotFound` for the referenced object.
  func resolved(
    for entity: ModelEntity,
    in container: ModelContainer,
    lookingUpIn connection: Connection?
  ) throws(BatchError) -> (name: String, column: String, value: Value) {
    switch target {
    case .attribute(let property, let value):
      let attribute = try attribute(property, value)
      return (attribute.0.name, attribute.0.column, attribute.1)
    case .related(let property, let identifier):
      guard let declared = Model.mapping.attributes.relationship(property) else {
        throw Model.mapping.unregistered(property)
      }
      return try related(declared.name, identifier, entity, container, connection)
    case .relationship(let name, let identifier):
      return try related(name, identifier, entity, container, connection)
    }
  }

  private func attribute(
    _ property: PartialKeyPath<Model>,
    _ value: (MappedAttribute) -> Value?
  ) throws(BatchError) -> (MappedAttribute, Value) {
    let mapping = Model.mapping
    guard let attribute = mapping.attributes[property], let value = value(attribute) else {
      throw mapping.unregistered(property)
    }
    if case .constant(let constant) = value, constant.isNaN || !attribute.codec.fits(constant) {
      throw mapping.misfit(attribute)
    }
    return (attribute, value)
  }

  private func related(
    _ name: String,
    _ identifier: PersistentIdentifier?,
    _ entity: ModelEntity,
    _ container: ModelContainer,
    _ connection: Connection?
  ) throws(BatchError) -> (name: String, column: String, value: Value) {
    let relationships = container.relationships[entity.store].of(entity)
    guard let relationship = relationships[name] else {
      throw BatchError(
        .unknownRelationship,
        "entity \(entity.entity.name.quotedForMessage) has no relationship \(name.quotedForMessage)",
        remedy: remedyForUnknownName(
          name,
          among: relationships.keys.sorted(),
          kind: "relationships"
        )
      )
    }
    guard case .column(let slot) = relationship.storage else {
      throw BatchError(
        .immutableAttribute,
        "relationship \(name.quotedForMessage) cannot be set by a batch request: it has no column in"
          + " table \(entity.entity.table.quotedForMessage)",
        at: entity.entity.name,
        remedy: "set the other side of it"
      )
    }
    guard let identifier else { return (name, entity.columns[slot], .constant(.null)) }
    guard let key = identifier.key?.components.first else { throw .notFound(identifier) }
    let destination = try container.resolve(identifier)
    guard relationship.destination.includes(destination) else {
      throw BatchError(
        .modelTypeMismatch,
        "relationship \(name.quotedForMessage) is to objects of entity"
          + " \(relationship.destination.entity.name.quotedForMessage)",
        at: identifier.description
      )
    }
    if let connection, try destination.row(of: identifier, in: connection) == nil {
      throw .notFound(identifier)
    }
    return (name, entity.columns[slot], .constant(SQLValue(key)))
  }
}

extension ModelMapping {
  func unregistered(_ property: AnyKeyPath) -> BatchError {
    BatchError(
      .unknownAttribute,
      "\(type).mapping registers no attribute for \(property.nameForMessage)",
      at: entityName,
      remedy: "register it; a property of a superclass as .inherited(name, keyPath)"
    )
  }

  func misfit(_ attribute: MappedAttribute) -> BatchError {
    BatchError(
      .valueMismatch,
      "the value for attribute \(attribute.name.quotedForMessage) cannot be kept as"
        + " \(attribute.codec.typeName)",
      at: entityName,
      remedy: "a database cannot store NaN or a value that cannot be encoded"
    )
  }
}
