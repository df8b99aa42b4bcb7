/// A class whose objects are rows: it says which table and columns its properties are kept in.
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
  /// The value of a property that the mapping registers; for the property's own accessors.
  ///
  /// A fault loads. Where that fails, the value is the placeholder of the property's codec, and the
  /// next throwing call of the context throws the reason. So it does where a value cannot be set.
  ///
  /// - Precondition: The mapping registers the property.
  @inlinable
  public subscript<Value>(_ property: KeyPath<Self, Value>) -> Value {
    get {
      let access = access(to: property)
      return access.codec.decode(value(of: access)) ?? access.codec.placeholder()
    }
    set {
      let access = access(to: property)
      set(access.codec.encode(newValue), of: access)
    }
  }

  /// The attribute of a property, and how it is kept.
  static func attribute<Value>(
    of property: KeyPath<Self, Value>
  ) -> (MappedAttribute, AttributeCodec<Value>) {
    guard let mapped = mapping.attributes[property],
      let codec = mapped.codec as? AttributeCodec<Value>
    else {
      preconditionFailure("\(self).mapping does not register \(property.nameForMessage)")
    }
    return (mapped, codec)
  }
}
