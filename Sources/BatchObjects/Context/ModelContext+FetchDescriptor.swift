public import BatchIdentifiers
import BatchSQLite

extension ModelContext {
  /// Fetches the objects that a descriptor describes, in its order.
  ///
  /// An object that is already in the context and not a fault keeps its values, unless another
  /// context of the container has saved the row since. With `includePendingChanges`, unsaved
  /// changes count: inserted and changed objects are matched and sorted by their values in memory,
  /// deleted objects are excluded, and limit and offset apply to the result.
  ///
  /// - Throws: `BatchError` with code `unsupportedPredicate` for a predicate or an order that SQL
  ///   cannot express; `predicateFailed` if the predicate cannot be evaluated for a row, for
  ///   instance if an integer overflows; `valueMismatch` for a row that does not fit its class;
  ///   `unknownEntity` or `ambiguousStore` unless exactly one store has the table of the class.
  /// - Complexity: One statement, and one more per unsaved object of the class.
  public func fetch<Model: PersistentModel>(
    _ descriptor: FetchDescriptor<Model>
  ) throws(BatchError) -> [Model] {
    let fetched = try read(Model.self) { entity, connection throws(BatchError) -> [Model] in
      guard let overlay = try overlay(for: descriptor, of: entity, connection) else {
        let query = try descriptor.query(
          of: entity,
          in: container,
          counting: unsavedRelated(for: descriptor)
        )
        return try models(query, entity, connection)
      }
      let query = try descriptor.widened.query(
        of: entity,
        in: container,
        excluding: overlay.excluded,
        counting: unsavedRelated(for: descriptor)
      )
      let rows: [Model] = try models(query, entity, connection)
      return descriptor.window(of: overlay.merged(with: rows, by: descriptor))
    }
    try prefetch(descriptor.relationshipKeyPathsForPrefetching, of: fetched)
    return fetched
  }

  /// Fetches the identifiers of the objects that a descriptor describes, without creating objects.
  ///
  /// Identifiers of unsaved inserted or changed objects come last, in no particular order; those of
  /// objects without a row are temporary. All others have the entity of the class, even for a row
  /// of a sub-entity.
  ///
  /// - Throws: An error of `fetch(_:)`.
  /// - Complexity: As `fetch(_:)`.
  public func fetchIdentifiers<Model: PersistentModel>(
    _ descriptor: FetchDescriptor<Model>
  ) throws(BatchError) -> [PersistentIdentifier] {
    try read(Model.self) { entity, connection throws(BatchError) in
      let store = container.stores[entity.store].identity
      guard let overlay = try overlay(for: descriptor, of: entity, connection) else {
        let query = try descriptor.query(
          of: entity,
          in: container,
          counting: unsavedRelated(for: descriptor)
        )
        return Array(try query.fetch(in: connection, store: store))
      }
      let query = try descriptor.widened.query(
        of: entity,
        in: container,
        excluding: overlay.excluded,
        counting: unsavedRelated(for: descriptor)
      )
      let stored = try query.fetch(in: connection, store: store)
      return descriptor.window(of: stored + overlay.matching.map(\.persistentModelID))
    }
  }

  /// Fetches the identifiers of the rows that a descriptor describes, in a list of one or two bytes
  /// each.
  ///
  /// Unsaved changes do not count.
  ///
  /// - Throws: An error of `fetch(_:)`.
  /// - Complexity: One statement; memory only for the compressed list.
  public func fetchIdentifierList<Model: PersistentModel>(
    _ descriptor: FetchDescriptor<Model>
  ) throws(BatchError) -> IdentifierList {
    try read(Model.self) { entity, connection throws(BatchError) in
      let query = try descriptor.query(of: entity, in: container)
      let store = container.stores[entity.store].identity
      if let few = try query.fetchFew(in: connection, store: store) { return few }
      return try query.fetch(in: connection, store: store)
    }
  }

  /// Counts the objects that a descriptor describes.
  ///
  /// - Throws: An error of `fetch(_:)`.
  /// - Complexity: As `fetch(_:)`.
  public func fetchCount<Model: PersistentModel>(
    _ descriptor: FetchDescriptor<Model>
  ) throws(BatchError) -> Int {
    try read(Model.self) { entity, connection throws(BatchError) in
      guard let overlay = try overlay(for: descriptor, of: entity, connection) else {
        let query = try descriptor.query(
          of: entity,
          in: container,
          counting: unsavedRelated(for: descriptor)
        )
        return try query.count(in: connection)
      }
      let query = try descriptor.widened.query(
        of: entity,
        in: container,
        excluding: overlay.excluded,
        counting: unsavedRelated(for: descriptor)
      )
      let count = try query.count(in: connection) + overlay.matching.count
      return min(max(count - (descriptor.fetchOffset ?? 0), 0), descriptor.fetchLimit ?? .max)
    }
  }

  /// Returns SQLite's plan for a fetch, in its own text and in words, and the missing indexes.
  ///
  /// - Throws: An error of `fetch(_:)`.
  /// - Complexity: No row is read.
  public func explain<Model: PersistentModel>(
    _ descriptor: FetchDescriptor<Model>
  ) throws(BatchError) -> FetchPlan {
    try read(Model.self) { entity, connection throws(BatchError) in
      let translator = PredicateTranslator(container)
      let query = try descriptor.query(of: entity, with: translator)
      if descriptor.predicate == nil {
        return FetchPlan(steps: try query.queryPlan(in: connection).lines, missingIndexes: [])
      }
      return try FetchPlan(of: query.sql, about: entity, translator, in: connection)
    }
  }

  private func models<Model: PersistentModel>(
    _ query: IdentifierQuery,
    _ entity: ModelEntity,
    _ connection: Connection
  ) throws(BatchError) -> [Model] {
    try objects(query, entity, connection).map { object throws(BatchError) in
      try cast(object, as: Model.self)
    }
  }

  func read<Model: PersistentModel, Result>(
    _ type: Model.Type,
    _ body: (ModelEntity, Connection) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    try beginReading()
    let entity = try container.entity(named: type.mapping.entityName)
    let connection = try connection(to: entity.store)
    return try connection.transaction(.deferred) { () throws(BatchError) in
      try body(entity, connection)
    }
  }
}
