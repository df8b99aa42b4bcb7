public import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// Some properties of a row, without an object: Core Data's dictionary results.
public struct FetchedProperties<Model: PersistentModel> {
  /// The stored values of attributes, by name.
  public let values: [String: SQLValue]
  /// The identifiers of related objects, by the names of to-one relationships.
  public let identifiers: [String: PersistentIdentifier]

  /// Returns the value of an attribute.
  ///
  /// - Throws: `BatchError` with code `unknownAttribute` for a property that was not fetched or is
  ///   not an attribute, `valueMismatch` for a stored value that does not have the type of the
  ///   attribute.
  public func value<Value>(of property: KeyPath<Model, Value>) throws(BatchError) -> Value {
    let mapping = Model.mapping
    guard let attribute = mapping.attributes[property],
      let codec = attribute.codec as? AttributeCodec<Value>, let stored = values[attribute.name]
    else {
      throw BatchError(
        .unknownAttribute,
        "\(property.nameForMessage) was not fetched",
        at: mapping.entityName,
        remedy: "add it to propertiesToFetch"
      )
    }
    if let value = codec.decode(stored) { return value }
    throw BatchError(
      .valueMismatch,
      "attribute \(attribute.name.quotedForMessage) is declared \(codec.typeName),"
        + " and a row has \(stored.className)",
      at: mapping.entityName
    )
  }
}

extension ModelContext {
  /// Fetches the `propertiesToFetch` of the rows that a descriptor describes, or all attributes.
  ///
  /// Unsaved changes do not count, as in Core Data.
  ///
  /// - Parameters:
  ///   - descriptor: The rows, their order, and the properties.
  ///   - distinct: Whether rows with the same stored values count once, with texts compared byte by
  ///     byte; only the descriptor then sorts them.
  /// - Returns: The properties, for each row.
  /// - Throws: An error of `fetch(_:)`, or `unknownAttribute` for a property that is neither an
  ///   attribute nor a relationship stored in the row.
  /// - Complexity: One statement.
  public func fetchProperties<Model: PersistentModel>(
    _ descriptor: FetchDescriptor<Model>,
    distinct: Bool = false
  ) throws(BatchError) -> [FetchedProperties<Model>] {
    try read(Model.self) { entity, connection throws(BatchError) in
      let columns = try columns(of: descriptor, entity)
      let query = try descriptor.query(of: entity, in: container)
      let names = columns.map { SQLName.quoted($0.column) }
      let statement =
        distinct
        ? try query.selectDistinct(names, in: connection)
        : try query.select(names, in: connection)
      var rows: [FetchedProperties<Model>] = []
      while try statement.step() {
        var values: [String: SQLValue] = [:]
        var identifiers: [String: PersistentIdentifier] = [:]
        for (index, column) in columns.enumerated() {
          if let destination = column.destination {
            if statement.isNull(at: index) { continue }
            identifiers[column.name] = try destination.identifier(
              referredToBy: statement.value(at: index),
              in: connection
            )
          } else {
            values[column.name] = statement.value(at: index)
          }
        }
        rows.append(FetchedProperties(values: values, identifiers: identifiers))
      }
      return rows
    }
  }

  private func columns<Model: PersistentModel>(
    of descriptor: FetchDescriptor<Model>,
    _ entity: ModelEntity
  ) throws(BatchError) -> [(name: String, column: String, destination: ModelEntity?)] {
    let mapping = Model.mapping
    if descriptor.propertiesToFetch.isEmpty {
      return mapping.attributeList.map { ($0.name, $0.column, nil) }
    }
    return try descriptor.propertiesToFetch.map { property throws(BatchError) in
      if let attribute = mapping.attributes[property] {
        return (attribute.name, attribute.column, nil)
      }
      let relationships = container.relationships[entity.store].of(entity)
      if let name = mapping.attributes.relationship(property)?.name,
        let relationship = relationships[name], case .column(let slot) = relationship.storage
      {
        return (name, entity.columns[slot], relationship.destination)
      }
      throw BatchError(
        .unknownAttribute,
        "\(property.nameForMessage) is neither an attribute nor a relationship stored in the row",
        at: mapping.entityName
      )
    }
  }
}
