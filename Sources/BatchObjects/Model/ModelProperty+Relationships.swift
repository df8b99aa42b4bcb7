extension ModelProperty {
  /// A relationship to at most one object.
  ///
  ///     .toOne("customer", \.customer, column: "customer_id", inverse: "orders")
  ///
  /// - Parameters:
  ///   - name: The name of the relationship.
  ///   - property: The property; its accessors use `self[\.property]`.
  ///   - column: The column that holds the other object's key; nil if the other object's table has
  ///     the column, and `inverse` is the relationship there.
  ///   - inverse: The inverse relationship, which is kept in step automatically.
  ///   - rule: What happens to the other object when this one is deleted.
  /// - Returns: The property, for a mapping's list.
  public static func toOne<Destination: PersistentModel>(
    _ name: String,
    _ property: any KeyPath<Model, Destination?> & Sendable,
    column: String? = nil,
    inverse: String? = nil,
    onDelete rule: DeleteRule = .nullify
  ) -> ModelProperty {
    relationship(
      name,
      property,
      MappedRelationship(
        name: name,
        keyPath: property,
        destination: Destination.self,
        storage: column.map { .column($0) } ?? .inverse,
        isToMany: false,
        inverse: inverse,
        deleteRule: rule
      )
    )
  }

  /// Declares a relationship to any number of objects, whose rows have the key of this one.
  ///
  /// - Parameters:
  ///   - name: The name of the relationship.
  ///   - property: The key path of the property; its accessors use `self[\.property]`.
  ///   - inverse: The inverse relationship, which determines the column.
  ///   - rule: What happens to the other objects when this one is deleted.
  /// - Returns: An element of the mapping's list of properties.
  public static func toMany<Destination: PersistentModel>(
    _ name: String,
    _ property: any KeyPath<Model, [Destination]> & Sendable,
    inverse: String,
    onDelete rule: DeleteRule = .nullify
  ) -> ModelProperty {
    relationship(
      name,
      property,
      MappedRelationship(
        name: name,
        keyPath: property,
        destination: Destination.self,
        storage: .inverse,
        isToMany: true,
        inverse: inverse,
        deleteRule: rule
      )
    )
  }

  /// A many-to-many relationship, in a separate table.
  ///
  ///     .toMany("tags", \.tags, through: "order_tags", from: "order_id", to: "tag_id")
  ///
  /// - Parameters:
  ///   - name: The name of the relationship.
  ///   - property: The property; its accessors use `self[\.property]`.
  ///   - table: The table, with the keys of both sides.
  ///   - source: The column of this side's key; nil to take it from the table's foreign keys.
  ///   - target: The column of the other side's key; nil likewise.
  ///   - rule: What happens to the other objects when this one is deleted; its pairs are always
  ///     deleted.
  /// - Returns: The property, for a mapping's list.
  public static func toMany<Destination: PersistentModel>(
    _ name: String,
    _ property: any KeyPath<Model, [Destination]> & Sendable,
    through table: String,
    from source: String? = nil,
    to target: String? = nil,
    onDelete rule: DeleteRule = .nullify
  ) -> ModelProperty {
    relationship(
      name,
      property,
      MappedRelationship(
        name: name,
        keyPath: property,
        destination: Destination.self,
        storage: .table(table, source: source, target: target),
        isToMany: true,
        inverse: nil,
        deleteRule: rule
      )
    )
  }

  private static func relationship(
    _ name: String,
    _ keyPath: any AnyKeyPath & Sendable,
    _ relationship: MappedRelationship
  ) -> ModelProperty {
    ModelProperty(name: name, keyPath: keyPath, attribute: nil, relationship: relationship)
  }
}

struct MappedRelationship: Sendable {
  enum Storage: Sendable {
    /// In a column of the object's own table.
    case column(String)
    /// In a column of the other object's table: that of the inverse.
    case inverse
    case table(String, source: String?, target: String?)
    /// As the other side declares, or else in a column or table of this name; see
    /// `RelationshipInference`.
    case inferred(String)
  }

  let name: String
  let keyPath: any AnyKeyPath & Sendable
  /// The other class; its mapping must not be read before all classes are known.
  let destination: any PersistentModel.Type
  let storage: Storage
  let isToMany: Bool
  let inverse: String?
  let deleteRule: DeleteRule

  var column: String? { if case .column(let column) = storage { column } else { nil } }
}
