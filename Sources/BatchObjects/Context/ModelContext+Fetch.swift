public import BatchRuns
public import BatchIdentifiers
public import BatchSQLite

extension ModelContext {
  /// Fetches the objects of rows that satisfy a request; each object is of the class of its row.
  ///
  /// An object that is already in the context and not a fault keeps its values, unless another
  /// context of the container has saved the row since.
  ///
  /// - Throws: `BatchError` with code `unknownEntity`, `unknownAttribute`, `invalidSQL` or
  ///   `unstableKey` for an invalid request; `valueMismatch` for a row that does not fit its class;
  ///   `ambiguousStore` if several stores have the entity.
  /// - Complexity: One statement.
  public func fetch(_ request: FetchRequest) throws(BatchError) -> [ManagedObject] {
    try read(request) { query, entity, connection throws(BatchError) in
      try objects(query, entity, connection)
    }
  }

  /// Fetches the objects of a class whose rows satisfy an SQL expression over the columns.
  ///
  /// - Throws: An error of `fetch(_:)`.
  public func fetch<Model: PersistentModel>(
    _ type: Model.Type,
    where predicate: String? = nil,
    orderBy: [FetchRequest.SortTerm] = [],
    limit: Int? = nil,
    parameters: [String: SQLValue] = [:]
  ) throws(BatchError) -> [Model] {
    let request = FetchRequest(
      entity: type.mapping.entityName,
      where: predicate,
      orderBy: orderBy,
      limit: limit,
      parameters: parameters
    )
    var models: [Model] = []
    for object in try fetch(request) { models.append(try cast(object, as: type)) }
    return models
  }

  /// Fetches the identifiers of rows that satisfy a request, without creating objects.
  ///
  /// They have the entity of the request, even for a row of a sub-entity.
  ///
  /// - Throws: An error of `fetch(_:)`.
  /// - Complexity: One statement; memory only for the compressed list.
  public func fetchIdentifiers(_ request: FetchRequest) throws(BatchError) -> IdentifierList {
    try read(request) { query, entity, connection throws(BatchError) in
      let store = container.stores[entity.store].identity
      if let few = try query.fetchFew(in: connection, store: store) { return few }
      return try query.fetch(in: connection, store: store)
    }
  }

  /// Counts the rows that satisfy a request.
  ///
  /// - Throws: An error of `fetch(_:)`.
  public func fetchCount(_ request: FetchRequest) throws(BatchError) -> Int {
    try read(request) { query, _, connection throws(BatchError) in
      try query.count(in: connection)
    }
  }

  func objects(
    _ query: IdentifierQuery,
    _ entity: ModelEntity,
    _ connection: Connection
  ) throws(BatchError) -> [ManagedObject] {
    let keyCount = query.key.columns.count
    let statement = try query.select(
      (query.key.columns + entity.columns).map(SQLName.quoted),
      in: connection
    )
    var objects: [ManagedObject] = []
    var encoder = EncodedKey.Encoder()
    while try statement.step() {
      encoder.removeAll()
      for column in 0..<keyCount { statement.appendKeyComponent(at: column, to: &encoder) }
      let row = entity.columns.indices.map { statement.value(at: keyCount + $0) }
      let identifier = entity.space.identifier(.encoded(encoder.key))
      objects.append(try object(of: identifier, entity, row))
    }
    return objects
  }

  private func read<Result>(
    _ request: FetchRequest,
    _ body: (IdentifierQuery, ModelEntity, Connection) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    try beginReading()
    let entity = try container.entity(named: request.entity)
    let schema = container.stores[entity.store].schema
    let connection = try connection(to: entity.store)
    return try connection.transaction(.deferred) { () throws(BatchError) in
      let query = try IdentifierQuery(request, schema: schema, connection: connection)
      return try body(query, entity, connection)
    }
  }
}

extension ModelContainer {
  func entity(named name: String) throws(BatchError) -> ModelEntity {
    let found = entities.flatMap { models in
      models.values.filter { SQLName.equal($0.entity.name, name) }
    }
    if found.count == 1 { return found[0] }
    if found.isEmpty {
      let all = Schema(entities: stores.flatMap(\.schema.entities))
      let entity = try all.entity(named: name)
      throw BatchError(.unknownEntity, "there is no entity \(entity.name.quotedForMessage)")
    }
    throw BatchError(
      .ambiguousStore,
      "\(found.count) stores have an entity \(name.quotedForMessage)",
      remedy: "open a container for each of them"
    )
  }
}
