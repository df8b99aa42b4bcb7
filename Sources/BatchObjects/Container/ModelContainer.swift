public import BatchIdentifiers
public import BatchSQLite

/// The stores that contexts read, with their entities.
///
/// A container corresponds to Core Data's persistent store coordinator: an identifier is valid only
/// in containers that have its store.
///
///     let container = try await ModelContainer(configurations: ModelConfiguration(path: "shop.db"))
///     let identifier = container.identifier(for: "x-coredata://…/orders/p28")
public final class ModelContainer: Sendable {
  /// The configurations, in the given order.
  public let configurations: [ModelConfiguration]
  /// The stores, in the order of the configurations.
  public let stores: [Store]
  /// By store, then by name.
  let entities: [[String: ModelEntity]]
  /// By store.
  let relationships: [RelationshipGraph]
  /// Serializes the saves of each store: contexts wait here, whereas SQLite would make them poll.
  let turns: [Lock<Void>]
  /// Whether some entities share a table with entities that extend them.
  let hasHierarchies: Bool
  let changes = ChangeBroadcast()
  /// Created on demand.
  @MainActor var keptMainContext: AnyObject?

  /// Opens the stores of some configurations, each on its own thread.
  ///
  /// Each class claims its table in every store that has it. Each unclaimed table becomes an entity
  /// with the name of the table, whose objects are of the class `ManagedObject`.
  ///
  /// With a single configuration and no script, a missing or empty database gets the tables of the
  /// classes: with a column for each property that needs one, unique and other indexes, and foreign
  /// keys for relationships. A writable store without a UUID, which identifiers refer to, gets one.
  ///
  /// - Throws: `BatchError` with code `fileAccess` or `notADatabase` for a store that cannot be
  ///   opened; `invalidSQL` for a script that fails; `ambiguousStore` if two stores have the same
  ///   UUID, as a file and its copy do; `invalidMapping` without a configuration, or if tables
  ///   differ from the classes, with all differences by column.
  /// - Complexity: O(*n*) in the number of tables and columns.
  public convenience init(
    for types: any PersistentModel.Type...,
    configurations: ModelConfiguration...
  ) async throws(BatchError) {
    try await self.init(for: types, configurations: configurations)
  }

  /// Opens the stores of some configurations; see the other initializer.
  ///
  /// - Throws: An error of the other initializer.
  public convenience init(
    for types: [any PersistentModel.Type],
    configurations: [ModelConfiguration]
  ) async throws(BatchError) {
    let types = types.withoutRepetitions
    let stores = try await Store.opened(Self.complete(configurations, for: types))
    try self.init(for: types, stores: stores, configurations: configurations)
  }

  /// Opens the stores of some configurations from synchronous code, which blocks the thread.
  ///
  ///     static let shared = try! ModelContainer(
  ///       for: Order.self, configurations: ModelConfiguration(path: "shop.db"))
  ///
  /// - Throws: An error of the other initializers.
  public convenience init(
    for types: any PersistentModel.Type...,
    configurations: ModelConfiguration...
  ) throws(BatchError) {
    try self.init(for: types, configurations: configurations)
  }

  /// Opens the stores of some configurations from synchronous code, which blocks the thread.
  ///
  /// - Throws: An error of the other initializers.
  public convenience init(
    for types: [any PersistentModel.Type],
    configurations: [ModelConfiguration]
  ) throws(BatchError) {
    let types = types.withoutRepetitions
    var stores: [Store] = []
    for configuration in try Self.complete(configurations, for: types) {
      stores.append(try Store(configuration))
    }
    try self.init(for: types, stores: stores, configurations: configurations)
  }

  /// A single configuration creates missing tables of the classes.
  private static func complete(
    _ configurations: [ModelConfiguration],
    for types: [any PersistentModel.Type]
  ) throws(BatchError) -> [ModelConfiguration] {
    guard !configurations.isEmpty else {
      throw BatchError(
        .invalidMapping,
        "the container has no database, and there is none by default",
        remedy: "pass configurations: ModelConfiguration(path: …), or .inMemory"
      )
    }
    guard configurations.count == 1 else { return configurations }
    return [try configurations[0].making(tablesFor: types)]
  }

  init(
    for types: [any PersistentModel.Type],
    stores: [Store],
    configurations: [ModelConfiguration] = []
  ) throws(BatchError) {
    var stores = stores
    for (index, store) in stores.enumerated() {
      guard let other = stores[..<index].first(where: { $0.identity == store.identity }) else {
        continue
      }
      throw BatchError(
        .ambiguousStore,
        "the store has the UUID of \(other.path), and may be a copy of it",
        at: store.path,
        remedy: "open the two in separate containers"
      )
    }
    let mappings = try RelationshipInference.resolve(types.map { $0.mapping })
    try TableComparison(mappings, in: stores.map(\.schema.all)).requireNone()
    var entities: [[String: ModelEntity]] = []
    var relationships: [RelationshipGraph] = []
    for index in stores.indices {
      let models = try Self.entities(of: stores[index], at: index, mappings)
      relationships.append(
        try RelationshipGraph(
          models,
          tables: stores[index].schema.all,
          mappings,
          coreData: stores[index].coreData
        )
      )
      stores[index].schema = Schema(
        entities: models.values.map(\.entity).sorted { $0.name < $1.name }
      )
      entities.append(models)
    }
    self.configurations = configurations
    self.stores = stores
    self.entities = entities
    hasHierarchies = entities.contains { $0.values.contains { $0.concrete != nil } }
    self.relationships = relationships
    turns = stores.map { _ in Lock(()) }
  }

  private static func entities(
    of store: Store,
    at index: Int,
    _ mappings: [ModelMapping]
  ) throws(BatchError) -> [String: ModelEntity] {
    var entities: [String: ModelEntity] = [:]
    for table in store.schema.all {
      let claims = mappings.filter { SQLName.equal($0.table, table.table) }
      if claims.isEmpty, store.isListed(table, beside: mappings) {
        let entity = ModelEntity(table, ofStore: index, identity: store.identity)
        try add(entity, to: &entities)
      }
      for mapping in claims {
        let entity = try ModelEntity(
          mapping,
          family: claims.filter { $0.root == mapping.root },
          in: table,
          ofStore: index,
          identity: store.identity
        )
        try add(entity, to: &entities)
      }
    }
    return entities
  }

  private static func add(
    _ entity: ModelEntity,
    to entities: inout [String: ModelEntity]
  ) throws(BatchError) {
    guard entities.updateValue(entity, forKey: entity.entity.name) == nil else {
      throw BatchError(
        .invalidMapping,
        "two entities have this name",
        at: entity.entity.name,
        remedy: "map the class to another entity name"
      )
    }
  }
}

extension [any PersistentModel.Type] {
  /// Removes duplicates: lists of classes come from several places.
  fileprivate var withoutRepetitions: Self {
    var known: Set<ObjectIdentifier> = []
    return filter { known.insert(ObjectIdentifier($0)).inserted }
  }
}

extension Store {
  /// Whether an unclaimed entity is listed.
  ///
  /// It is not if it is a table behind the entities of a Core Data model, or an entity of that
  /// model whose table a class claims.
  fileprivate func isListed(_ entity: Entity, beside mappings: [ModelMapping]) -> Bool {
    guard let coreData else { return true }
    guard let modeled = coreData.entity(named: entity.name) else {
      return schema.entities.contains { $0.name == entity.name }
    }
    return !mappings.contains {
      SQLName.equal($0.table, modeled.table) || $0.entityName == entity.name
    }
  }
}

extension BatchError.Code {
  /// More than one store of the container could be meant.
  public static let ambiguousStore = Self(rawValue: "ambiguousStore")
}

extension ModelContainer {
  func requireStore(at place: Int) throws(BatchError) {
    guard !stores.indices.contains(place) else { return }
    throw BatchError(
      .invalidSQL,
      "there is no store \(place)",
      remedy: stores.count == 1
        ? "the container has one store, 0" : "give 0 to \(stores.count - 1)"
    )
  }
}
