import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// New objects whose unique values a row already has: their set values are written to that row, as
/// if its object had been fetched and changed.
///
/// Insertions become updates, and this can be reverted: a failed save leaves no traces.
struct Upserts {
  private struct Mark {
    let object: ManagedObject
    let identity: PersistentIdentifier?
    let stored: StoredRow
    let unsaved: ManagedObject.Unsaved?
    let changes: SlotValues<SQLValue>
    let bases: SlotValues<SQLValue>
    let references: SlotValues<ManagedObject>
  }

  /// A value of a new object, as unique indexes compare it.
  private enum Compared: Hashable {
    case value(SQLValue)
    /// The key of a new object, which is not known yet.
    case object(ObjectIdentifier)
  }

  private struct Place: Hashable {
    let table: String
    let slots: [Int]
    let values: [Compared]
  }

  private let context: ModelContext
  private var marks: [Mark] = []
  /// The unsaved objects before the first upsert, in order.
  private var unsavedBefore: [ManagedObject] = []
  /// New objects that are now objects of existing rows, with their previous and current
  /// identifiers.
  private var adopted:
    [(object: ManagedObject, temporary: PersistentIdentifier?, own: PersistentIdentifier)] = []
  /// The same objects by their current identifiers.
  private var adoptions: [PersistentIdentifier: ManagedObject] = [:]
  /// New objects whose rows already have objects: their values are set on these.
  private var aliases: [(alias: ManagedObject, of: ManagedObject)] = []
  private var targets: [ObjectIdentifier: ManagedObject] = [:]
  private var owners: [Place: ManagedObject] = [:]

  init(_ context: ModelContext) {
    self.context = context
  }

  /// Finds new objects of a store that represent existing rows, or the same row.
  ///
  /// Call it while no other connection can write to the store. Throws `constraint` for an object
  /// that matches two rows or has another key than its row, and `modelTypeMismatch` for a row of
  /// another entity.
  mutating func resolve(inStore store: Int, through connection: Connection) throws(BatchError) {
    guard context.container.entities[store].values.contains(where: { !$0.uniques.isEmpty }) else {
      return
    }
    let objects = context.unsaved.all(.insert).filter { object in
      object.entity.map { $0.store == store && !$0.uniques.isEmpty } ?? false
    }
    if objects.isEmpty { return }
    let entities = objects.byEntity().compactMap(\.entity)
    try noteUpdates(inTables: Set(entities.map(\.entity.table)))
    // Referenced objects are resolved first, since a reference may be one of the unique values.
    let depths = context.container.relationships[store].depths
    func depth(_ entity: ModelEntity?) -> Int { entity.flatMap { depths[$0.entity.name] } ?? 0 }
    for (entity, set) in objects.byEntity().sorted(by: { depth($0.entity) < depth($1.entity) }) {
      guard let entity else { continue }
      let lookUps = try entity.uniques.map { unique throws(BatchError) in
        try LookUp(unique, of: entity)
      }
      for object in set { try resolve(object, entity, lookUps, connection) }
    }
    // References to such an object are redirected to the object that it represents.
    for object in aliases.isEmpty ? [] : context.unsaved.all() {
      let slots = object.references.filter { targets[ObjectIdentifier($0.value)] != nil }.map(
        \.slot
      )
      if slots.isEmpty { continue }
      mark(object)
      for slot in slots {
        object.references[slot] = object.references[slot].flatMap { targets[ObjectIdentifier($0)] }
      }
    }
    for (object, _, _) in adopted where object.changes.isEmpty { context.track(object, nil) }
    context.unsavedReferences = nil
  }

  /// The objects to write: all except those that represent others.
  func remaining(_ objects: [ManagedObject]) -> [ManagedObject] {
    targets.isEmpty ? objects : objects.filter { targets[ObjectIdentifier($0)] == nil }
  }

  /// The pairs, with these objects replaced by the ones that they represent.
  func remaining(_ links: [UnsavedLinks.Link]) -> [UnsavedLinks.Link] {
    if targets.isEmpty { return links }
    return links.map { link in
      UnsavedLinks.Link(
        store: link.store,
        table: link.table,
        source: target(of: link.source),
        target: target(of: link.target),
        isJoined: link.isJoined
      )
    }
  }

  // MARK: Finding

  /// The statement that finds rows by unique values, and returns all unique values of the entity.
  private struct LookUp {
    let unique: UniqueColumns
    let sql: String

    init(_ unique: UniqueColumns, of entity: ModelEntity) throws(BatchError) {
      let key = try entity.entity.requireKey()
      let isSame = unique.slots.map { "\(SQLName.quoted(entity.columns[$0])) = ?" }
      self.unique = unique
      sql = """
        SELECT \(SQLName.list(key.columns + entity.columns)) \
        FROM \(SQLName.quoted(entity.entity.table)) WHERE \(isSame.joined(separator: " AND "))
        """
    }
  }

  /// The current values of an object in unique columns; nil if one of them is NULL.
  private func values(
    of object: ManagedObject,
    _ slots: [Int],
    _ entity: ModelEntity
  ) -> [(value: SQLValue?, object: ManagedObject?)]? {
    var values: [(value: SQLValue?, object: ManagedObject?)] = []
    for slot in slots {
      if let reference = object.references[slot] {
        let target = target(of: reference)
        let key = target.identity?.key?.components.first
        values.append((key.map { SQLValue($0) }, target))
        continue
      }
      let old = object.unsaved == .insert ? entity.defaults[slot] : object.row?[slot]
      guard let value = object.changes[slot] ?? old, value != .null else { return nil }
      values.append((value, nil))
    }
    return values
  }

  /// The unique values in comparable form; nil if this is unknown.
  private func place(
    _ unique: UniqueColumns,
    _ entity: ModelEntity,
    _ values: [(value: SQLValue?, object: ManagedObject?)]
  ) -> Place? {
    var compared: [Compared] = []
    for (index, (value, object)) in values.enumerated() {
      if let value {
        guard let comparable = unique.comparable(value, at: index) else { return nil }
        compared.append(.value(comparable))
      } else if let object {
        compared.append(.object(ObjectIdentifier(object)))
      }
    }
    return Place(table: entity.entity.table, slots: unique.slots, values: compared)
  }

  private func place(_ unique: UniqueColumns, of object: ManagedObject) -> Place? {
    guard let entity = object.entity else { return nil }
    return values(of: object, unique.slots, entity).flatMap { place(unique, entity, $0) }
  }

  private mutating func note(_ object: ManagedObject) {
    for unique in object.entity?.uniques ?? [] {
      if let place = place(unique, of: object) { owners[place] = object }
    }
  }

  /// Records the unique values that rows will have after their unsaved changes are written.
  private mutating func noteUpdates(inTables tables: Set<String>) throws(BatchError) {
    for object in context.unsaved.all(.update) {
      guard let entity = object.entity, tables.contains(entity.entity.table),
        entity.uniques.contains(where: { isChanged(object, $0) })
      else { continue }
      // A fault knows only the values that were set, but several values may be unique together.
      if object.row == nil { _ = try hasRow(object) }
      note(object)
    }
  }

  private func isChanged(_ object: ManagedObject, _ unique: UniqueColumns) -> Bool {
    unique.slots.contains { object.changes[$0] != nil }
  }

  private mutating func resolve(
    _ object: ManagedObject,
    _ entity: ModelEntity,
    _ lookUps: [LookUp],
    _ connection: Connection
  ) throws(BatchError) {
    var owner: (object: ManagedObject, unique: UniqueColumns)?
    var found: (identifier: PersistentIdentifier, row: [SQLValue], unique: UniqueColumns)?
    for lookUp in lookUps {
      let unique = lookUp.unique
      guard let values = values(of: object, unique.slots, entity) else { continue }
      // An object may no longer have the values recorded for it.
      if let place = place(unique, entity, values), let other = owners[place],
        self.place(unique, of: other) == place, try !isLost(other, connection)
      {
        if let owner, owner.object !== other { throw Self.ambiguous(object, owner.unique, unique) }
        owner = (other, unique)
        continue
      }
      let known = values.compactMap(\.value)
      guard known.count == values.count,
        let (identifier, row) = try self.row(lookUp, known, entity, connection),
        !isLeft(identifier, unique)
      else { continue }
      if let found, found.identifier != identifier {
        throw Self.ambiguous(object, found.unique, unique)
      }
      found = (identifier, row, unique)
    }
    if let found {
      if let owner, owner.object !== known(found.identifier) {
        throw Self.ambiguous(object, owner.unique, found.unique)
      }
      let other = try self.owner(of: found.identifier, found.row, object, entity)
      owner = (other, found.unique)
    }
    if let owner, owner.object !== object {
      try set(object, on: owner.object, entity, connection)
    }
    note(owner?.object ?? object)
  }

  /// The object that the context has, or will have, for an identifier.
  private func known(_ identifier: PersistentIdentifier) -> ManagedObject? {
    adoptions[identifier] ?? context.registered(identifier)
  }

  private func row(
    _ lookUp: LookUp,
    _ values: [SQLValue],
    _ entity: ModelEntity,
    _ connection: Connection
  ) throws(BatchError) -> (PersistentIdentifier, [SQLValue])? {
    let statement = try connection.prepare(lookUp.sql)
    for (index, value) in values.enumerated() { try statement.bind(value, at: index + 1) }
    guard try statement.step() else { return nil }
    let key = try entity.entity.requireKey()
    let row = entity.columns.indices.map { statement.value(at: key.columns.count + $0) }
    return (entity.space.identifier(statement.key(of: key)), row)
  }

  /// Whether the row of an identifier will no longer have these unique values.
  private func isLeft(_ identifier: PersistentIdentifier, _ unique: UniqueColumns) -> Bool {
    guard let object = known(identifier) else { return false }
    switch object.unsaved {
    case .delete: return true
    case .update: return isChanged(object, unique)
    case .insert, nil: return false
    }
  }

  /// Whether the row of a changed object is gone, and the merge policy does not write it again.
  ///
  /// Its values are then free, and the save decides about the change.
  private func isLost(
    _ object: ManagedObject,
    _ connection: Connection
  ) throws(BatchError) -> Bool {
    let identifier = object.persistentModelID
    guard object.unsaved == .update, adoptions[identifier] == nil, let entity = object.entity else {
      return false
    }
    switch context.mergePolicy {
    case .mergeByPropertyObjectTrump, .overwrite: return false
    case .error, .mergeByPropertyStoreTrump, .rollback:
      return try entity.row(of: identifier, in: connection) == nil
    }
  }

  /// Whether the set values of an object can be compared with a row.
  private func hasRow(_ object: ManagedObject) throws(BatchError) -> Bool {
    do throws(BatchError) {
      _ = try object.requireRow(context)
      return true
    } catch {
      guard error.code == .objectNotFound else { throw error }
      return false
    }
  }

  /// The object for a row: one that the context has, or the new object itself.
  private mutating func owner(
    of identifier: PersistentIdentifier,
    _ row: [SQLValue],
    _ object: ManagedObject,
    _ entity: ModelEntity
  ) throws(BatchError) -> ManagedObject {
    let (concrete, own) = context.container.concrete(identifier, entity, row)
    if let value = entity.concrete.map({ row[$0.slot] }), entity.concrete?.names[value] == nil {
      throw BatchError(
        .modelTypeMismatch,
        "a new \(entity.entity.name) has the unique values of a row of another entity",
        at: identifier.description,
        remedy: "give it other values, or delete that row first"
      )
    }
    try requireKey(of: object, concrete, entity)
    let known = self.known(concrete)
    guard known != nil || own !== entity else {
      try adopt(object, concrete, row, entity)
      return object
    }
    let other = if let known { known } else { try context.object(of: concrete, own, row) }
    mark(other)
    // The values that it has read may be outdated, unless some were set since.
    if other.unsaved == nil {
      try own.validate(row, of: concrete)
      other.take(row)
    }
    return other
  }

  // MARK: Setting

  private mutating func adopt(
    _ object: ManagedObject,
    _ identifier: PersistentIdentifier,
    _ row: [SQLValue],
    _ entity: ModelEntity
  ) throws(BatchError) {
    try entity.validate(row, of: identifier)
    mark(object)
    adopted.append((object, object.identity, identifier))
    adoptions[identifier] = object
    object.identity = identifier
    object.take(row)
    for slot in object.changes.slots {
      let value = value(of: object, at: slot)
      if entity.keySlots.contains(slot) || value?.isIdentical(to: row[slot]) ?? false {
        object.changes[slot] = nil
        object.references[slot] = nil
      } else {
        object.bases[slot] = row[slot]
      }
    }
    context.track(object, .update)
  }

  private mutating func set(
    _ object: ManagedObject,
    on owner: ManagedObject,
    _ entity: ModelEntity,
    _ connection: Connection
  ) throws(BatchError) {
    targets[ObjectIdentifier(object)] = owner
    aliases.append((object, owner))
    mark(owner)
    let isNew = owner.unsaved == .insert
    let isChanged = owner.unsaved == .update && adoptions[owner.persistentModelID] == nil
    let isCompared = if isNew { true } else { try hasRow(owner) }
    for slot in object.changes.slots where isNew || !entity.keySlots.contains(slot) {
      let value = value(of: object, at: slot)
      let reference = value == nil ? object.references[slot].map { target(of: $0) } : nil
      if !isCompared {
        owner.changes[slot] = value ?? .null
        owner.references[slot] = reference
      } else if let reference {
        try owner.set(reference, at: slot)
      } else {
        try owner.set(value ?? .null, at: slot)
      }
    }
    if isChanged, isCompared { try keep(object.changes.slots, setOn: owner, connection) }
  }

  /// Keeps set values as changes even if they equal the values that a changed object has read.
  ///
  /// The row may have other values by now, and the values were set on another object, which had
  /// read nothing.
  private func keep(
    _ slots: [Int],
    setOn owner: ManagedObject,
    _ connection: Connection
  ) throws(BatchError) {
    let same = slots.filter { owner.changes[$0] == nil }
    guard !same.isEmpty, let entity = owner.entity, let row = owner.row,
      let current = try entity.row(of: owner.persistentModelID, in: connection)
    else { return }
    for slot in same
    where !entity.keySlots.contains(slot) && !current[slot].isIdentical(to: row[slot]) {
      owner.changes[slot] = row[slot]
      owner.bases[slot] = row[slot]
      context.track(owner, .update)
    }
  }

  /// The value of a column, if it is known before new objects have keys.
  private func value(of object: ManagedObject, at slot: Int) -> SQLValue? {
    guard let reference = object.references[slot] else { return object.changes[slot] }
    return (target(of: reference).identity?.key?.components.first).map { SQLValue($0) }
  }

  /// The object that this one represents, or the object itself.
  private func target(of object: ManagedObject) -> ManagedObject {
    targets[ObjectIdentifier(object)] ?? object
  }

  private func requireKey(
    of object: ManagedObject,
    _ identifier: PersistentIdentifier,
    _ entity: ModelEntity
  ) throws(BatchError) {
    for (index, slot) in entity.keySlots.enumerated() {
      guard let slot, let value = object.changes[slot], value != .null,
        let own = identifier.key?.components[index]
      else { continue }
      let column = entity.entity.attributes.first {
        SQLName.equal($0.column, entity.columns[slot])
      }
      let stored = column?.stored(value) ?? value
      guard !stored.isIdentical(to: SQLValue(own)) else { continue }
      let problem = SaveProblem(
        identifier: object.persistentModelID,
        property: column?.name,
        value: value,
        message:
          "its key is \(value.shortForMessage), and its unique values are those of \(identifier)",
        remedy: "leave the key unset, or change the unique values"
      )
      throw BatchError(.constraint, [problem]) ?? .notFound(identifier)
    }
  }

  private static func ambiguous(
    _ object: ManagedObject,
    _ one: UniqueColumns,
    _ other: UniqueColumns
  ) -> BatchError {
    let problem = SaveProblem(
      identifier: object.persistentModelID,
      property: one.names.first,
      value: nil,
      message:
        "property \(one.names.joined(separator: ", ").quotedForMessage) is that of one row, and"
        + " \(other.names.joined(separator: ", ").quotedForMessage) that of another",
      remedy: "change one of them, or delete one of the rows"
    )
    return BatchError(.constraint, [problem]) ?? .notFound(object.persistentModelID)
  }

  private mutating func mark(_ object: ManagedObject) {
    if marks.isEmpty { unsavedBefore = context.unsaved.all() }
    marks.append(
      Mark(
        object: object,
        identity: object.identity,
        stored: object.stored,
        unsaved: object.unsaved,
        changes: object.changes,
        bases: object.bases,
        references: object.references
      )
    )
  }

  // MARK: The end

  func undo() {
    if marks.isEmpty { return }
    for mark in marks.reversed() {
      mark.object.identity = mark.identity
      // A save that found the row of a changed object to be outdated has recorded this.
      if mark.unsaved != .update { mark.object.stored = mark.stored }
      mark.object.changes = mark.changes
      mark.object.bases = mark.bases
      mark.object.references = mark.references
      context.track(mark.object, mark.unsaved)
    }
    // An object with nothing left to save has returned as the last one; another store may be saved
    // by now.
    context.unsaved.arrange(as: unsavedBefore.filter(\.hasChanges))
    context.unsavedReferences = nil
  }

  /// Gives objects their identifiers in the context again, before they get their new ones.
  func prepareToFinish() {
    for (object, temporary, _) in adopted { object.identity = temporary }
  }

  /// Merges new objects into those that they represent, after everything is committed.
  func finish() {
    for (object, _, identifier) in adopted {
      context.rename(object, identifier)
      if object.unsaved == nil { object.dropChanges() }
    }
    for (alias, owner) in aliases {
      context.registry.remove(alias)
      context.links.remove(of: alias)
      alias.dropChanges()
      context.unsaved.set(nil, of: alias)
      guard alias.entity === owner.entity, let row = owner.row else {
        context.detach(alias)
        continue
      }
      alias.identity = owner.persistentModelID
      alias.members = [:]
      alias.take(row)
    }
  }
}
