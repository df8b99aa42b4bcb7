public import BatchIdentifiers
import BatchSQLite

extension ModelContext {
  /// Writes all unsaved changes: insertions, changed values and deletions.
  ///
  /// Each store gets one transaction, which commits or leaves no trace. With several stores,
  /// everything is written before the first commit; only if a commit fails after another has
  /// succeeded, one store is saved and the other is not, and the objects show which. If this
  /// throws, changes that were not written remain unsaved. Saving nothing succeeds.
  ///
  /// Before anything is written, ``ManagedObject/willSave()`` and ``ManagedObject/validate()`` are
  /// called. If a row already has the unique values of a new object, see
  /// ``ModelProperty/unique(_:)-(String)``, the new object becomes the object of that row: its set
  /// values are written to the row; other values and related objects stay. If several such objects
  /// are saved at once, the last one wins. If the context already has an object of the row, that
  /// object gets the values too, and look-ups still find it.
  ///
  /// - Throws: `BatchError` with code `mergeConflict` for rows that others have changed, see
  ///   ``mergePolicy``; `validationFailed` for objects that do not satisfy their classes and
  ///   `constraint` for objects that the database refuses, both with all `saveProblems`;
  ///   `missingKey` for a new object without a key; `valueMismatch` for a row that would not fit
  ///   its class; `busy` if another process holds the database for longer than the busy timeout;
  ///   `readOnly`; `nestedSave` within a transaction that its owner commits.
  /// - Complexity: Two statements per object.
  public func save() throws(BatchError) {
    try throwNoted()
    try requireOwnSave()
    guard hasChanges else { return }
    let told = try prepareToSave()
    try save(storesToSave()[...])
    for object in told { object.didSave() }
  }

  /// Runs `body`, which must not commit: the caller saves its changes.
  package func withoutSaving<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    isSavedByOwner = true
    defer { isSavedByOwner = false }
    return try body()
  }

  /// Refuses to commit a part of changes that their owner commits as a whole.
  func requireOwnSave() throws(BatchError) {
    guard isSavedByOwner else { return }
    throw BatchError(
      .nestedSave,
      "this work is saved as a whole, when it is done",
      remedy: "leave saving to the caller; use another context for batch requests"
    )
  }

  private func storesToSave() -> [Int] {
    var isChanged = container.stores.indices.map { !links.of(store: $0).isEmpty }
    for statement in statements { isChanged[statement.store] = true }
    for object in unsaved.all() {
      if let entity = object.entity { isChanged[entity.store] = true }
    }
    return container.stores.indices.filter { isChanged[$0] }
  }

  /// Gives new objects the identifiers that they will have once they are saved.
  ///
  /// Objects with permanent identifiers keep them, and all objects remain unsaved.
  ///
  /// - Throws: `BatchError` with code `missingKey` for an object without a value for a key that
  ///   must be set; `noContext` for an object that is not in this context; an error of SQLite. No
  ///   identifier has then changed.
  public func obtainPermanentIdentifiers(for objects: [ManagedObject]) throws(BatchError) {
    try throwNoted()
    let objects = objects.filter { $0.persistentModelID.isTemporary }
    if let other = objects.first(where: { $0.modelContext !== self }) {
      throw Self.foreign(other)
    }
    for store in container.stores.indices {
      let new = objects.filter { $0.unsaved == .insert && $0.entity?.store == store }
      if new.isEmpty { continue }
      let writer = try writableConnection(to: store)
      let identifiers = try container.turns[store].withLock { _ throws(BatchError) in
        try writer.transaction(.immediate) { () throws(BatchError) in
          try refuseIfMoved(store)
          return try KeyAllocation.identifiers(of: new, in: writer)
        }
      }
      for (object, identifier) in identifiers { rename(object, identifier) }
    }
  }

  /// Saves to some stores.
  ///
  /// The transaction of each store contains those of the following ones, always in the same order,
  /// so no two contexts wait for each other.
  private func save(_ stores: ArraySlice<Int>) throws(BatchError) {
    guard let store = stores.first else { return }
    let writer = try writableConnection(to: store)
    try container.turns[store].withLock { _ throws(BatchError) in
      var manner = StoreSave.Manner.plain
      while true {
        var isOwn = true
        var written: Written?
        do throws(BatchError) {
          try writer.transaction(.immediate) { () throws(BatchError) in
            try refuseIfMoved(store)
            written = try write(toStore: store, through: writer, manner)
            isOwn = false
            try save(stores.dropFirst())
            // An error of the commit belongs to this store.
            isOwn = true
          }
          // Objects are updated in the order of the commits, so before the next commit.
          if let written { finish(written) }
          return
        } catch {
          written?.discard()
          guard isOwn else { throw error }
          if manner == .plain, error.isUniqueViolation {
            manner = .vacating
          } else {
            throw naming(error, inStore: store, through: writer)
          }
        }
      }
    }
  }

  struct Written {
    fileprivate let store: Int
    fileprivate let save: StoreSave
    fileprivate let propagation: DeletionPropagation
    fileprivate let upserts: Upserts

    var problems: [SaveProblem] { save.problems }

    func discard() {
      upserts.undo()
      propagation.undo()
    }
  }

  /// Writes the unsaved changes of one store, within the caller's transaction.
  ///
  /// The result is for ``finish(_:)`` after the commit. If this throws, all objects are unchanged.
  func write(
    toStore store: Int,
    through writer: Connection,
    _ manner: StoreSave.Manner
  ) throws(BatchError) -> Written {
    var propagation = DeletionPropagation(self)
    var upserts = Upserts(self)
    do throws(BatchError) {
      // The current state of the store counts, which another connection may not see.
      let save = try reading(store, through: writer) { () throws(BatchError) in
        try propagation.propagate(inStore: store)
        try upserts.resolve(inStore: store, through: writer)
        let objects = upserts.remaining(unsaved.all().filter { $0.entity?.store == store })
        let history =
          container.configurations[store].tracksHistory && manner != .trial
          ? try HistoryRecorder(objects, author: author, policy: mergePolicy, in: container, writer)
          : nil
        var save = StoreSave(connection: writer, policy: mergePolicy, manner: manner)
        try save.write(
          objects,
          container.relationships[store],
          links: upserts.remaining(links.of(store: store)),
          partings: propagation.partings
        )
        try history?.record(save)
        for statement in statements where statement.store == store && manner != .trial {
          try writer.executeInside(statement.sql, statement.values)
        }
        return save
      }
      return Written(store: store, save: save, propagation: propagation, upserts: upserts)
    } catch {
      upserts.undo()
      propagation.undo()
      throw error
    }
  }

  func changesStores(but store: Int) -> Bool {
    container.stores.count > 1 && storesToSave().contains { $0 != store }
  }

  func saveStores(but store: Int) throws(BatchError) {
    try save(storesToSave().filter { $0 != store }[...])
  }

  /// Updates objects to their committed state, and notifies other contexts.
  func finish(_ written: Written) {
    links.remove(store: written.store)
    statements.removeAll { $0.store == written.store }
    undecidedDeletions.removeAll { $0.entity?.store == written.store }
    consequences = [:]
    generation += 1
    written.upserts.prepareToFinish()
    finish(written.save)
    written.upserts.finish()
    let changes = ModelChanges(
      inserted: written.save.inserted,
      updated: written.save.updated,
      deleted: written.save.deleted
    )
    container.changes.send(changes, except: inbox)
  }

  func writableConnection(to store: Int) throws(BatchError) -> Connection {
    try requireWritable(store)
    return try writer(to: store)
  }

  func requireWritable(_ store: Int) throws(BatchError) {
    guard container.stores[store].isWritable else {
      throw BatchError(
        .readOnly,
        "the store cannot be written through a context",
        at: container.stores[store].path,
        remedy: "check isReadOnly of its configuration; Core Data stores are read-only"
      )
    }
  }

  private func finish(_ save: StoreSave) {
    // Deleted objects are removed first: a new object may have the key of a deleted one.
    for case (let object, .deleted) in save.outcomes {
      registry.remove(object)
      unsaved.set(nil, of: object)
      detach(object)
    }
    for (object, outcome) in save.outcomes {
      switch outcome {
      case .deleted:
        continue
      case .stored(let identifier, let row):
        rename(object, identifier)
        object.take(row)
      case .gone:
        object.stored = .gone(nil)
      }
      object.dropChanges()
      unsaved.set(nil, of: object)
    }
  }

  func rename(_ object: ManagedObject, _ identifier: PersistentIdentifier) {
    let old = object.persistentModelID
    guard old != identifier else { return }
    registry.remove(object)
    var stale = [registry[identifier]].compactMap(\.self)
    if let entity = object.entity { stale += objectsOfRelatives(identifier, entity) }
    // The same save deletes an object with this identifier, which is removed first.
    for other in stale where !other.hasChanges { forget(other) }
    object.identity = identifier
    registry.add(object, identifier)
  }
}

extension BatchError.Code {
  /// A commit was attempted within work that its owner commits as a whole.
  public static let nestedSave = Self(rawValue: "nestedSave")
}
