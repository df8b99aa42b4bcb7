struct CoreDataRelationships {
  private let entities: [CoreDataEntity]
  private let cached: CachedModel?
  private let tables: [Entity]

  init(of entities: [CoreDataEntity], _ cached: CachedModel?, _ tables: [Entity]) {
    self.entities = entities
    self.cached = cached
    self.tables = tables
  }

  /// The entities with the relationships whose storage was found.
  var resolved: [CoreDataEntity] {
    entities.map { entity in
      var entity = entity
      for property in cached?.entities[entity.name] ?? [] {
        guard
          case .relationship(let destination, let inverse, let isToMany, let rule) = property.kind,
          let other = self.entity(named: destination),
          let storage = isToMany
            ? storage(of: property.name, entity, other, inverse)
            : entity.column(ofAttribute: property.name).map({ .column($0.name) })
        else { continue }
        entity.relationships.append(
          CoreDataRelationship(
            name: property.name,
            destination: other.name,
            isToMany: isToMany,
            deleteRule: rule,
            storage: storage
          )
        )
      }
      entity.relationships.sort { $0.name < $1.name }
      return entity
    }
  }

  private func entity(named name: String) -> CoreDataEntity? {
    entities.first { $0.name == name }
  }

  private func storage(
    of name: String,
    _ source: CoreDataEntity,
    _ destination: CoreDataEntity,
    _ inverse: String?
  ) -> CoreDataRelationship.Storage? {
    guard let inverse else {
      // Without an inverse, the other row's column has the relationship's name and this entity's
      // number.
      return sharers(of: source).lazy.compactMap { number in
        destination.columns.first { $0.column == "Z\(number)\(name.uppercased())" }
      }.first.map { .inverse($0.name) }
    }
    let back = cached?.entities[destination.name]?.first { $0.name == inverse }
    if case .relationship(_, _, isToMany: false, _) = back?.kind {
      return destination.column(ofAttribute: inverse).map { .inverse($0.name) }
    }
    return join(name, source, destination, inverse)
  }

  /// The table of pairs.
  ///
  /// Its name is `Z_`, the number of one of the two entities and the name of its relationship. Its
  /// two columns are named `Z_`, number, relationship, and each refers to the entity with its
  /// number.
  ///
  /// The number may be that of a super-entity that declares the relationship.
  private func join(
    _ name: String,
    _ source: CoreDataEntity,
    _ destination: CoreDataEntity,
    _ inverse: String
  ) -> CoreDataRelationship.Storage? {
    let (own, other) = (sharers(of: source), sharers(of: destination))
    let names =
      own.map { "Z_\($0)\(name.uppercased())" }
      + other.map { "Z_\($0)\(inverse.uppercased())" }
    for table in tables where table.kind == .table && names.contains(table.table) {
      let columns = table.attributes.map(\.column)
      // The column of an entity's keys has the name of the relationship that leads to the entity.
      let from = own.map { "Z_\($0)\(inverse.uppercased())" }.filter(columns.contains)
      let to = other.map { "Z_\($0)\(name.uppercased())" }.filter(columns.contains)
      if let from = from.first, let to = to.first(where: { $0 != from }) {
        return .table(table.table, source: from, target: to)
      }
      // A relationship within an entity that is its own inverse.
      if let from = from.first, columns.contains("REFLEXIVE") {
        return .table(table.table, source: from, target: "REFLEXIVE")
      }
    }
    return nil
  }

  private func sharers(of entity: CoreDataEntity) -> [Int64] {
    var numbers: [Int64] = []
    var current: CoreDataEntity? = entity
    while let found = current, !numbers.contains(found.number) {
      numbers.append(found.number)
      current = found.superentity.flatMap { self.entity(named: $0) }
    }
    return numbers
  }
}
