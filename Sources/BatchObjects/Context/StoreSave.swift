import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// The writes of a save to one store, within the caller's transaction.
///
/// Objects do not change yet: their outcomes are recorded, and apply once the transaction commits.
/// Rows are first updated, then deleted, then inserted: a row that moves to another parent is not
/// deleted with the old one, and a key that becomes free can be reused.
struct StoreSave {
  enum Outcome {
    /// The object has this row, and no unsaved changes.
    case stored(PersistentIdentifier, [SQLValue])
    case deleted
    case gone
  }

  enum Manner {
    /// The error is thrown.
    case plain
    /// If one row of the save has unique values that another will get, they are removed from the
    /// first row beforehand; other errors are thrown.
    case vacating
    /// Errors are recorded per object, and the save continues; nothing of it may be committed.
    case trial
  }

  let connection: Connection
  let policy: MergePolicy
  let manner: Manner
  var problems: [SaveProblem] = []
  private(set) var outcomes: [(object: ManagedObject, outcome: Outcome)] = []
  private(set) var inserted: [PersistentIdentifier] = []
  private(set) var updated: [PersistentIdentifier] = []
  private(set) var deleted: [PersistentIdentifier] = []
  private(set) var conflicts: [MergeConflict] = []
  /// Objects whose rows were unchanged, before unique values were removed from them.
  private var unchangedBefore: Set<ObjectIdentifier> = []
  private var identifiers: [ObjectIdentifier: PersistentIdentifier] = [:]
  /// Objects whose only changes are pairs.
  private var touched: Set<PersistentIdentifier> = []
  private(set) var writtenLinks: [UnsavedLinks.Link] = []
  /// Written objects whose rows may differ from the written values.
  private var unread: [(ManagedObject, ModelEntity, PersistentIdentifier)] = []

  init(connection: Connection, policy: MergePolicy, manner: Manner) {
    self.connection = connection
    self.policy = policy
    self.manner = manner
  }

  /// Writes some objects of the store.
  ///
  /// Throws `mergeConflict` for all conflicts that the policy does not resolve, `missingKey`,
  /// `valueMismatch` for a row that does not fit its class, and errors of SQLite.
  mutating func write(
    _ objects: [ManagedObject],
    _ relationships: RelationshipGraph,
    links: [UnsavedLinks.Link],
    partings: [(table: JoinTable, identifier: PersistentIdentifier)]
  ) throws(BatchError) {
    // Objects may refer to each other in any order, so references are checked after all are
    // written.
    try connection.execute("PRAGMA defer_foreign_keys = ON")
    let allocated = try KeyAllocation.identifiers(
      of: objects.filter { $0.unsaved == .insert },
      in: connection
    )
    for (object, identifier) in allocated { identifiers[ObjectIdentifier(object)] = identifier }
    if manner != .plain {
      unchangedBefore = try unchanged(objects.filter { $0.unsaved != .insert })
      try vacate(objects, unchanged: unchangedBefore)
    }
    try update(objects.filter { $0.unsaved == .update })
    for parting in partings { try part(parting.identifier, in: parting.table) }
    let deleted = Self.deletionOrder(objects, relationships.depths)
    for table in Set(deleted.compactMap { $0.entity?.entity.table }).sorted() {
      for sequence in try KeySequence.reached(byDeletingFrom: [table], in: connection) {
        try sequence.remember(in: connection)
      }
    }
    try delete(deleted)
    try insert(allocated)
    for link in links { try write(link) }
    guard conflicts.isEmpty else { throw BatchError(conflicts) }
    // Defaults, generated columns and triggers may affect the final row.
    for (object, entity, identifier) in unread {
      if let row = try entity.row(of: identifier, in: connection) {
        try entity.validate(row, of: identifier)
        outcomes.append((object, .stored(identifier, row)))
      } else {
        outcomes.append((object, .gone))
      }
    }
    if manner == .trial { try noteForeignKeys(of: objects) }
  }

  /// The values set on an object, with the keys of new objects that it refers to.
  func values(of object: ManagedObject) -> [Int: SQLValue] {
    var values: [Int: SQLValue] = [:]
    for (slot, value) in object.changes { values[slot] = value }
    for (slot, reference) in object.references { values[slot] = key(of: reference) ?? .null }
    return values
  }

  /// The key that an object has after this save; nil if it has none.
  private func key(of object: ManagedObject) -> SQLValue? {
    let identifier = identifiers[ObjectIdentifier(object)] ?? object.identity
    guard object.modelContext != nil else { return nil }
    return (identifier?.key?.components.first).map { SQLValue($0) }
  }

  // MARK: Updating

  /// Writes the values set on some objects: in sets per entity, if this has the same effect as
  /// single statements and others have not changed the rows.
  private mutating func update(_ objects: [ManagedObject]) throws(BatchError) {
    for (entity, set) in objects.byEntity() {
      if let entity, entity.entity.key?.isRowID == true, set.count > 1, manner == .plain,
        try updateTogether(set, entity)
      {
        continue
      }
      // Checked before the first row changes: effects of triggers on later rows are not conflicts.
      let unchanged = try set.count > 1 && manner == .plain ? unchanged(set) : unchangedBefore
      for object in set {
        let isUnchanged = unchanged.contains(ObjectIdentifier(object))
        let written = try trying(object) { save throws(BatchError) in
          try save.updateAlone(object, isUnchanged: isUnchanged)
        }
        guard let (entity, identifier) = written ?? nil else { continue }
        unread.append((object, entity, identifier))
        updated.append(identifier)
      }
    }
  }

  private func unchanged(_ objects: [ManagedObject]) throws(BatchError) -> Set<ObjectIdentifier> {
    var unchanged: Set<ObjectIdentifier> = []
    var known: Set<PersistentIdentifier> = []
    for object in objects {
      // If two objects have the same row, the first one changes it for the second.
      guard known.insert(object.persistentModelID).inserted,
        let entity = object.entity, let row = object.row, !object.isMerged,
        let current = try entity.row(of: object.persistentModelID, in: connection),
        entity.isSameVersion(current, row)
      else { continue }
      unchanged.insert(ObjectIdentifier(object))
    }
    return unchanged
  }

  /// Writes the values of objects of an entity, many with one statement; returns false if nothing
  /// was done.
  private mutating func updateTogether(
    _ objects: [ManagedObject],
    _ entity: ModelEntity
  ) throws(BatchError) -> Bool {
    guard let (keys, objects) = objects.byRowID(),
      let set = try UpdateSet(objects, keys: keys, entity, key: { key(of: $0) }),
      try set.writeAllOrNone(in: connection)
    else { return false }
    let keepsAll = entity.generatedSlots.isEmpty
    for (place, object) in objects.enumerated() {
      let identifier = object.persistentModelID
      updated.append(identifier)
      let old = object.row ?? []
      let new = set.slots.indices.map { set.values.value(place, $0, or: old[set.slots[$0]]) }
      if keepsAll, let row = entity.row(old, setting: set.slots, to: new) {
        outcomes.append((object, .stored(identifier, row)))
      } else {
        unread.append((object, entity, identifier))
      }
    }
    return true
  }

  /// Writes the values set on an object; returns nil if there was nothing to write.
  private mutating func updateAlone(
    _ object: ManagedObject,
    isUnchanged: Bool
  ) throws(BatchError) -> (ModelEntity, PersistentIdentifier)? {
    let identifier = object.persistentModelID
    guard let entity = object.entity, let key = identifier.key else { return nil }
    if isUnchanged {
      if try update(key, entity, setting: values(of: object), ifStill: nil) {
        return (entity, identifier)
      }
      if try entity.row(of: identifier, in: connection) == nil {
        // A trigger on an earlier row has deleted it.
        outcomes.append((object, .gone))
        return nil
      }
    }
    let isMerged = object.isMerged
    if let row = object.row, !isMerged,
      try update(key, entity, setting: values(of: object), ifStill: row)
    {
      return (entity, identifier)
    }
    guard let current = try entity.row(of: identifier, in: connection) else {
      return try restore(object, entity) ? (entity, identifier) : nil
    }
    var changes = values(of: object)
    let expected = (object.row ?? current).replacing(object.bases)
    // SQLite may report a difference where there is none: it repairs text that is not UTF-16 when
    // reading it.
    if isMerged ? !current.isIdentical(to: expected) : !entity.isSameVersion(current, expected) {
      guard let settled = try settle(object, expected, current, entity) else { return nil }
      changes = settled
    }
    if try !update(key, entity, setting: changes, ifStill: nil) {
      throw Self.ignored("update", identifier)
    }
    return (entity, identifier)
  }

  private mutating func settle(
    _ object: ManagedObject,
    _ row: [SQLValue],
    _ current: [SQLValue],
    _ entity: ModelEntity
  ) throws(BatchError) -> [Int: SQLValue]? {
    switch policy {
    case .error:
      report(object, row, current, entity)
      return nil
    case .mergeByPropertyObjectTrump:
      return values(of: object)
    case .mergeByPropertyStoreTrump:
      let changes = values(of: object).filter { current[$0.key].isIdentical(to: row[$0.key]) }
      if !changes.isEmpty { return changes }
    case .overwrite:
      return entity.writable(row).merging(values(of: object)) { $1 }
    case .rollback:
      break
    }
    try keep(object, current, entity)
    return nil
  }

  private mutating func keep(
    _ object: ManagedObject,
    _ current: [SQLValue],
    _ entity: ModelEntity
  ) throws(BatchError) {
    try entity.validate(current, of: object.persistentModelID)
    outcomes.append((object, .stored(object.persistentModelID, current)))
  }

  /// Resolves the change of a deleted row; returns true if the row exists again.
  private mutating func restore(
    _ object: ManagedObject,
    _ entity: ModelEntity
  ) throws(BatchError) -> Bool {
    let row = object.stored.latest
    switch policy {
    case .error:
      report(object, row, nil, entity)
      return false
    case .mergeByPropertyObjectTrump, .overwrite:
      let values = entity.writable(row ?? []).merging(values(of: object)) { $1 }
      // If the row was never read, only the set values are known.
      guard row != nil || entity.writableSlots.allSatisfy({ values[$0] != nil }) else {
        report(object, nil, nil, entity)
        return false
      }
      _ = try insert(values, as: object.persistentModelID, entity)
      return true
    case .mergeByPropertyStoreTrump, .rollback:
      outcomes.append((object, .gone))
      return false
    }
  }

  /// Updates a row if it is unchanged; returns false otherwise.
  private func update(
    _ key: PrimaryKey,
    _ entity: ModelEntity,
    setting changes: [Int: SQLValue],
    ifStill row: [SQLValue]?
  ) throws(BatchError) -> Bool {
    let changes = changes.sorted { $0.key < $1.key }
    let compared = row.map { entity.compared($0) } ?? []
    let first = try entity.entity.requireKey().columns.count + 1
    var assignments = changes.enumerated().map { index, change in
      "\(SQLName.quoted(entity.columns[change.key])) = ?\(first + index)"
    }
    if let version = entity.versionSlot.map({ SQLName.quoted(entity.columns[$0]) }) {
      assignments.append("\(version) = coalesce(\(version), 0) + 1")
    }
    let condition = try entity.condition(
      comparing: compared.map(\.slot),
      from: first + changes.count
    )
    let statement = try connection.prepare(
      """
      UPDATE \(SQLName.quoted(entity.entity.table)) SET \(assignments.joined(separator: ", ")) \
      WHERE \(condition)
      """
    )
    try statement.bind(key)
    for (index, value) in (changes.map(\.value) + compared.map(\.value)).enumerated() {
      try statement.bind(value, at: first + index)
    }
    try statement.run()
    return connection.changes > 0
  }

  // MARK: Deleting

  /// Deletes the rows of some objects in order: consecutive rows of an entity together, if this has
  /// the same effect as single statements and others have not changed the rows.
  private mutating func delete(_ objects: [ManagedObject]) throws(BatchError) {
    var start = objects.startIndex
    while start < objects.endIndex {
      let entity = objects[start].entity
      let end = objects[start...].firstIndex { $0.entity !== entity } ?? objects.endIndex
      let set = objects[start..<end]
      start = end
      guard let entity else { continue }
      if entity.entity.key?.isRowID == true, set.count > 1, manner == .plain,
        try deleteTogether(Array(set), entity)
      {
        continue
      }
      let unchanged =
        try set.count > 1 && manner == .plain ? unchanged(Array(set)) : unchangedBefore
      for object in set {
        let isUnchanged = unchanged.contains(ObjectIdentifier(object))
        _ = try trying(object) { save throws(BatchError) in
          try save.deleteAlone(object, entity, isUnchanged: isUnchanged)
        }
      }
    }
  }

  /// Deletes rows of objects of an entity, many with one statement; returns false if nothing was
  /// done.
  private mutating func deleteTogether(
    _ objects: [ManagedObject],
    _ entity: ModelEntity
  ) throws(BatchError) -> Bool {
    guard let (keys, objects) = objects.byRowID(),
      let set = try DeletionSet(objects, keys: keys, entity),
      try set.writeAllOrNone(in: connection)
    else { return false }
    for object in objects {
      outcomes.append((object, .deleted))
      deleted.append(object.persistentModelID)
    }
    return true
  }

  private mutating func deleteAlone(
    _ object: ManagedObject,
    _ entity: ModelEntity,
    isUnchanged: Bool
  ) throws(BatchError) {
    let identifier = object.persistentModelID
    guard !identifier.isTemporary else {
      // A new object that a rule deletes never had a row.
      return outcomes.append((object, .deleted))
    }
    if try !delete(identifier, entity, ifStill: isUnchanged ? nil : object.row),
      let current = try entity.row(of: identifier, in: connection)
    {
      if let row = object.row, !entity.isSameVersion(current, row) {
        switch policy {
        case .error:
          return report(object, row, current, entity)
        case .mergeByPropertyStoreTrump, .rollback:
          return try keep(object, current, entity)
        case .mergeByPropertyObjectTrump, .overwrite:
          break
        }
      }
      if try !delete(identifier, entity, ifStill: nil) { throw Self.ignored("delete", identifier) }
    }
    // If others have deleted the row already, there is no conflict.
    outcomes.append((object, .deleted))
    deleted.append(identifier)
  }

  private func delete(
    _ identifier: PersistentIdentifier,
    _ entity: ModelEntity,
    ifStill row: [SQLValue]?
  ) throws(BatchError) -> Bool {
    let compared = row.map { entity.compared($0) } ?? []
    let first = try entity.entity.requireKey().columns.count + 1
    let condition = try entity.condition(comparing: compared.map(\.slot), from: first)
    let statement = try connection.prepare(
      """
      DELETE FROM \(SQLName.quoted(entity.entity.table)) \
      WHERE \(condition)
      """
    )
    if let key = identifier.key { try statement.bind(key) }
    for (index, value) in compared.map(\.value).enumerated() {
      try statement.bind(value, at: first + index)
    }
    try statement.run()
    return connection.changes > 0
  }

  /// Referring rows are deleted before referenced ones, since a foreign key may not be deferrable.
  private static func deletionOrder(
    _ objects: [ManagedObject],
    _ depths: [String: Int]
  ) -> [ManagedObject] {
    let deleted = objects.filter { $0.unsaved == .delete }.reversed()
    func depth(_ object: ManagedObject) -> Int { depths[object.entity?.entity.name ?? ""] ?? 0 }
    return deleted.enumerated()
      .sorted { (depth($1.element), $0.offset) < (depth($0.element), $1.offset) }
      .map(\.element)
  }

  // MARK: Pairs

  private mutating func write(_ link: UnsavedLinks.Link) throws(BatchError) {
    guard link.source.unsaved != .delete, link.target.unsaved != .delete,
      let source = key(of: link.source), let target = key(of: link.target)
    else { return }
    let table = SQLName.quoted(link.table.table)
    let (from, to) = (SQLName.quoted(link.table.source), SQLName.quoted(link.table.target))
    if link.isJoined {
      try connection.execute(
        """
        INSERT INTO \(table) (\(from), \(to)) SELECT ?1, ?2
        WHERE NOT EXISTS (SELECT 1 FROM \(table) WHERE \(from) IS ?1 AND \(to) IS ?2)
        """,
        source,
        target
      )
    } else {
      try connection.execute(
        "DELETE FROM \(table) WHERE \(from) IS ?1 AND \(to) IS ?2",
        source,
        target
      )
    }
    writtenLinks.append(link)
    // Other contexts must check both objects again, though their rows are unchanged.
    for object in [link.source, link.target]
    where object.unsaved == nil && touched.insert(object.persistentModelID).inserted {
      updated.append(object.persistentModelID)
    }
  }

  private func part(
    _ identifier: PersistentIdentifier,
    in table: JoinTable
  ) throws(BatchError) {
    guard let key = identifier.key?.components.first else { return }
    try connection.execute(
      "DELETE FROM \(SQLName.quoted(table.table)) WHERE \(SQLName.quoted(table.source)) IS ?",
      SQLValue(key)
    )
  }

  // MARK: Inserting

  /// Inserts the rows of new objects in order; those with values for the same columns share a
  /// statement.
  private mutating func insert(
    _ objects: [(object: ManagedObject, identifier: PersistentIdentifier)]
  ) throws(BatchError) {
    var start = objects.startIndex
    while start < objects.endIndex {
      let entity = objects[start].object.entity
      let slots = objects[start].object.changes.slots
      let end =
        objects[start...].firstIndex {
          $0.object.entity !== entity || $0.object.changes.slots != slots
        } ?? objects.endIndex
      if let entity { try insert(objects[start..<end], entity, setting: slots) }
      start = end
    }
  }

  private mutating func insert(
    _ objects: ArraySlice<(object: ManagedObject, identifier: PersistentIdentifier)>,
    _ entity: ModelEntity,
    setting slots: [Int]
  ) throws(BatchError) {
    let statement = try InsertStatement(entity, setting: slots)
    let prepared = try connection.prepare(statement.sql)
    let isKnown = try statement.isKnownAfterwards(in: connection)
    for (object, identifier) in objects {
      var values: [SQLValue] = []
      values.reserveCapacity(statement.slots.count)
      for slot in statement.slots { values.append(value(of: object, at: slot, statement)) }
      let stored: PersistentIdentifier
      if manner == .trial {
        let tried = try trying(object) { _ throws(BatchError) in
          try statement.run(prepared, identifier, values)
        }
        guard let tried else { continue }
        stored = tried
      } else {
        stored = try statement.run(prepared, identifier, values)
      }
      identifiers[ObjectIdentifier(object)] = stored
      inserted.append(stored)
      if isKnown, let row = entity.row(of: stored, setting: statement.slots, to: values) {
        try entity.validate(row, of: stored)
        outcomes.append((object, .stored(stored, row)))
      } else {
        unread.append((object, entity, stored))
      }
    }
  }

  private func value(
    of object: ManagedObject,
    at slot: Int,
    _ statement: InsertStatement
  ) -> SQLValue {
    if let fixed = statement.fixed[slot] { return fixed }
    if let reference = object.references[slot] { return key(of: reference) ?? .null }
    return object.changes[slot] ?? .null
  }

  /// Inserts the row of an object that others have deleted, and returns the identifier with its
  /// actual key.
  ///
  /// The key may have another type than the given one.
  private func insert(
    _ values: [Int: SQLValue],
    as identifier: PersistentIdentifier,
    _ entity: ModelEntity
  ) throws(BatchError) -> PersistentIdentifier {
    let statement = try InsertStatement(entity, setting: values.keys.sorted())
    return try statement.run(
      connection.prepare(statement.sql),
      identifier,
      statement.slots.map { statement.fixed[$0] ?? values[$0] ?? .null }
    )
  }

  // MARK: Errors

  mutating func report(
    _ object: ManagedObject,
    _ row: [SQLValue]?,
    _ current: [SQLValue]?,
    _ entity: ModelEntity
  ) {
    if manner == .trial { return }
    // After a refresh, the object must not reuse this row.
    object.stored = object.stored.outdated
    conflicts.append(
      MergeConflict(
        identifier: object.persistentModelID,
        isDeletion: object.unsaved == .delete,
        objectSnapshot: row.map { entity.named($0) } ?? [:],
        changedValues: object.changedValues,
        persistedSnapshot: current.map { entity.named($0) }
      )
    )
  }

  static func ignored(
    _ operation: String,
    _ identifier: PersistentIdentifier
  ) -> BatchError {
    BatchError(
      .constraint,
      "the database left out the \(operation) without an error",
      at: identifier.description,
      remedy: "look for a trigger with RAISE(IGNORE)"
    )
  }
}

extension [SQLValue] {
  func replacing(_ values: SlotValues<SQLValue>) -> [SQLValue] {
    var row = self
    for (slot, value) in values { row[slot] = value }
    return row
  }
}
