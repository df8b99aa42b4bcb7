import BatchRuns
public import BatchIdentifiers
public import BatchPlatform
import BatchSQLite

extension ModelContext {
  /// Returns the object with an identifier if it is in the context; never reads a row.
  public func registeredModel<Model: ManagedObject>(
    for identifier: PersistentIdentifier
  ) -> Model? {
    registered(identifier) as? Model
  }

  /// Returns the object with an identifier, or a fault if it is not in the context yet.
  ///
  /// Nothing is read until the object is used, so a missing row is not noticed before. Entities
  /// with sub-entities are an exception: only the row determines the class of the object. So the
  /// row is read, and the identifier of the object has its concrete entity.
  ///
  /// If the container does not know the identifier, such as a temporary one of another context, the
  /// object is a plain `ManagedObject`, so cast with `as?`; ``existingModel(for:as:)`` throws
  /// `foreignIdentifier` instead.
  public func model(for identifier: PersistentIdentifier) -> ManagedObject {
    if let object = registered(identifier) { return object }
    guard let entity = try? container.resolve(identifier), let key = identifier.key else {
      return register(identifier, nil)
    }
    if identifier.space != entity.space { return model(for: entity.space.identifier(key)) }
    guard !entity.descendants.isEmpty,
      let row = try? entity.row(of: identifier, in: connection(to: entity.store))
    else { return register(identifier, entity) }
    let (concrete, own) = container.concrete(identifier, entity, row)
    // Using the fault reports why the row cannot be read.
    return (try? object(of: identifier, entity, row)) ?? register(concrete, own)
  }

  /// Returns the object with an identifier, with its row; never a fault.
  ///
  /// - Throws: `BatchError` with code `objectNotFound` if there is no such row, `foreignIdentifier`
  ///   if the identifier belongs to a store of another container, `modelTypeMismatch` if the object
  ///   is not a `Model`, `valueMismatch` if the row does not fit its class.
  /// - Complexity: At most one statement.
  public func existingModel<Model: ManagedObject>(
    for identifier: PersistentIdentifier,
    as type: Model.Type = Model.self
  ) throws(BatchError) -> Model {
    try beginReading()
    return try cast(existing(identifier), as: type)
  }

  /// Returns the object of a URI, with its row.
  ///
  /// It is nil if no store of the container has the entity, or if there is no such row.
  ///
  /// - Throws: `BatchError` if the row cannot be read.
  public func model(with uri: URL) throws(BatchError) -> ManagedObject? {
    try beginReading()
    guard let identifier = container.identifier(forURI: uri) else { return nil }
    do {
      return try existing(identifier)
    } catch {
      if error.code == .objectNotFound { return nil }
      throw error
    }
  }

  /// The object with an identifier, if it exists and is a `Model`.
  ///
  /// If the row exists but cannot be read, the context's next throwing call throws the reason.
  public subscript<Model: ManagedObject>(
    _ identifier: PersistentIdentifier,
    as type: Model.Type
  ) -> Model? {
    do {
      return try existing(identifier) as? Model
    } catch {
      if ![.objectNotFound, .foreignIdentifier].contains(error.code) { note(error) }
      return nil
    }
  }

  func cast<Model: ManagedObject>(
    _ object: ManagedObject,
    as type: Model.Type
  ) throws(BatchError) -> Model {
    if let model = object as? Model { return model }
    throw BatchError(
      .modelTypeMismatch,
      "the object is a \(Swift.type(of: object)), not a \(Model.self)",
      at: object.persistentModelID.description
    )
  }

  private func existing(_ identifier: PersistentIdentifier) throws(BatchError) -> ManagedObject {
    if let object = registered(identifier) {
      // Setting values of a fault does not show whether its row still exists.
      if object.unsaved == .insert || object.unsaved == .delete { return object }
      if object.hasCurrentRow { return object }
    }
    if identifier.isTemporary { throw .notFound(identifier) }
    let entity = try container.resolve(identifier)
    guard let row = try entity.row(of: identifier, in: connection(to: entity.store)) else {
      throw .notFound(identifier)
    }
    return try object(of: identifier, entity, row)
  }

  /// The object of a row that was just read; an object keeps the row that it has, unless that is
  /// outdated.
  ///
  /// Throws `valueMismatch` for a row that does not fit its class, or an error of
  /// `replaceRelatives(of:_:)`.
  func object(
    of identifier: PersistentIdentifier,
    _ entity: ModelEntity,
    _ row: [SQLValue],
    readAt: ContinuousClock.Instant = .now
  ) throws(BatchError) -> ManagedObject {
    let (identifier, entity) = container.concrete(identifier, entity, row)
    let known = registry[identifier]
    if let known, known.hasCurrentRow || known.unsaved == .insert { return known }
    try entity.validate(row, of: identifier)
    try replaceRelatives(of: identifier, entity)
    let object = known ?? register(identifier, entity)
    object.take(row, readAt: readAt)
    return object
  }

  /// Releases objects of a row that now belongs to another entity, as if the row had been deleted.
  ///
  /// Throws `mergeConflict` if such an object has unsaved changes.
  func replaceRelatives(
    of identifier: PersistentIdentifier,
    _ entity: ModelEntity
  ) throws(BatchError) {
    for other in objectsOfRelatives(identifier, entity) {
      guard !other.hasChanges else {
        throw BatchError(
          .mergeConflict,
          "the row now belongs to entity \(entity.entity.name.quotedForMessage)",
          at: other.persistentModelID.description,
          remedy: "save the context, or roll it back"
        )
      }
      forget(other)
    }
  }

  func objectsOfRelatives(
    _ identifier: PersistentIdentifier,
    _ entity: ModelEntity
  ) -> [ManagedObject] {
    guard !entity.relatives.isEmpty, let key = identifier.key else { return [] }
    return entity.relatives.compactMap { registry[$0.identifier(key)] }
  }
}

extension ModelContainer {
  /// The concrete entity of a row, and its identifier there.
  func concrete(
    _ identifier: PersistentIdentifier,
    _ entity: ModelEntity,
    _ row: [SQLValue]
  ) -> (PersistentIdentifier, ModelEntity) {
    let name = entity.concreteName(of: row)
    let concrete =
      name == entity.entity.name ? entity : entities[entity.store][name] ?? entity
    guard identifier.space != concrete.space, let key = identifier.key else {
      return (identifier, concrete)
    }
    return (concrete.space.identifier(key), concrete)
  }
}
