package import BatchIdentifiers

/// Where a change of an entity's rows is written: in its own table, or, of an entity of Core Data's model, in
/// the table behind it, with what was said of the entity said of that table's rows.
package struct WrittenEntity: Sendable {
  /// The table, with the condition that a row of it is one of the entity's.
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

  /// An expression over a row of the entity, as one over the row of the table.
  package func expression(_ expression: SQLExpression) -> SQLExpression {
    guard let modeled = modeled?.entity else { return expression }
    let (view, table) = (SQLName.quoted(modeled.name), SQLName.quoted(modeled.table))
    return SQLExpression(
      "SELECT \(expression.sql) FROM \(view) WHERE \(view).Z_PK = \(table).Z_PK",
      at: expression.place
    )
  }

  /// The columns of the table that are set where an attribute of the entity is.
  package func assignments(
    of attribute: Attribute,
    to value: SQLExpression
  ) -> [(column: String, value: SQLExpression)] {
    guard let modeled, let column = modeled.entity.column(ofAttribute: attribute.name) else {
      return [(attribute.column, value)]
    }
    let value = expression(value)
    let written = SQLExpression(column.type.written(value.sql), at: value.place)
    // Of an object of a hierarchy Core Data keeps which entity it is of, beside its key.
    guard let other = relatedEntity(modeled.entity, column),
      let companion = modeled.entity.entityColumn(of: column)
    else { return [(column.column, written)] }
    let table = SQLName.quoted(other.table)
    let number = SQLExpression("SELECT Z_ENT FROM main.\(table) WHERE Z_PK = \(value.sql)")
    return [(column.column, written), (companion, number)]
  }

  private func relatedEntity(_ entity: CoreDataEntity, _ column: CoreDataColumn) -> CoreDataEntity?
  {
    entity.relationships.first { $0.column == column.name }
      .flatMap { modeled?.model.entity(named: $0.destination) }
  }
}
