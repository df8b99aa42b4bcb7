import BatchRuns
import BatchIdentifiers
import BatchSQLite

struct EachObjectHandler<Model: PersistentModel>: RowHandler {
  private let container: ModelContainer
  private let entity: ModelEntity
  /// The column to read for each column of the entity.
  private let reads: [Int]
  /// The column to write for each column of the entity; nil if it is not in `writes`.
  private let writes: [Int?]
  private let writeCount: Int
  private let body: @Sendable (_ object: Model, _ idempotencyKey: () -> String) throws -> Void

  /// Makes a handler for the columns of a job.
  ///
  /// Throws `unknownAttribute` if the class has a column that the job does not read,
  /// `invalidMapping` if the class does not fit the table.
  init(
    _ columns: TransformColumns,
    _ body: @escaping @Sendable (_ object: Model, _ idempotencyKey: () -> String) throws -> Void
  ) throws(BatchError) {
    guard let store = columns.store as? Store else {
      throw BatchError(
        .invalidMapping,
        "objects of \(Model.mapping.entityName) are made of the rows of SQLite only",
        remedy: "use a handler of rows or columns: TransformHandler.rows, TransformHandler.columns"
      )
    }
    // The lane writes the values: the context of the objects cannot save.
    container = try ModelContainer(for: [Model.self], stores: [store.readOnly])
    guard let entity = container.entities[0][Model.mapping.entityName] else {
      throw BatchError(
        .invalidMapping,
        "the database has no table \(Model.mapping.table.quotedForMessage)",
        at: Model.mapping.entityName
      )
    }
    self.entity = entity
    reads = try entity.columns.map { column throws(BatchError) in
      try TransformColumns.index(of: column, in: columns.reads, .reads)
    }
    writes = entity.columns.map { column in
      columns.writes.firstIndex { SQLName.equal($0, column) }
    }
    writeCount = columns.writes.count
    self.body = body
  }

  func changes(
    of rows: ChunkRows,
    run: String,
    onFailure policy: FailurePolicy,
    holding byteLimit: Int
  ) throws(BatchError) -> RowChanges {
    let context = ModelContext(container)
    context.registry.reserveCapacity(rows.count)
    let start = ContinuousClock.now
    var changes = RowChanges(ofRows: rows.count, columns: writeCount)
    for row in 0..<rows.count {
      do {
        let values = reads.map { rows.values.value(row, $0) }
        let identifier = entity.space.identifier(rows.key(of: row))
        let object = try context.object(of: identifier, entity, values, readAt: start)
        // An object that the handler has already seen gets the values that were read now.
        if case .read(_, at: start) = object.stored {} else { object.take(values, readAt: start) }
        try body(context.cast(object, as: Model.self)) { rows.idempotencyKey(of: row, run: run) }
        try context.throwNoted()
        try take(object, row, from: context, into: &changes.values)
      } catch {
        changes.fail(row, error)
        if changes.failures.count > policy.limit { break }
        context.reset()
      }
      if changes.values.bytes.count >= byteLimit {
        changes.values.count = row + 1
        break
      }
    }
    return changes
  }

  /// Collects the values set on an object, and checks that nothing else was set.
  private func take(
    _ object: ManagedObject,
    _ row: Int,
    from context: ModelContext,
    into values: inout ValueBlock
  ) throws(BatchError) {
    guard context.hasChanges else { return }
    guard context.unsaved.areOnly(object), object.isUpdated, context.links.isEmpty else {
      throw BatchError(
        .handlerFailed,
        "the handler inserted, deleted or changed another object than the one it was given",
        remedy: "set properties of that object only"
      )
    }
    for (slot, value) in object.changes {
      guard let column = writes[slot] else {
        throw BatchError(
          .handlerFailed,
          "the handler set column \(entity.columns[slot].quotedForMessage)",
          advice: "add it to \(.writes)"
        )
      }
      try values.set(row, column, value)
    }
    object.dropChanges()
    context.track(object, nil)
  }
}
