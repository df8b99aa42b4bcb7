public import BatchIdentifiers
import BatchStore

extension ModelContext {
  /// Whether there are unsaved changes.
  ///
  /// That is objects, and pairs of them in tables of their own, of which the objects know nothing.
  public var hasChanges: Bool {
    checkQueue()
    return !unsaved.isEmpty || !links.isEmpty || !statements.isEmpty
  }

  /// The objects that the next save inserts, in the order in which they were inserted here.
  public var insertedModelsArray: [ManagedObject] { unsavedModels(.insert) }

  /// The objects with values that the next save writes.
  public var changedModelsArray: [ManagedObject] { unsavedModels(.update) }

  /// The objects that the next save deletes.
  public var deletedModelsArray: [ManagedObject] { unsavedModels(.delete) }

  private func unsavedModels(_ kind: ManagedObject.Unsaved) -> [ManagedObject] {
    checkQueue()
    return unsaved.all(kind)
  }

  /// Takes a new object into the context, to be inserted in a store by the next save.
  ///
  /// Of several stores that have the entity it is the first that may be written. What keeps the
  /// object from being inserted, as an entity that is not here or an object of another context, the
  /// next throwing call of the context throws.
  public func insert(_ object: ManagedObject) {
    checkQueue()
    do {
      try take(object)
    } catch {
      noteChange(error)
    }
  }

  /// A new object of an entity, to be inserted in a store by the next save; for entities that no
  /// class claims.
  ///
  /// - Throws: `BatchError` with code `unknownEntity` if no store has the entity, `readOnly` if none
  ///   that has it may be written.
  public func insertNewObject(ofEntity name: String) throws(BatchError) -> ManagedObject {
    try throwNoted()
    let entity = try container.writableEntity(named: name)
    let object = entity.type.init()
    adopt(object, entity)
    return object
  }

  /// Marks an object to be deleted by the next save.
  ///
  /// What delete rules make of related objects shows from the next fetch or look-up on, and as soon as
  /// related objects are asked for. A new object is forgotten at once. An object of another context is
  /// left alone, and the next throwing call of the context throws that.
  public func delete(_ object: ManagedObject) {
    checkQueue()
    guard object.modelContext === self else {
      if !object.isNew { noteChange(Self.foreign(object)) }
      return
    }
    if object.unsaved == .insert {
      object.willDelete()
      forget(object)
    } else if !object.isGone {
      do throws(BatchError) {
        let identifier = object.persistentModelID
        let entity =
          if let entity = object.entity { entity } else { try container.resolve(identifier) }
        guard entity.entity.kind == .table else { throw Self.unwritable(identifier) }
        track(object, .delete)
        if object.environment?.hasRelationships ?? false { undecidedDeletions.append(object) }
      } catch {
        noteChange(error)
      }
    }
  }

  /// Reverts all unsaved changes; reads nothing.
  ///
  /// New objects leave the context, with their attributes but without related objects; values and
  /// deleted objects are restored. Pending errors of setting, inserting and deleting are forgotten;
  /// those of reading are not.
  public func rollback() {
    checkQueue()
    let objects = unsaved.all()
    for object in objects where object.unsaved == .insert { forget(object) }
    for object in objects where object.modelContext === self {
      object.dropChanges()
      object.stored = object.stored.asKept
      track(object, nil)
      // A new object may have had its identifier in the meantime.
      registry.add(object, object.persistentModelID)
    }
    links = UnsavedLinks()
    statements = []
    forgetDeletions()
    forgetReferences()
    dropNotedChange()
  }

  /// Runs `body` and saves; undoes whatever was not saved if either throws.
  ///
  /// What was not saved before shares the fate of what `body` does.
  ///
  /// - Throws: What `body` or ``save()`` throws.
  public func transaction<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      let result = try body()
      try save()
      return result
    } catch {
      rollback()
      throw error
    }
  }

  /// Notes what a save will do with an object; nil if nothing.
  func track(_ object: ManagedObject, _ kind: ManagedObject.Unsaved?) {
    guard object.unsaved != kind else { return }
    if kind == .delete || object.unsaved == .delete { lastRelated = nil }
    unsaved.set(kind, of: object)
    if kind == .delete { object.willDelete() }
  }

  // MARK: New objects

  /// Takes a new object into the context, and keeps one that was to be deleted.
  func take(_ object: ManagedObject) throws(BatchError) {
    if object.modelContext === self {
      // Inserting what was to be deleted keeps it, as in SwiftData.
      if object.unsaved == .delete { keep(object) }
      return
    }
    adopt(object, try entity(ofNew: object))
  }

  /// Takes a new object into the context of what it is to be related to.
  ///
  /// - Throws: As ``ManagedObject/setRelatedObjects(_:forKey:)`` does; the object is where it was then.
  func take(
    _ object: ManagedObject,
    relating others: [ManagedObject],
    by name: String
  ) throws(BatchError) {
    let entity = try entity(ofNew: object)
    let relationship = try relationship(name, of: entity, object)
    for other in others where !other.isNew { try requireOwn(other, relationship.destination) }
    adopt(object, entity)
  }

  private func entity(ofNew object: ManagedObject) throws(BatchError) -> ModelEntity {
    guard object.isNew else { throw Self.foreign(object) }
    guard let name = object.claimedEntityName else {
      throw BatchError(
        .unknownEntity,
        "the object is of no entity",
        at: "\(type(of: object))",
        remedy: "make it with insertNewObject(ofEntity:)"
      )
    }
    return try container.writableEntity(named: name)
  }

  /// Makes a new object one of this context, and then all new objects that it is related to, however
  /// long the chain is.
  private func adopt(_ object: ManagedObject, _ entity: ModelEntity) {
    object.environment = environment(of: entity)
    registry.add(object, object.persistentModelID)
    track(object, .insert)
    joining.append(object)
    guard joining.count == 1 else { return }
    var next = 0
    while next < joining.count {
      unpackDraft(of: joining[next])
      next += 1
    }
    joining = []
  }

  /// Sets what was set on an object before it was in the context.
  private func unpackDraft(of object: ManagedObject) {
    let draft = object.draft
    object.draft = ManagedObject.Draft()
    for (attribute, value) in draft.values.sorted(by: { $0.key < $1.key }) {
      object[attribute] = value
    }
    for (slot, makeDefault) in object.entity?.madeDefaults ?? [] where object.changes[slot] == nil {
      object.changes[slot] = makeDefault().storable
    }
    for (name, others) in draft.related.sorted(by: { $0.key < $1.key }) {
      do throws(BatchError) {
        let relationship = try relationship(name, of: object)
        if relationship.isToMany {
          // Others may have been related to it from their side.
          for other in others { try set(other, isRelated: true, to: object, by: relationship) }
        } else {
          try relate(object, to: others, by: relationship)
        }
      } catch {
        noteChange(error)
      }
    }
    for other in draft.referrers where other.isNew && other.draft.refers(to: object) {
      insert(other)
    }
    if let error = draft.error { noteChange(error) }
  }

  /// Takes an object out of the context with whatever is unsaved of it.
  func forget(_ object: ManagedObject) {
    registry.remove(object)
    links.remove(of: object)
    detach(object)
    unsaved.set(nil, of: object)
  }

  static func foreign(_ object: ManagedObject) -> BatchError {
    let (message, remedy) =
      object.isNew
      ? ("the object is in no context yet", "insert it first")
      : (
        "the object belongs to another context, or to none any more",
        "take it from this context by its identifier"
      )
    return BatchError(
      .noContext,
      message,
      at: object.persistentModelID.description,
      remedy: remedy
    )
  }

  static func unwritable(_ identifier: PersistentIdentifier) -> BatchError {
    BatchError(
      .readOnly,
      "only rows of tables can be written, and this is of a view or a virtual table",
      at: identifier.description
    )
  }
}

extension ModelContainer {
  /// The entity of this name in the first store that has it and may be written.
  func writableEntity(named name: String) throws(BatchError) -> ModelEntity {
    let found = entities.compactMap { models in
      models[name] ?? models.values.first { SQLName.equal($0.entity.name, name) }
    }
    guard !found.isEmpty else { return try entity(named: name) }
    if let entity = found.first(where: {
      stores[$0.store].isWritable && $0.entity.kind == .table
    }) {
      return entity
    }
    throw BatchError(
      .readOnly,
      "no store in which entity \(name.quotedForMessage) is a table may be written"
    )
  }
}

extension Store {
  /// Whether contexts may write to the store.
  ///
  /// What Core Data made has columns and tables of its own to be kept up, and is read only.
  package var isWritable: Bool { !isReadOnly && coreData == nil }
}
