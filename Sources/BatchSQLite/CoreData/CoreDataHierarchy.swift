/// Core Data entities that inherit from each other, and therefore share a table.
struct CoreDataHierarchy {
  /// An entity in `Z_PRIMARYKEY`.
  struct Listed {
    let number: Int64
    let name: String
    /// The number of its super-entity; 0 for none.
    let superNumber: Int64
  }

  private let members: [Listed]
  private let root: Listed

  var table: String { "Z\(root.name.uppercased())" }

  static func all(of listed: [Listed]) -> [CoreDataHierarchy] {
    let byNumber = Dictionary(
      listed.map { ($0.number, $0) },
      uniquingKeysWith: { first, _ in first }
    )
    var members: [Int64: [Listed]] = [:]
    for entity in listed {
      var root = entity
      // Bounded, since a damaged store may have a cycle, though Core Data makes none.
      for _ in listed {
        guard let next = byNumber[root.superNumber] else { break }
        root = next
      }
      members[root.number, default: []].append(entity)
    }
    return members.sorted { $0.key < $1.key }.compactMap { number, members in
      byNumber[number].map { CoreDataHierarchy(members: members, root: $0) }
    }
  }

  func entities(in table: Entity, _ cached: CachedModel?) -> [CoreDataEntity] {
    let places = cached.map { propertyPlaces(in: table, $0) }
    let family = Dictionary(
      members.map { ($0.number, $0.name) },
      uniquingKeysWith: { first, _ in first }
    )
    return members.map { entity in
      var names: Set<String> = []
      let properties = cached?.entities[entity.name] ?? []
      let columns = table.attributes.map { attribute in
        let place = places?[attribute.column]
        let property = place.flatMap { place in
          properties.first { $0.name == place.property }.flatMap { property in
            isOwn(place, of: entity) ? property : nil
          }
        }
        var column = self.column(attribute, place, property, hasModel: cached != nil)
        if !names.insert(SQLName.folded(column.name)).inserted {
          column = self.column(attribute, place, nil, hasModel: true)
          names.insert(SQLName.folded(column.name))
        }
        return column
      }
      return CoreDataEntity(
        name: entity.name,
        number: entity.number,
        superentity: members.first { $0.number == entity.superNumber }?.name,
        table: table.table,
        columns: columns,
        family: family,
        members: members.filter { isMember($0, of: entity) }.map(\.number)
      )
    }
  }

  private func column(
    _ attribute: Attribute,
    _ place: Place?,
    _ property: CachedModel.Property?,
    hasModel: Bool
  ) -> CoreDataColumn {
    let column = attribute.column
    let isKey = column == "Z_PK"
    // Core Data's own columns, and those of other entities, keep the column's name.
    let isOwn =
      !column.hasPrefix("Z") || column.dropFirst().first.map { $0 == "_" || $0.isNumber } ?? true
    guard hasModel || isOwn else {
      return CoreDataColumn(
        column: column,
        name: column.dropFirst().lowercased(),
        type: CoreDataType(declared: attribute.type),
        isAttribute: true,
        isOptional: true,
        isDerived: false
      )
    }
    return CoreDataColumn(
      column: column,
      name: property?.name ?? column,
      type: place?.type ?? (isKey ? .key : .unknown),
      isAttribute: property != nil || isKey,
      isOptional: property?.isOptional ?? !isKey,
      isDerived: property?.isDerived ?? false
    )
  }

  // MARK: Columns

  private struct Place {
    /// The number of the entity that declares the property.
    let entity: Int64
    let property: String
    let type: CoreDataType
  }

  /// The property in each column.
  ///
  /// A property's column has the property's name in capitals. If several have the same name, a
  /// number follows it, in the order of the entities.
  private func propertyPlaces(in table: Entity, _ cached: CachedModel) -> [String: Place] {
    var places: [String: Place] = [:]
    for entity in members {
      let inherited = Set(
        (members.first { $0.number == entity.superNumber }?.name)
          .flatMap { cached.entities[$0] }?.map(\.name) ?? []
      )
      for property in cached.entities[entity.name] ?? [] where !inherited.contains(property.name) {
        guard let type = property.columnType else { continue }
        let base = "Z\(property.name.uppercased())"
        let names = [base] + (1...members.count).map { "\(base)\($0)" }
        let column = names.first { name in
          places[name] == nil && table.attributes.contains { $0.column == name }
        }
        guard let column else { continue }
        places[column] = Place(entity: entity.number, property: property.name, type: type)
      }
    }
    return places
  }

  /// Whether an entity or one of its super-entities declares the property.
  private func isOwn(_ place: Place, of entity: Listed) -> Bool {
    members.first { $0.number == place.entity }.map { isMember(entity, of: $0) } ?? false
  }

  private func isMember(_ entity: Listed, of other: Listed) -> Bool {
    var current: Listed? = entity
    for _ in members {
      guard let found = current else { return false }
      if found.number == other.number { return true }
      current = members.first { $0.number == found.superNumber }
    }
    return false
  }
}

extension CachedModel.Property {
  /// The type of the property's column; nil for a to-many relationship.
  fileprivate var columnType: CoreDataType? {
    switch kind {
    case .attribute(let type): type
    case .relationship(_, _, let isToMany, _): isToMany ? nil : .key
    }
  }
}
