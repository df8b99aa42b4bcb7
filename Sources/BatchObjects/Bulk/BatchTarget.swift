import BatchJobs
import BatchIdentifiers
import BatchPlatform
import BatchSQLite

enum BatchTarget<Model: PersistentModel> {
  case predicate(Predicate<Model>?, includesSubentities: Bool)
  case identifiers(IdentifierList)
}

/// The rows that a batch request found at its start, with the condition that they must still
/// satisfy when their chunk is processed.
struct BatchSelection {
  let entity: ModelEntity
  let key: EntityKey
  let list: IdentifierList
  let condition: IdentifierQuery
}

extension ModelContext {
  /// The entity of a batch request, whose rows must be writable.
  func entityToWrite<Model: PersistentModel>(
    of type: Model.Type,
    _ chunkSize: Int
  ) throws(BatchError) -> ModelEntity {
    try beginReading()
    guard chunkSize > 0 else {
      throw BatchError(
        .invalidParameter,
        "the chunk size is \(chunkSize)",
        remedy: "give 1 or more"
      )
    }
    let entity = try container.entity(named: type.mapping.entityName)
    guard entity.entity.kind == .table else {
      throw BatchError(.readOnly, "only rows of tables can be written", at: entity.entity.name)
    }
    return entity
  }

  /// Finds the rows of a target.
  ///
  /// A predicate is applied again to the rows of each chunk, under the write lock, so a row that
  /// others have changed since is skipped. It is not applied again if changes of the request itself
  /// could affect later rows, which would make the result depend on the chunk size: if the
  /// predicate reads related rows, or if `changesOtherRows`.
  func selection<Model: PersistentModel>(
    of target: BatchTarget<Model>,
    _ entity: ModelEntity,
    changesOtherRows: Bool
  ) throws(BatchError) -> BatchSelection {
    var descriptor = FetchDescriptor<Model>()
    let list: IdentifierList
    switch target {
    case .predicate(let predicate, let includesSubentities):
      descriptor.predicate = predicate
      descriptor.includesSubentities = includesSubentities
      list = try fetchIdentifierList(descriptor)
    case .identifiers(let given):
      let identifiers = container.named(given)
      guard identifiers.isEmpty || identifiers.space == entity.space else {
        throw BatchError(
          .foreignIdentifier,
          "the identifiers belong to entity \(identifiers.header.entityName.quotedForMessage)"
            + " in store \(identifiers.header.storeIdentifier), and not of"
            + " \(entity.entity.name.quotedForMessage) in this one",
          remedy: "make one request per entity"
        )
      }
      list = identifiers
    }
    var condition = try descriptor.query(of: entity, in: container, looksUpIdentifiers: false)
    if changesOtherRows || condition.readsRelatedRows {
      descriptor.predicate = nil
      condition = try descriptor.query(of: entity, in: container)
    }
    return BatchSelection(
      entity: entity,
      key: try entity.entity.requireKey(),
      list: list,
      condition: condition
    )
  }

  /// Calls `body` to change the rows of a selection, one chunk and one transaction at a time.
  func forEachChunk(
    of selection: BatchSelection,
    size: Int,
    _ report: BatchReport,
    _ body: (ChunkKeys, Connection) throws(BatchError) -> Void
  ) throws(BatchError) {
    var position = 0
    while position < selection.list.count {
      let range = position..<min(position + size, selection.list.count)
      let keys = try ChunkKeys(selection.list.packed, range, key: selection.key)
      try writeChunk(ofStore: selection.entity.store, report) { writer throws(BatchError) in
        try body(keys, writer)
      }
      position = range.upperBound
    }
  }

  /// Calls `body` to write to a store in a transaction, which the history also records.
  func writeChunk(
    ofStore store: Int,
    _ report: BatchReport,
    _ body: (Connection) throws(BatchError) -> Void
  ) throws(BatchError) {
    try requireOwnSave()
    let writer = try writableConnection(to: store)
    try container.turns[store].withLock { _ throws(BatchError) in
      try writer.transaction(.immediate) { () throws(BatchError) in
        try refuseIfMoved(store)
        report.beginTransaction(by: author, in: writer)
        try body(writer)
      }
    }
  }
}
