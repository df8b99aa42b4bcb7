import BatchJobs
public import BatchIdentifiers
import BatchSQLite

extension ModelContext {
  /// Fetches the objects that a descriptor describes, creating them one batch at a time.
  ///
  /// - Parameters:
  ///   - descriptor: The objects and their order; unsaved objects come last.
  ///   - batchSize: The number of objects in memory at a time.
  /// - Returns: A collection that creates objects on demand.
  /// - Throws: An error of `fetch(_:)`, or `invalidParameter` for a batch size below 1.
  /// - Complexity: One statement for the identifiers, and one per batch that is used.
  public func fetch<Model: PersistentModel>(
    _ descriptor: FetchDescriptor<Model>,
    batchSize: Int
  ) throws(BatchError) -> FetchResultsCollection<Model> {
    let found = try find(descriptor, batchSize: batchSize)
    return FetchResultsCollection(
      count: found.window.count,
      batchSize: batchSize,
      resets: { self.resetCount }
    ) { range in
      self.modelsOrFaults(found, in: range)
    }
  }

  /// Fetches the identifiers of the objects that a descriptor describes, unpacking them one batch
  /// at a time.
  ///
  /// - Parameters:
  ///   - descriptor: The objects and their order; unsaved objects come last.
  ///   - batchSize: The number of identifiers unpacked at a time.
  /// - Returns: A collection that unpacks identifiers on demand.
  /// - Throws: An error of `fetchIdentifiers(_:)`, or `invalidParameter` for a batch size below 1.
  /// - Complexity: One statement; one or two bytes per identifier.
  public func fetchIdentifiers<Model: PersistentModel>(
    _ descriptor: FetchDescriptor<Model>,
    batchSize: Int
  ) throws(BatchError) -> FetchResultsCollection<PersistentIdentifier> {
    let found = try find(descriptor, batchSize: batchSize)
    return FetchResultsCollection(
      count: found.window.count,
      batchSize: batchSize,
      resets: { 0 }
    ) { range in
      found.identifiers(in: range)
    }
  }

  /// Calls `body` with each object that a descriptor describes, creating and releasing them one
  /// batch at a time.
  ///
  /// - Parameters:
  ///   - descriptor: The objects and their order.
  ///   - batchSize: The number of objects in memory at a time.
  ///   - allowEscapingMutations: Whether objects may have unsaved changes, which keep them in
  ///     memory.
  ///   - body: Called with each object.
  /// - Throws: The error of `body`; an error of `fetch(_:)`; `unsavedChanges` if the context has
  ///   changes after a batch although these are not allowed.
  public func enumerate<Model: PersistentModel>(
    _ descriptor: FetchDescriptor<Model>,
    batchSize: Int = 5_000,
    allowEscapingMutations: Bool = false,
    _ body: (Model) throws -> Void
  ) throws {
    let found = try find(descriptor, batchSize: batchSize)
    for start in stride(from: 0, to: found.window.count, by: batchSize) {
      let range = start..<min(start + batchSize, found.window.count)
      let positions = range.map { found.window.lowerBound + $0 }
      // A row that was deleted in the meantime is skipped, as if the fetch had not found it.
      var models = try fetch(
        positions.filter { $0 < found.stored.count }.map { found.stored[$0] },
        as: Model.self,
        skippingMissing: true
      )
      models += positions.filter { $0 >= found.stored.count }
        .map { found.unsaved[$0 - found.stored.count] }
      for model in models { try body(model) }
      try throwNoted()
      guard !allowEscapingMutations, hasChanges else { continue }
      throw BatchError(
        .unsavedChanges,
        "objects were changed and not saved while they were enumerated",
        remedy: "save, or pass allowEscapingMutations: true"
      )
    }
  }

  /// The results of a fetch: rows as a packed list, and unsaved results as objects.
  ///
  /// Unsaved objects are in memory anyway, and a save gives them other identifiers.
  private struct Found<Model: PersistentModel> {
    let stored: IdentifierList
    var unsaved: [Model] = []
    /// The part of the results that remains after offset and limit.
    var window: Range<Int>

    func identifiers(in range: Range<Int>) -> [PersistentIdentifier] {
      range.map { index in
        let position = window.lowerBound + index
        return position < stored.count
          ? stored[position] : unsaved[position - stored.count].persistentModelID
      }
    }
  }

  private func find<Model: PersistentModel>(
    _ descriptor: FetchDescriptor<Model>,
    batchSize: Int
  ) throws(BatchError) -> Found<Model> {
    guard batchSize > 0 else {
      throw BatchError(
        .invalidParameter,
        "the batch size is \(batchSize)",
        remedy: "give 1 or more"
      )
    }
    return try read(Model.self) { entity, connection throws(BatchError) in
      let store = container.stores[entity.store].identity
      guard let overlay = try overlay(for: descriptor, of: entity, connection) else {
        let query = try descriptor.query(
          of: entity,
          in: container,
          counting: unsavedRelated(for: descriptor)
        )
        let stored = try query.fetch(in: connection, store: store)
        return Found(stored: stored, window: 0..<stored.count)
      }
      let query = try descriptor.widened.query(
        of: entity,
        in: container,
        excluding: overlay.excluded,
        counting: unsavedRelated(for: descriptor)
      )
      let stored = try query.fetch(in: connection, store: store)
      let unsaved = overlay.matching
      let all = 0..<(stored.count + unsaved.count)
      let window = all.dropFirst(descriptor.fetchOffset ?? 0).prefix(descriptor.fetchLimit ?? .max)
      return Found(stored: stored, unsaved: unsaved, window: window.startIndex..<window.endIndex)
    }
  }

  /// The objects at some positions; faults for those whose rows are gone.
  private func modelsOrFaults<Model: PersistentModel>(
    _ found: Found<Model>,
    in range: Range<Int>
  ) -> [Model] {
    let positions = range.map { found.window.lowerBound + $0 }
    let stored = positions.filter { $0 < found.stored.count }.map { found.stored[$0] }
    var objects: [PersistentIdentifier: ManagedObject] = [:]
    do {
      objects = try self.objects(of: stored)
    } catch {
      note(error)
    }
    return positions.map { position in
      if position >= found.stored.count { return found.unsaved[position - found.stored.count] }
      let identifier = found.stored[position]
      if let model = (objects[identifier] ?? model(for: identifier)) as? Model { return model }
      note(
        BatchError(
          .modelTypeMismatch,
          "the object is no \(Model.self) any more",
          at: identifier.description,
          remedy: "fetch again"
        )
      )
      return Model()
    }
  }
}

extension BatchError.Code {
  /// A context has unsaved changes that are not allowed.
  public static let unsavedChanges = Self(rawValue: "unsavedChanges")
}
