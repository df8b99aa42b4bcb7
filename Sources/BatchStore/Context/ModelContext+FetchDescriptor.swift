public import BatchIdentifiers

extension ModelContext {
  /// The objects that a descriptor describes, in its order.
  ///
  /// An object that is in the context already, and no fault, keeps its values.
  ///
  /// - Throws: `BatchError` with code `unsupportedPredicate` for a predicate or an order that SQL
  ///   cannot say, `predicateFailed` if the predicate cannot be evaluated for a row, as where an
  ///   integer overflows, `valueMismatch` for a row that does not fit its class, `unknownEntity` or
  ///   `ambiguousStore` if not exactly one store has the class's table.
  /// - Complexity: One statement.
  public func fetch<Model: PersistentModel>(
    _ descriptor: FetchDescriptor<Model>
  ) throws(BatchError) -> [Model] {
    try read(descriptor) { query, entity, connection throws(BatchError) in
      try objects(query, entity, connection).map { object throws(BatchError) in
        try cast(object, as: Model.self)
      }
    }
  }

  /// The identifiers of the objects that a descriptor describes, without making any object.
  ///
  /// They name the entity of the class, of which the rows' own may be sub-entities.
  ///
  /// - Throws: As `fetch(_:)` does.
  /// - Complexity: One statement; memory for the compressed list alone.
  public func fetchIdentifiers<Model: PersistentModel>(
    _ descriptor: FetchDescriptor<Model>
  ) throws(BatchError) -> IdentifierList {
    try read(descriptor) { query, entity, connection throws(BatchError) in
      try query.fetch(in: connection, store: container.stores[entity.store].identity)
    }
  }

  /// How many objects a descriptor describes.
  ///
  /// - Throws: As `fetch(_:)` does.
  public func fetchCount<Model: PersistentModel>(
    _ descriptor: FetchDescriptor<Model>
  ) throws(BatchError) -> Int {
    try read(descriptor) { query, _, connection throws(BatchError) in
      try query.count(in: connection)
    }
  }

  /// Runs `body` in a read transaction of the one store that has the class's entity.
  func read<Model: PersistentModel, Result>(
    _ descriptor: FetchDescriptor<Model>,
    _ body: (IdentifierQuery, ModelEntity, Connection) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    try beginReading()
    let entity = try container.entity(named: Model.mapping.entityName)
    let query = try descriptor.query(of: entity, in: container)
    let connection = try connection(to: entity.store)
    return try connection.transaction(.deferred) { () throws(BatchError) in
      try body(query, entity, connection)
    }
  }
}
