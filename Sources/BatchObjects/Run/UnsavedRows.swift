import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// The unsaved changes of a context as values: rows to update, delete and insert in sets.
///
/// They are collected on the thread of the context, so the holder of the write lock needs no
/// objects.
struct UnsavedRows: Sendable {
  /// New rows that set the same columns, without their keys.
  private struct Insertion: Sendable {
    let statement: InsertStatement
    let sequence: KeySequence
    var rows: [[SQLValue]]
  }

  private var updates: [UpdateSet] = []
  private var deletions: [DeletionSet] = []
  private var insertions: [Insertion] = []

  /// Collects the unsaved rows of one store; nil if a save has to check the objects.
  ///
  /// That is the case if related objects are deleted or get keys, if there is a history, or if keys
  /// are set or assigned. `connection` is only used to read the schema.
  init?(of context: ModelContext, inStore store: Int, _ connection: Connection) throws(BatchError) {
    let container = context.container
    guard !container.configurations[store].tracksHistory, context.links.isEmpty,
      context.statements.isEmpty, case .error = context.mergePolicy
    else { return nil }
    var sets: [ManagedObject.Unsaved: [ManagedObject]] = [:]
    for object in context.unsaved.all() {
      guard let kind = object.unsaved, object.references.isEmpty,
        let entity = object.entity, entity.store == store, entity.entity.key?.isRowID == true
      else { return nil }
      sets[kind, default: []].append(object)
    }
    for (entity, objects) in (sets[.update] ?? []).byEntity() {
      guard let entity, let (keys, objects) = objects.byRowID(),
        let set = try UpdateSet(objects, keys: keys, entity, key: { _ in nil })
      else { return nil }
      updates.append(set)
    }
    for (entity, objects) in (sets[.delete] ?? []).byEntity() {
      // Only the objects know how rules and foreign keys affect related objects.
      guard let entity, container.relationships[store].of(entity).isEmpty,
        let (keys, objects) = objects.byRowID(),
        let set = try DeletionSet(objects, keys: keys, entity)
      else { return nil }
      deletions.append(set)
    }
    for object in sets[.insert] ?? [] {
      // A row with the unique values may exist already.
      guard let entity = object.entity, entity.uniques.isEmpty,
        object.identity?.isTemporary ?? true,
        try append(object, entity, connection)
      else { return nil }
    }
  }

  /// Adds a new row; returns false if its key or its other columns are unknown before it is
  /// inserted.
  private mutating func append(
    _ object: ManagedObject,
    _ entity: ModelEntity,
    _ connection: Connection
  ) throws(BatchError) -> Bool {
    let slots = object.changes.slots
    guard !slots.contains(where: { entity.keySlots.contains($0) }) else { return false }
    if insertions.last?.statement.entity !== entity || insertions.last?.statement.set != slots {
      let statement = try InsertStatement(entity, setting: slots)
      guard try statement.isKnownAfterwards(in: connection) else { return false }
      insertions.append(
        Insertion(statement: statement, sequence: try KeySequence(of: entity.entity), rows: [])
      )
    }
    let statement = insertions[insertions.count - 1].statement
    let values = statement.slots.map { statement.fixed[$0] ?? object.changes[$0] ?? .null }
    let identifier = entity.space.identifier(.integer(0))
    guard let row = entity.row(of: identifier, setting: statement.slots, to: values) else {
      return false
    }
    try entity.validate(row, of: object.persistentModelID)
    insertions[insertions.count - 1].rows.append(values)
    return true
  }

  /// Writes all rows or none, within the caller's transaction.
  ///
  /// Returns the changes; nil if nothing was written, since rows have changed or a set would differ
  /// from single statements. If this throws, the caller rolls back.
  func write(in connection: Connection) throws(BatchError) -> ModelChanges? {
    if !insertions.isEmpty || !deletions.isEmpty {
      try connection.execute("PRAGMA defer_foreign_keys = ON")
    }
    var changes = ModelChanges()
    for set in updates {
      guard try set.writeAllOrNone(in: connection) else { return nil }
      changes.updated += set.keys.map { set.entity.space.identifier(.integer($0)) }
    }
    for set in deletions {
      guard try set.writeAllOrNone(in: connection) else { return nil }
      changes.deleted += set.keys.map { set.entity.space.identifier(.integer($0)) }
    }
    for insertion in insertions {
      let keys = try insertion.sequence.take(insertion.rows.count, after: [], in: connection)
      let statement = try connection.prepare(insertion.statement.sql)
      for (key, values) in zip(keys, insertion.rows) {
        let identifier = insertion.statement.entity.space.identifier(.integer(key))
        changes.inserted.append(try insertion.statement.run(statement, identifier, values))
      }
    }
    return changes
  }
}
