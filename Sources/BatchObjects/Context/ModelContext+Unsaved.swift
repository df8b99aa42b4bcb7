import BatchRuns
public import BatchIdentifiers
import BatchSQLite

extension ModelContext {
  /// Whether there are unsaved changes: of objects, or of pairs in separate tables.
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

  /// Inserts a new object into the context, for the next save to write to a store.
  ///
  /// If several stores have the entity, the object goes to the first writable one. Problems, such
  /// as an unknown entity or an object of another context, are thrown by the context's next
  /// throwing call.
  public func insert(_ object: ManagedObject) {
    checkQueue()
    do {
      try take(object)
    } catch {
      noteChange(error)
    }
  }

  /// Inserts a new object of an entity, for entities that no class claims.
  ///
  /// - Throws: `BatchError` with code `unknownEntity` if no store has the entity, `readOnly` if
  ///   none of these stores is writable.
  public func insertNewObject(ofEntity name: String) throws(BatchError) -> ManagedObject {
    try throwNoted()
    let entity = try container.writableEntity(named: name)
    let object = entity.type.init()
    adopt(object, entity)
    return object
  }

  /// Marks an object for deletion by the next save.
  ///
  /// The effects of delete rules on related objects are visible after the next fetch or look-up,
  /// and whenever related objects are requested. A new object is forgotten immediately. An object
  /// of another context stays unchanged, and the context's next throwing call reports it.
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
  /// New objects leave the context, with their attributes but without related objects; changed
  /// values and deleted objects are restored. Pending errors of setting, inserting and deleting are
  /// forgotten, but not those of reading.
  public func rollback() {
    checkQueue()
    let objects = unsaved.all()
    for object in objects where object.unsaved == .insert { forget(object) }
    for object in objects where object.modelContext === self {
      object.dropChanges()
      object.stored = object.stored.asKept
      track(object, nil)
      // A new object may have taken its identifier in the meantime.
      registry.add(object, object.persistentModelID)
    }
    links = UnsavedLinks()
    statements = []
    forgetDeletions()
    forgetReferences()
    dropNotedChange()
  }

  /// Runs `body` and saves; reverts all unsaved changes if either of them throws.
  ///
  /// Earlier unsaved changes are also saved or reverted.
  ///
  /// - Throws: The error of `body` or ``save()``.
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

  /// Records the pending change of an object; nil for none.
  func track(_ object: ManagedObject, _ kind: ManagedObject.Unsaved?) {
    guard object.unsaved != kind else { return }
    if kind == .delete || object.unsaved == .delete { lastRelated = nil }
    unsaved.set(kind, of: object)
    if kind == .delete { object.willDelete() }
  }

  // MARK: New objects

  func take(_ object: ManagedObject) throws(BatchError) {
    if object.modelContext === self {
      // As in SwiftData, inserting a deleted object restores it.
      if object.unsaved == .delete { keep(object) }
      return
    }
    adopt(object, try entity(ofNew: object))
  }

  /// Inserts a new object into the context of the objects to relate to it.
  ///
  /// If this throws, the object has not moved.
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
        "the object has no entity",
        at: "\(type(of: object))",
        remedy: "create it with insertNewObject(ofEntity:)"
      )
    }
    return try container.writableEntity(named: name)
  }

  /// Inserts a new object into this context, and then all new objects related to it, without
  /// recursion.
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

  /// Applies the values that were set on an object before it was in the context.
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
        "the object belongs to another context, or no longer to any",
        "get it from this context by its identifier"
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
      "only rows of tables can be written, and this one is in a view or virtual table",
      at: identifier.description
    )
  }
}

extension ModelContainer {
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
  /// Core Data's own files are read-only, since they have columns and tables that need maintenance.
  package var isWritable: Bool { !isReadOnly && coreData == nil }
}
