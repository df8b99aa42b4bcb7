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

  /// What is made of the value of an attribute, where a column does not keep it as it is.
  struct Conversion: Sendable {
    /// The column that keeps the value.
    let source: String
    fileprivate let form: Form

    fileprivate enum Form: Sendable {
      /// The value as it is kept of its type.
      case kept(CoreDataType)
      /// The number of the entity that the object of a key in some table is of.
      case entity(inTable: String)
    }

    /// What the column is set to, for a value in SQL.
    func sql(_ value: String) -> String {
      switch form {
      case .kept(let type): type.written(value)
      case .entity(let table):
        // The table may be the one that is written, under whose own name the value has its row.
        "SELECT o.Z_ENT FROM main.\(SQLName.quoted(table)) AS o WHERE o.Z_PK = \(value)"
      }
    }
  }

  /// The columns of the table that are set where an attribute of the entity is, and what is made of its
  /// value there.
  private func columns(
    of attribute: Attribute
  ) -> [(column: String, conversion: Conversion?)] {
    guard let modeled, let column = modeled.entity.column(ofAttribute: attribute.name) else {
      return [(attribute.column, nil)]
    }
    let kept: (column: String, conversion: Conversion?) = (
      column.column, Conversion(source: column.column, form: .kept(column.type))
    )
    // Of an object of a hierarchy Core Data keeps which entity it is of, beside its key.
    guard let other = relatedEntity(modeled.entity, column),
      let companion = modeled.entity.entityColumn(of: column)
    else { return [kept] }
    return [
      kept, (companion, Conversion(source: column.column, form: .entity(inTable: other.table))),
    ]
  }

  /// The columns of the table that change where an attribute of the entity is set.
  package func columnNames(of attribute: Attribute) -> [String] {
    columns(of: attribute).map(\.column) + [entity.versionColumn].compactMap(\.self)
  }

  /// The columns of the table that are set where an attribute of the entity is.
  package func assignments(
    of attribute: Attribute,
    to value: SQLExpression
  ) -> [(column: String, value: SQLExpression)] {
    let value = expression(value)
    return columns(of: attribute).map { column, conversion in
      (column, conversion.map { SQLExpression($0.sql(value.sql), at: value.place) } ?? value)
    }
  }

  /// The columns of the table that are set where values of attributes are computed.
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
