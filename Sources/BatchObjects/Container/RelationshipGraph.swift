import BatchIdentifiers
import BatchSQLite

/// The relationships of the entities of one store.
///
/// Declared relationships take precedence. Others are derived from single-column foreign keys that
/// refer to a single-column key: `orders.customer_id` gives the order a `customer` and the customer
/// `orders`, and a table of just two foreign keys joins the tables that these refer to.
struct RelationshipGraph: Sendable {
  private var relationships: [String: [String: Relationship]] = [:]
  /// Sorted by name.
  private var ordered: [String: [Relationship]] = [:]
  private var referringSlots: [String: [Int]] = [:]
  /// The distance of an entity from those that refer to no others: referring rows are deleted
  /// first.
  private(set) var depths: [String: Int] = [:]

  func of(_ entity: ModelEntity) -> [String: Relationship] {
    relationships[entity.entity.name] ?? [:]
  }

  /// The relationships of an entity, sorted by name, so that every process handles them in the same
  /// order.
  func all(of entity: ModelEntity) -> [Relationship] { ordered[entity.entity.name] ?? [] }

  func referringSlots(of entity: ModelEntity) -> [Int] { referringSlots[entity.entity.name] ?? [] }

  /// Throws `invalidMapping` for a declaration that does not fit the tables.
  init(
    _ entities: [String: ModelEntity],
    tables: [Entity],
    _ mappings: [ModelMapping],
    coreData: CoreDataModel? = nil
  ) throws(BatchError) {
    let mappings = mappings.filter { entities[$0.entityName] != nil }
    for mapping in mappings {
      for declared in mapping.relationshipList {
        let found = try Self.resolve(declared, of: mapping, mappings, entities, tables)
        relationships[mapping.entityName, default: [:]][declared.name] = found
      }
    }
    for modeled in coreData?.entities ?? [] {
      guard let source = entities[modeled.name], source.entity.kind == .model else { continue }
      for declared in modeled.relationships {
        let found = Relationship(declared, of: source, among: entities)
        relationships[modeled.name, default: [:]][declared.name] = found
      }
    }
    let finder = RelationshipFinder(entities: entities, tables: tables, mappings: mappings)
    for (entity, relationship) in finder.relationships()
    where !(relationships[entity]?.values.contains { $0.isSame(as: relationship) } ?? false) {
      if relationships[entity]?[relationship.name] != nil { continue }
      relationships[entity, default: [:]][relationship.name] = relationship
    }
    ordered = relationships.mapValues { $0.values.sorted { $0.name < $1.name } }
    for name in entities.keys.sorted() { _ = depth(of: name, below: []) }
    referringSlots = ordered.mapValues { relationships in
      relationships.compactMap { relationship in
        if case .column(let slot) = relationship.storage { slot } else { nil }
      }
    }
  }

  private mutating func depth(of name: String, below path: Set<String>) -> Int {
    if let depth = depths[name] { return depth }
    // A cycle of entities must be cut somewhere.
    guard !path.contains(name) else { return 0 }
    var depth = 0
    for relationship in ordered[name] ?? [] {
      guard case .column = relationship.storage else { continue }
      let target = relationship.destination.entity.name
      if target != name {
        depth = max(depth, self.depth(of: target, below: path.union([name])) + 1)
      }
    }
    depths[name] = depth
    return depth
  }

  private static func resolve(
    _ declared: MappedRelationship,
    of mapping: ModelMapping,
    _ mappings: [ModelMapping],
    _ entities: [String: ModelEntity],
    _ tables: [Entity]
  ) throws(BatchError) -> Relationship {
    let named = declared.destination.mapping
    let target = mappings.first { $0.entityName == named.entityName } ?? named
    guard let source = entities[mapping.entityName], let destination = entities[target.entityName]
    else {
      throw invalid(mapping, declared, "its class \(target.entityName) is not in the same store")
    }
    let storage: Relationship.Storage
    switch declared.storage {
    case .column(let column):
      guard let slot = source.slot(ofColumn: column), destination.isReferable else {
        throw invalid(mapping, declared, "the other class has a multi-column key")
      }
      storage = .column(slot: slot)
    case .inverse, .inferred:
      let inverse = target.relationshipList.first { $0.name == declared.inverse }
      guard let column = inverse?.column, let slot = destination.slot(ofColumn: column) else {
        throw invalid(
          mapping,
          declared,
          "\(target.entityName) declares no inverse with a column"
        )
      }
      guard source.isReferable else {
        throw invalid(mapping, declared, "its own class has a multi-column key")
      }
      storage = .inverse(slot: slot)
    case .table(let name, let from, let to):
      let keys = tables.first { SQLName.equal($0.table, name) }?.foreignKeys ?? []
      let isSelf = SQLName.equal(source.entity.table, destination.entity.table)
      func column(of entity: ModelEntity) -> String? {
        isSelf ? nil : keys.first { SQLName.equal($0.table, entity.entity.table) }?.column
      }
      guard tables.contains(where: { SQLName.equal($0.table, name) }), source.isReferable,
        destination.isReferable, let from = from ?? column(of: source),
        let to = to ?? column(of: destination)
      else {
        throw invalid(
          mapping,
          declared,
          "table \(name.quotedForMessage) does not join the classes by two foreign keys"
        )
      }
      storage = .table(JoinTable(table: name, source: from, target: to))
    }
    return Relationship(
      name: declared.name,
      destination: destination,
      storage: storage,
      isToMany: declared.isToMany,
      deleteRule: declared.deleteRule
    )
  }

  private static func invalid(
    _ mapping: ModelMapping,
    _ relationship: MappedRelationship,
    _ reason: String
  ) -> BatchError {
    BatchError(
      .invalidMapping,
      "relationship \(relationship.name.quotedForMessage) cannot be kept: \(reason)",
      at: mapping.entityName
    )
  }
}

extension Relationship {
  /// Makes a relationship of a Core Data model; nil if the other entity belongs to a class.
  fileprivate init?(
    _ declared: CoreDataRelationship,
    of source: ModelEntity,
    among entities: [String: ModelEntity]
  ) {
    guard let destination = entities[declared.destination], destination.entity.kind == .model else {
      return nil
    }
    let storage: Storage
    switch declared.storage {
    case .column(let column):
      guard let slot = source.slot(ofColumn: column) else { return nil }
      storage = .column(slot: slot)
    case .inverse(let column):
      guard let slot = destination.slot(ofColumn: column) else { return nil }
      storage = .inverse(slot: slot)
    case .table(let table, let from, let to):
      storage = .table(JoinTable(table: table, source: from, target: to))
    }
    self.init(
      name: declared.name,
      destination: destination,
      storage: storage,
      isToMany: declared.isToMany,
      deleteRule: .noAction
    )
  }

  fileprivate func isSame(as other: Relationship) -> Bool {
    switch (storage, other.storage) {
    case (.column(let slot), .column(let otherSlot)):
      slot == otherSlot
    case (.inverse(let slot), .inverse(let otherSlot)):
      slot == otherSlot && SQLName.equal(destination.entity.table, other.destination.entity.table)
    case (.table(let table), .table(let otherTable)):
      SQLName.equal(table.table, otherTable.table) && SQLName.equal(table.source, otherTable.source)
    default: false
    }
  }
}

extension ModelContainer {
  func refers(_ entity: ModelEntity, at slot: Int) -> Bool {
    relationships[entity.store].referringSlots(of: entity).contains(slot)
  }
}

extension ModelEntity {
  var isReferable: Bool { entity.key?.columns.count == 1 }
}
