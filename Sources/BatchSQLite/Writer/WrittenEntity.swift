package import BatchIdentifiers

/// The table behind an entity whose rows change: the entity's own table, or the table that stores
/// an entity of a Core Data model.
///
/// Expressions are translated accordingly.
package struct WrittenEntity: Sendable {
  /// The table, with the condition that a row belongs to the entity.
  package let entity: Entity
  private let modeled: (model: CoreDataModel, entity: CoreDataEntity)?

  /// - Throws: `BatchError` of code `unknownEntity` if the table does not exist.
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

  /// Translates an expression over the entity's rows to one over the table's.
  package func expression(_ expression: SQLExpression) -> SQLExpression {
    guard let modeled = modeled?.entity else { return expression }
    let (view, table) = (SQLName.quoted(modeled.name), SQLName.quoted(modeled.table))
    return SQLExpression(
      "SELECT \(expression.sql) FROM \(view) WHERE \(view).Z_PK = \(table).Z_PK",
      at: expression.place
    )
  }

  struct Conversion: Sendable {
    let source: String
    fileprivate let form: Form

    fileprivate enum Form: Sendable {
      case kept(CoreDataType)
      /// The entity number of the object whose key is the value.
      case entity(inTable: String)
    }

    /// The SQL of the column's new value, given the SQL of the attribute's value.
    func sql(_ value: String) -> String {
      switch form {
      case .kept(let type): type.written(value)
      case .entity(let table):
        // The table may be the one being written, whose name would refer to the current row.
        "SELECT o.Z_ENT FROM main.\(SQLName.quoted(table)) AS o WHERE o.Z_PK = \(value)"
      }
    }
  }

  private func columns(
    of attribute: Attribute
  ) -> [(column: String, conversion: Conversion?)] {
    guard let modeled, let column = modeled.entity.column(ofAttribute: attribute.name) else {
      return [(attribute.column, nil)]
    }
    let kept: (column: String, conversion: Conversion?) = (
      column.column, Conversion(source: column.column, form: .kept(column.type))
    )
    // In a hierarchy, Core Data stores the entity of a related object beside its key.
    guard let other = relatedEntity(modeled.entity, column),
      let companion = modeled.entity.entityColumn(of: column)
    else { return [kept] }
    return [
      kept, (companion, Conversion(source: column.column, form: .entity(inTable: other.table))),
    ]
  }

  package func assignments(
    of attribute: Attribute,
    to value: SQLExpression
  ) -> [(column: String, value: SQLExpression)] {
    let value = expression(value)
    return columns(of: attribute).map { column, conversion in
      (column, conversion.map { SQLExpression($0.sql(value.sql), at: value.place) } ?? value)
    }
  }

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
