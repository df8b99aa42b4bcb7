import BatchSQLite

struct RelationshipFinder {
  let entities: [String: ModelEntity]
  let tables: [Entity]
  let mappings: [ModelMapping]

  func relationships() -> [(entity: String, relationship: Relationship)] {
    var found: [(String, Relationship)] = []
    for table in tables where table.kind == .table {
      if let (one, other) = joinKeys(of: table) {
        found += join(one, other, table)
        found += join(other, one, table)
      } else {
        for key in table.foreignKeys { found += relationships(of: key, table) }
      }
    }
    return found
  }

  /// The two foreign keys of a table that has no other columns except its own key.
  private func joinKeys(of table: Entity) -> (ForeignKey, ForeignKey)? {
    guard table.foreignKeys.count == 2, !isClaimed(table.table) else { return nil }
    let keys = table.foreignKeys.filter { refers($0) != nil }
    let joined = keys.map(\.column) + (table.key?.isRowID == true ? table.key?.columns ?? [] : [])
    guard keys.count == 2, keys[0].column != keys[1].column,
      table.attributes.allSatisfy({ attribute in
        joined.contains { SQLName.equal($0, attribute.column) }
      })
    else { return nil }
    return (keys[0], keys[1])
  }

  private func join(
    _ source: ForeignKey,
    _ target: ForeignKey,
    _ table: Entity
  ) -> [(String, Relationship)] {
    guard let destination = refers(target) else { return [] }
    // If only one table joins two tables, their relationships can be named after each other.
    let isAmbiguous =
      SQLName.equal(source.table, target.table)
      || tables.count { other in
        joinKeys(of: other).map { [$0.table, $1.table].contains(target.table) } ?? false
          && joinKeys(of: other).map { [$0.table, $1.table].contains(source.table) } ?? false
      } > 1
    let join = JoinTable(table: table.table, source: source.column, target: target.column)
    let relationship = Relationship(
      name: isAmbiguous
        ? "\(table.name)_\(Self.name(of: target.column))" : destination.entity.name,
      destination: destination,
      storage: .table(join),
      isToMany: true,
      deleteRule: .nullify
    )
    return classes(of: source.table).map { ($0.entity.name, relationship) }
  }

  private func relationships(of key: ForeignKey, _ table: Entity) -> [(String, Relationship)] {
    guard let destination = refers(key), let source = root(of: table.table),
      let slot = source.slot(ofColumn: key.column)
    else { return [] }
    let name = Self.name(of: key.column)
    let toOne = Relationship(
      name: name,
      destination: destination,
      storage: .column(slot: slot),
      isToMany: false,
      deleteRule: .noAction
    )
    let isAmbiguous = table.foreignKeys.count { SQLName.equal($0.table, key.table) } > 1
    let toMany = Relationship(
      name: isAmbiguous ? "\(source.entity.name)_\(name)" : source.entity.name,
      destination: source,
      storage: .inverse(slot: slot),
      isToMany: true,
      deleteRule: Self.rule(of: key)
    )
    return classes(of: table.table).map { ($0.entity.name, toOne) }
      + classes(of: key.table).map { ($0.entity.name, toMany) }
  }

  /// The topmost entity of the table that a foreign key refers to; nil unless it refers to the key.
  private func refers(_ key: ForeignKey) -> ModelEntity? {
    guard let entity = root(of: key.table), let columns = entity.entity.key?.columns,
      columns.count == 1, SQLName.equal(key.target ?? columns[0], columns[0])
    else { return nil }
    return entity
  }

  private func isClaimed(_ table: String) -> Bool {
    mappings.contains { SQLName.equal($0.table, table) }
  }

  private func classes(of table: String) -> [ModelEntity] {
    entities.values.filter { SQLName.equal($0.entity.table, table) }
      .sorted { $0.entity.name < $1.entity.name }
  }

  private func root(of table: String) -> ModelEntity? {
    let claims = mappings.filter { SQLName.equal($0.table, table) && $0.ancestors.isEmpty }
    // Of several unrelated classes, none is preferred.
    if claims.count > 1 { return nil }
    return claims.first.flatMap { entities[$0.entityName] } ?? classes(of: table).first
  }

  /// Returns `customer` for `customer_id`, `customerId` and `customerID`.
  private static func name(of column: String) -> String {
    for suffix in ["_id", "_ID", "Id", "ID"]
    where column.hasSuffix(suffix) && column.count > suffix.count {
      return String(column.dropLast(suffix.count))
    }
    return column
  }

  private static func rule(of key: ForeignKey) -> DeleteRule {
    switch key.onDelete {
    case "CASCADE": .cascade
    case "SET NULL": .nullify
    case "RESTRICT": .deny
    default: .noAction
    }
  }
}
