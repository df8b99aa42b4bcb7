package import BatchIdentifiers

/// The target of changes to an entity's rows: its own table, or, for an entity of a Core Data
/// model, the table behind it, with expressions translated accordingly.
package struct WrittenEntity: Sendable {
  /// The table, with the condition that a row belongs to the entity.
  package let entity: Entity
  /// The model, and the entity there.
  private let modeled: (model: CoreDataModel, entity: CoreDataEntity)?

  /// - Throws: `BatchError` of code `unknownEntity` if the table is gone.
  package init(_ entity: Entity, in store: Store) throws(BatchError) {
    guard entity.kind == .model, let model = store.coreData,
      let modeled = model.entity(named: entity.name)
    else {
      self.entity = entity
      self.modeled = nil
      return
    }
    var table = try store.schema.entity(named: modeled.table)
    if modeled.members.count < modeled.family.count {
      table.condition = "Z_ENT IN (\(modeled.members.map { "\($0)" }.joined(separator: ", ")))"
    }
    self.entity = table
    self.modeled = (model, modeled)
  }

  /// Translates an expression over the entity's rows to the table's.
  package func expression(_ expression: SQLExpression) -> SQLExpression {
    guard let modeled = modeled?.entity else { return expression }
    let (view, table) = (SQLName.quoted(modeled.name), SQLName.quoted(modeled.table))
    return SQLExpression(
      "SELECT \(expression.sql) FROM \(view) WHERE \(view).Z_PK = \(table).Z_PK",
      at: expression.place
    )
  }

  /// Converts an attribute's value to its stored form.
  struct Conversion: Sendable {
    /// The column that stores the value.
    let source: String
    fileprivate let form: Form

    fileprivate enum Form: Sendable {
      /// A value stored in the form of its type.
      case kept(CoreDataType)
      /// The entity number of the object with a key in a table.
      case entity(inTable: String)
    }

    /// The column's new value, for a value in SQL.
    func sql(_ value: String) -> String {
      switch form {
      case .kept(let type): type.written(value)
      case .entity(let table):
        // The table may be the one being written, whose name refers to the current row.
        "SELECT o.Z_ENT FROM main.\(SQLName.quoted(table)) AS o WHERE o.Z_PK = \(value)"
      }
    }
  }

  /// The table's columns to set for an attribute, and the conversion of its value.
  private func columns(
    of attribute: Attribute
  ) -> [(column: String, conversion: Conversion?)] {
    guard let modeled, let column = modeled.entity.column(ofAttribute: attribute.name) else {
      return [(attribute.column, nil)]
    }
    let kept: (column: String, conversion: Conversion?) = (
      column.column, Conversion(source: column.column, form: .kept(column.type))
    )
    // Beside the key of an object in a hierarchy, Core Data stores its entity.
    guard let other = relatedEntity(modeled.entity, column),
      let companion = modeled.entity.entityColumn(of: column)
    else { return [kept] }
    return [
      kept, (companion, Conversion(source: column.column, form: .entity(inTable: other.table))),
    ]
  }

  /// The table's columns that change when an attribute is set.
  package func columnNames(of attribute: Attribute) -> [String] {
    columns(of: attribute).map(\.column) + [entity.versionColumn].compactMap(\.self)
  }

  /// The table's columns to set for an attribute.
  package func assignments(
    of attribute: Attribute,
    to value: SQLExpression
  ) -> [(column: String, value: SQLExpression)] {
    let value = expression(value)
    return columns(of: attribute).map { column, conversion in
      (column, conversion.map { SQLExpression($0.sql(value.sql), at: value.place) } ?? value)
    }
  }

  /// The table's columns to set for computed attributes.
  func assignments(of attributes: [Attribute]) -> [BulkChange.Assignment] {
    attributes.enumerated().flatMap { number, attribute in
      columns(of: attribute).map {
        BulkChange.Assignment(column: $0.column, number: number, conversion: $0.conversion)
      }
    }
  }

  private func relatedEntity(_ entity: CoreDataEntity, _ column: CoreDataColumn) -> CoreDataEntity?
  {
    entity.relationships.first { $0.column == column.name }
      .flatMap { modeled?.model.entity(named: $0.destination) }
  }
}
