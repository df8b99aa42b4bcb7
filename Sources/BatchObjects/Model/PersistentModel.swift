import BatchIdentifiers

/// A class whose objects are rows of a table, with a column per property.
///
///     final class Order: ManagedObject, PersistentModel {
///       static let mapping = ModelMapping(
///         Order.self, entity: "Order", table: "orders",
///         properties: [.attribute("price", \.price, column: "price_cents")])
///
///       var price: Int { self[\.price] }
///     }
public protocol PersistentModel: ManagedObject, SendableMetatype {
  /// The table, and the column of each property.
  static var mapping: ModelMapping { get }
}

extension PersistentModel {
  /// The value of a property that the mapping registers, for the accessors of the property.
  ///
  /// A fault is loaded. If that fails, the value is the placeholder of the property's codec, and
  /// the context's next throwing call throws the reason; likewise if a value cannot be set.
  ///
  /// - Precondition: The mapping registers the property.
  /// - Parameters:
  ///   - property: The key path of the property.
  ///   - accessor: The accessor, for the message if the mapping does not register the property.
  @inlinable
  public subscript<Value>(
    _ property: KeyPath<Self, Value>,
    accessor: StaticString = #function
  ) -> Value {
    get {
      let access = access(to: property, accessor)
      return access.codec.decode(value(of: access)) ?? access.codec.placeholder()
    }
    set {
      let access = access(to: property, accessor)
      set(access.codec.encode(newValue), of: access)
    }
  }

  static func attribute<Value>(
    of property: KeyPath<Self, Value>,
    accessor: StaticString? = nil
  ) -> (MappedAttribute, AttributeCodec<Value>) {
    guard let mapped = mapping.attributes[property],
      let codec = mapped.codec as? AttributeCodec<Value>
    else { unregistered(property, accessor, "attribute") }
    return (mapped, codec)
  }

  /// A property that the mapping does not register is a mistake in the program.
  static func unregistered(
    _ property: AnyKeyPath,
    _ accessor: StaticString?,
    _ factory: String
  ) -> Never {
    // Only the accessor knows the name of a computed property.
    let isProperty = accessor.map { !"\($0)".contains("(") } ?? false
    let name = isProperty ? accessor.map { "property \("\($0)".quotedForMessage)" } : nil
    let text = accessor.map { "\($0)" } ?? "name"
    fatalError(
      "\(self).mapping does not register \(name ?? property.nameForMessage): add"
        + " .\(factory)(\"\(isProperty ? text : "name")\", …) to its properties"
    )
  }
}
