public import BatchIdentifiers

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ModelContext {
  /// The object of an identifier if it is in the context already; never reads.
  public func registeredModel<Model: ManagedObject>(
    for identifier: PersistentIdentifier
  ) -> Model? {
    registered(identifier) as? Model
  }

  /// The object of an identifier; a fault if it is not in the context yet.
  ///
  /// It never reads. Whether there is a row shows when the object is used. For the identifier of an entity that has
  /// sub-entities the fault is of the entity's own class, whichever the row turns out to have.
  public func model(for identifier: PersistentIdentifier) -> ManagedObject {
    registered(identifier) ?? register(identifier, try? container.resolve(identifier))
  }

  /// The object of an identifier, with its row; never a fault.
  ///
  /// - Throws: `BatchError` with code `objectNotFound` if there is no such row, `foreignIdentifier`
  ///   if the identifier is of another container's store, `modelTypeMismatch` if the object is no
  ///   `Model`, `valueMismatch` if the row does not fit its class.
  /// - Complexity: At most one statement.
  public func existingModel<Model: ManagedObject>(
    for identifier: PersistentIdentifier,
    as type: Model.Type = Model.self
  ) throws(BatchError) -> Model {
    try beginReading()
    return try cast(existing(identifier), as: type)
  }

  /// The object of a URI, with its row.
  ///
  /// Nil if the URI names no entity of the container's stores, or no row.
  ///
  /// - Throws: `BatchError` for what keeps the row from being read.
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

  /// The object of an identifier, if there is one and it is a `Model`.
  ///
  /// Where the row is there and cannot be read, the next throwing call of the context throws why.
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

  /// The object as one of a class, or an error of code `modelTypeMismatch`.
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
    if let object = registered(identifier), object.hasChanges || object.row != nil && !object.isGone
    {
      return object
    }
    if identifier.isTemporary { throw Self.notFound(identifier) }
    let entity = try container.resolve(identifier)
    guard let row = try entity.row(of: identifier, in: connection(to: entity.store)) else {
      throw Self.notFound(identifier)
    }
    return try object(of: identifier, entity, row)
  }

  /// The one object of a row that was just read; an object that has its row keeps it.
  func object(
    of identifier: PersistentIdentifier,
    _ entity: ModelEntity,
    _ row: [SQLValue],
    readAt: ContinuousClock.Instant = .now
  ) throws(BatchError) -> ManagedObject {
    var (identifier, entity) = (identifier, entity)
    let name = entity.concreteName(of: row)
    if name != entity.entity.name, let key = identifier.key,
      let concrete = container.entities[entity.store][name]
    {
      identifier = concrete.space.identifier(key)
      entity = concrete
    }
    let known = registered(identifier)
    if let known, known.row != nil && !known.isGone || known.unsaved == .insert { return known }
    try entity.validate(row, of: identifier)
    let object = known ?? register(identifier, entity)
    object.take(row, readAt: readAt)
    return object
  }
}
