import BatchIdentifiers
import BatchStore

/// What a batch request does to one column.
public struct BatchAssignment<Model: PersistentModel> {
  enum Value {
    case constant(SQLValue)
    case expression(SQLExpression)
  }

  let property: PartialKeyPath<Model>
  /// The value for an attribute; nil if it is not of the attribute's type.
  let value: (MappedAttribute) -> Value?

  /// Sets a property to a value.
  public static func set<Property>(
    _ property: KeyPath<Model, Property>,
    to value: Property
  ) -> BatchAssignment {
    BatchAssignment(property: property) { attribute in
      (attribute.codec as? AttributeCodec<Property>).map { .constant($0.encode(value)) }
    }
  }

  /// Sets a property to what an SQL expression makes of the row as it was, `price_cents + 100` for
  /// example.
  ///
  /// Nothing holds the result to the property's type.
  public static func set<Property>(
    _ property: KeyPath<Model, Property>,
    toSQL expression: String
  ) -> BatchAssignment {
    BatchAssignment(property: property) { _ in .expression(SQLExpression(expression)) }
  }

  /// The column, and what it is set to.
  ///
  /// - Throws: `BatchError` with code `unknownAttribute` for a property that is not registered as an
  ///   attribute, `valueMismatch` for a constant that its column cannot keep.
  func resolved() throws(BatchError) -> (attribute: MappedAttribute, value: Value) {
    let mapping = Model.mapping
    if let attribute = mapping.attributes[property], let value = value(attribute) {
      if case .constant(let constant) = value, constant.isNaN || !attribute.codec.fits(constant) {
        throw BatchError(
          .valueMismatch,
          "the value for attribute \(attribute.name.quotedForMessage) cannot be kept as"
            + " \(attribute.codec.typeName)",
          at: mapping.entityName,
          remedy: "NaN and what cannot be encoded have no form in a database"
        )
      }
      return (attribute, value)
    }
    throw BatchError(
      .unknownAttribute,
      "\(mapping.type).mapping registers no attribute for \(property.nameForMessage)",
      at: mapping.entityName
    )
  }
}
