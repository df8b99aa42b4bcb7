import BatchIdentifiers
import BatchStore

/// What a save writes to one store, inside a transaction of the caller.
///
/// Objects stay as they are: what becomes of each is noted, and holds once the transaction is
/// committed. Rows are updated first, then deleted, then inserted: a row that goes to another parent
/// is not deleted with the one it left, and a key that becomes free can be used again.
struct StoreSave {
  /// What becomes of an object.
  enum Outcome {
    /// Its row is this one, and nothing of it is unsaved.
    case stored(PersistentIdentifier, [SQLValue])
    /// Its row was deleted by this save.
    case deleted
    /// Its row was found to be gone.
    case gone
  }

  let connection: Connection
  let policy: MergePolicy
  private(set) var outcomes: [(object: ManagedObject, outcome: Outcome)] = []
  private(set) var inserted: [PersistentIdentifier] = []
  private(set) var updated: [PersistentIdentifier] = []
  private(set) var deleted: [PersistentIdentifier] = []
  private var conflicts: [MergeConflict] = []
  /// The identifiers that new objects will have.
  private var identifiers: [ObjectIdentifier: PersistentIdentifier] = [:]
  /// Objects that nothing changed of but what they are joined with.
  private var touched: Set<PersistentIdentifier> = []

  init(connection: Connection, policy: MergePolicy) {
    self.connection = connection
    self.policy = policy
  }

  /// Writes some objects of the store.
  ///
  /// - Throws: `BatchError` with code `mergeConflict` for all conflicts that the policy leaves,
  ///   `missingKey`, `valueMismatch` for a row that does not fit its class, and whatever SQLite
  ///   says.
  mutating func write(
    _ objects: [ManagedObject],
    depths: [String: Int],
    links: [UnsavedLinks.Link],
    partings: [(table: JoinTable, identifier: PersistentIdentifier)]
  ) throws(BatchError) {
    // Objects may refer to each other in any order, which is looked at when all are written.
    try connection.execute("PRAGMA defer_foreign_keys = ON")
    let allocated = try KeyAllocation.identifiers(
      of: objects.filter { $0.unsaved == .insert },
      in: connection
    )
    for (object, identifier) in allocated { identifiers[ObjectIdentifier(object)] = identifier }
    var written: [(ManagedObject, ModelEntity, PersistentIdentifier)] = []
    for object in objects where object.unsaved == .update {
      if let (entity, identifier) = try update(object) {
        written.append((object, entity, identifier))
        updated.append(identifier)
      }
    }
    for parting in partings { try part(parting.identifier, in: parting.table) }
    var sequences: Set<String> = []
    for object in Self.deletionOrder(objects, depths) {
      guard let entity = object.entity else { continue }
      let table = entity.entity.table
      if sequences.insert(table).inserted {
        for sequence in try KeySequence.reached(byDeletingFrom: [table], in: connection) {
          try sequence.remember(in: connection)
        }
      }
      try delete(object, entity)
    }
    for (object, identifier) in allocated {
      guard let entity = object.entity else { continue }
      let stored = try insert(values(of: object), as: identifier, entity)
      identifiers[ObjectIdentifier(object)] = stored
      written.append((object, entity, stored))
      inserted.append(stored)
    }
    for link in links { try write(link) }
    guard conflicts.isEmpty else { throw BatchError(conflicts) }
    // Defaults, generated columns and triggers have their part in what a row is in the end.
    for (object, entity, identifier) in written {
      if let row = try entity.row(of: identifier, in: connection) {
        try entity.validate(row, of: identifier)
        outcomes.append((object, .stored(identifier, row)))
      } else {
        outcomes.append((object, .gone))
      }
    }
  }

  /// What was set on an object, with the keys of new objects that it refers to.
  private func values(of object: ManagedObject) -> [Int: SQLValue] {
    var values: [Int: SQLValue] = [:]
    for (slot, value) in object.changes { values[slot] = value }
    for (slot, reference) in object.references { values[slot] = key(of: reference) ?? .null }
    return values
  }

  /// The key of an object, if it has one after this save.
  private func key(of object: ManagedObject) -> SQLValue? {
    let identifier = identifiers[ObjectIdentifier(object)] ?? object.identity
    guard object.modelContext != nil else { return nil }
    return (identifier?.key?.components.first).map { SQLValue($0) }
  }

  // MARK: Updating

  /// Writes what was set on an object; nil if nothing is to be written in the end.
  private mutating func update(
    _ object: ManagedObject
  ) throws(BatchError) -> (ModelEntity, PersistentIdentifier)? {
    let identifier = object.persistentModelID
    guard let entity = object.entity, let key = identifier.key else { return nil }
    // A row that was merged while something was unsaved may have another value than was replaced.
    let isMerged = object.bases.contains { slot, base in
      object.row.map { !$0[slot].isIdentical(to: base) } ?? true
    }
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
    // What SQLite takes for a difference may be none: text that is not UTF-8 is repaired in reading.
    if isMerged ? !current.isIdentical(to: expected) : !entity.isSameVersion(current, expected) {
      guard let settled = try settle(object, expected, current, entity) else { return nil }
      changes = settled
    }
    if try !update(key, entity, setting: changes, ifStill: nil) {
      throw Self.ignored("update", identifier)
    }
    return (entity, identifier)
  }

  /// What to write to a row that somebody else changed; nil for nothing.
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

  /// Gives up what is unsaved of an object, for the row as it is.
  private mutating func keep(
    _ object: ManagedObject,
    _ current: [SQLValue],
    _ entity: ModelEntity
  ) throws(BatchError) {
    try entity.validate(current, of: object.persistentModelID)
    outcomes.append((object, .stored(object.persistentModelID, current)))
  }

  /// Settles the change of a row that is gone; true if there is a row again.
  private mutating func restore(
    _ object: ManagedObject,
    _ entity: ModelEntity
  ) throws(BatchError) -> Bool {
    let row = object.row ?? object.staleRow
    switch policy {
    case .error:
      report(object, row, nil, entity)
      return false
    case .mergeByPropertyObjectTrump, .overwrite:
      let values = entity.writable(row ?? []).merging(values(of: object)) { $1 }
      // Of a row that was never read, what was not set is known to nobody.
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

  /// Updates a row if it is still what it was; false if it is not.
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

  private mutating func delete(
    _ object: ManagedObject,
    _ entity: ModelEntity
  ) throws(BatchError) {
    let identifier = object.persistentModelID
    guard !identifier.isTemporary else {
      // A new object that a rule deletes was never there.
      return outcomes.append((object, .deleted))
    }
    if try !delete(identifier, entity, ifStill: object.row),
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
    // Where somebody else deleted it already, both wanted the same.
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

  /// Rows that refer to others go before those, for which a foreign key may not wait.
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

  /// Joins or parts two objects in a table of pairs.
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
    // Others have to look at both again, though their own rows are what they were.
    for object in [link.source, link.target]
    where object.unsaved == nil && touched.insert(object.persistentModelID).inserted {
      updated.append(object.persistentModelID)
    }
  }

  /// Removes all pairs of an object.
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

  /// Inserts a row; columns without a value have their defaults.
  ///
  /// - Returns: The identifier by the key that the row has, which may be of another type than the one
  ///   that was set.
  private func insert(
    _ values: [Int: SQLValue],
    as identifier: PersistentIdentifier,
    _ entity: ModelEntity
  ) throws(BatchError) -> PersistentIdentifier {
    let key = try entity.entity.requireKey()
    var columns = key.columns
    var bound: [SQLValue] = []
    var values = values
    for slot in entity.keySlots { slot.map { values[$0] = nil } }
    if let concrete = entity.concrete,
      let value = concrete.names.first(where: { $0.value == entity.entity.name })?.key
    {
      values[concrete.slot] = value
    }
    if let version = entity.versionSlot, values[version] == nil { values[version] = .integer(1) }
    for (slot, value) in values.sorted(by: { $0.key < $1.key }) {
      columns.append(entity.columns[slot])
      bound.append(value)
    }
    let statement = try connection.prepare(
      """
      INSERT INTO \(SQLName.quoted(entity.entity.table)) (\(SQLName.list(columns))) \
      VALUES (\(columns.map { _ in "?" }.joined(separator: ", "))) \
      RETURNING \(SQLName.list(key.columns))
      """
    )
    if let key = identifier.key { try statement.bind(key) }
    for (index, value) in bound.enumerated() {
      try statement.bind(value, at: key.columns.count + 1 + index)
    }
    guard try statement.step() else { throw Self.ignored("insert", identifier) }
    var encoder = EncodedKey.Encoder()
    for column in key.columns.indices { statement.appendKeyComponent(at: column, to: &encoder) }
    while try statement.step() {}
    return entity.space.identifier(.encoded(encoder.key))
  }

  // MARK: Errors

  private mutating func report(
    _ object: ManagedObject,
    _ row: [SQLValue]?,
    _ current: [SQLValue]?,
    _ entity: ModelEntity
  ) {
    // Refreshed, the object must not have this row again.
    object.readAt = nil
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

  private static func ignored(
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
  /// The row with other values in some columns.
  fileprivate func replacing(_ values: SlotValues<SQLValue>) -> [SQLValue] {
    var row = self
    for (slot, value) in values { row[slot] = value }
    return row
  }
}

extension ModelEntity {
  /// The columns that tell whether a row was changed, with the values that they had.
  fileprivate func compared(_ row: [SQLValue]) -> [(slot: Int, value: SQLValue)] {
    if let versionSlot { return [(versionSlot, row[versionSlot])] }
    return row.enumerated().map { ($0, $1) }
  }

  /// What finds the row of a key if some columns are what they were, which parameters from a number
  /// on say.
  fileprivate func condition(
    comparing slots: [Int],
    from first: Int
  ) throws(BatchError) -> String {
    let comparisons = slots.enumerated().map { index, slot in
      "\(SQLName.quoted(columns[slot])) COLLATE BINARY IS ?\(first + index)"
    }
    // In groups, since SQLite takes no expression that is nested a thousand deep.
    let groups = stride(from: 0, to: comparisons.count, by: 100).map {
      "(\(comparisons[$0..<min($0 + 100, comparisons.count)].joined(separator: " AND ")))"
    }
    return ([try keyCondition()] + groups).joined(separator: " AND ")
  }

  /// Whether a row is the one that was read before, as far as can be told.
  fileprivate func isSameVersion(_ row: [SQLValue], _ other: [SQLValue]) -> Bool {
    if let versionSlot { return row[versionSlot] == other[versionSlot] }
    return row.isIdentical(to: other)
  }

  /// The columns that can be written.
  fileprivate var writableSlots: [Int] {
    columns.indices.filter {
      !generatedSlots.contains($0) && !keySlots.contains($0) && $0 != versionSlot
    }
  }

  /// The values of a row in those columns that can be written.
  fileprivate func writable(_ row: [SQLValue]) -> [Int: SQLValue] {
    var values: [Int: SQLValue] = [:]
    for slot in writableSlots where slot < row.count { values[slot] = row[slot] }
    return values
  }
}
