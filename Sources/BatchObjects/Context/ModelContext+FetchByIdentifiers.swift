public import BatchIdentifiers
import BatchSQLite

extension ModelContext {
  /// Fetches the objects of some identifiers, with their rows, in the same order.
  ///
  /// Process a list one slice at a time: the objects of a slice are released before those of the
  /// next one are created.
  ///
  ///     for chunk in list.chunks(ofCount: 500) {
  ///       let orders = try context.fetch(chunk, as: Order.self)
  ///     }
  ///
  /// - Parameters:
  ///   - identifiers: The identifiers, which may be of several entities.
  ///   - type: The class of all the objects.
  ///   - skippingMissing: Whether to ignore identifiers without a row.
  /// - Returns: The objects, in the order of the identifiers.
  /// - Throws: `BatchError` with code `objectNotFound` for identifiers without a row, with their
  ///   number; `modelTypeMismatch` for an object of another class; or an error of
  ///   `existingModel(for:as:)`.
  /// - Complexity: O(*n*) look-ups by key.
  public func fetch<Model: ManagedObject>(
    _ identifiers: some Sequence<PersistentIdentifier>,
    as type: Model.Type,
    skippingMissing: Bool = false
  ) throws(BatchError) -> [Model] {
    try beginReading()
    var models: [Model] = []
    models.reserveCapacity(identifiers.underestimatedCount)
    var slice: [PersistentIdentifier] = []
    var (count, missing, firstMissing) = (0, 0, PersistentIdentifier?.none)
    var iterator = identifiers.makeIterator()
    while true {
      let next = iterator.next()
      // An object that is already in the context needs no look-up, unless one before it does.
      if let next, slice.isEmpty, let object = present(next) {
        models.append(try cast(object, as: type))
        count += 1
        continue
      }
      if let next { slice.append(next) }
      if next == nil || slice.count == 500 {
        let objects = try objects(of: slice)
        let found = slice.compactMap { objects[$0] }
        count += slice.count
        if found.count < slice.count {
          missing += slice.count - found.count
          firstMissing = firstMissing ?? slice.first { objects[$0] == nil }
        }
        for object in found { models.append(try cast(object, as: type)) }
        slice.removeAll(keepingCapacity: true)
      }
      if next == nil { break }
    }
    if let firstMissing, !skippingMissing {
      throw BatchError(
        .objectNotFound,
        "\(missing.grouped) of \(count.grouped) identifiers have no row",
        at: firstMissing.description,
        remedy: "pass skippingMissing: true to continue without them"
      )
    }
    return models
  }

  /// The object with an identifier, if it is new or in the context with its row.
  private func present(_ identifier: PersistentIdentifier) -> ManagedObject? {
    guard let object = registered(identifier),
      object.hasCurrentRow || object.unsaved == .insert && !object.isGone
    else { return nil }
    return object
  }

  package func objects(
    of identifiers: [PersistentIdentifier]
  ) throws(BatchError) -> [PersistentIdentifier: ManagedObject] {
    var objects: [PersistentIdentifier: ManagedObject] = [:]
    var missing: [IdentifierSpace: [PersistentIdentifier]] = [:]
    for identifier in identifiers where objects[identifier] == nil {
      if let object = present(identifier) {
        objects[identifier] = object
      } else if !identifier.isTemporary {
        missing[identifier.space, default: []].append(identifier)
      }
    }
    for (_, identifiers) in missing.sorted(by: { $0.key.entityName < $1.key.entityName }) {
      for object in try objectsOfRows(identifiers) {
        // The requested identifier may have a super-entity of the object's entity.
        let key = object.persistentModelID.key
        if let asked = identifiers.first?.space, let key { objects[asked.identifier(key)] = object }
      }
    }
    return objects
  }

  /// The objects of rows of one entity, in no particular order.
  private func objectsOfRows(
    _ identifiers: [PersistentIdentifier]
  ) throws(BatchError) -> [ManagedObject] {
    guard let first = identifiers.first else { return [] }
    let entity = try container.resolve(first)
    let connection = try connection(to: entity.store)
    return try connection.transaction(.deferred) { () throws(BatchError) in
      var objects: [ManagedObject] = []
      // Key by key: given many keys at once, SQLite may scan the whole table instead.
      try entity.forEachRow(of: identifiers, in: connection) { identifier, row throws(BatchError) in
        objects.append(try object(of: identifier, entity, row))
      }
      return objects
    }
  }
}
