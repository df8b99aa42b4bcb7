import BatchIdentifiers
import BatchStore

/// New objects of a save whose unique values a row has already: what was set on them is written to that
/// row, as if its object had been fetched and they had been set on that.
///
/// It turns insertions into updates, and can take that back: a save that fails leaves no traces.
struct Upserts {
  /// An object as it was.
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
    /// The key of a new object, which has none yet.
    case object(ObjectIdentifier)
  }

  /// Unique values of a table.
  private struct Place: Hashable {
    let table: String
    let slots: [Int]
    let values: [Compared]
  }

  private let context: ModelContext
  private var marks: [Mark] = []
  /// What was unsaved before the first of them, in its order.
  private var unsavedBefore: [ManagedObject] = []
  /// New objects that are a row's object from now on, with the identifiers that they had and have.
  private var adopted:
    [(object: ManagedObject, temporary: PersistentIdentifier?, own: PersistentIdentifier)] = []
  /// They by those that they have.
  private var adoptions: [PersistentIdentifier: ManagedObject] = [:]
  /// New objects that are another object's row: what was set on them is set on that one.
  private var aliases: [(alias: ManagedObject, of: ManagedObject)] = []
  private var targets: [ObjectIdentifier: ManagedObject] = [:]
  /// What unsaved objects have in unique columns.
  private var owners: [Place: ManagedObject] = [:]

  init(_ context: ModelContext) {
    self.context = context
  }

  /// Finds the new objects of a store that are to be rows that are there, or each other.
  ///
  /// To be called while nobody else can write to the store.
  ///
  /// - Throws: `BatchError` with code `constraint` for an object that is two rows at once, or has
  ///   another key than its row, `modelTypeMismatch` for a row of another entity.
  mutating func resolve(inStore store: Int, through connection: Connection) throws(BatchError) {
    guard context.container.entities[store].values.contains(where: { !$0.uniques.isEmpty }) else {
      return
    }
    let objects = context.unsaved.all(.insert).filter { object in
      object.entity.map { $0.store == store && !$0.uniques.isEmpty } ?? false
    }
    if objects.isEmpty { return }
    let entities = objects.byEntity().compactMap(\.entity)
    noteUpdates(inTables: Set(entities.map(\.entity.table)))
    // Those that others refer to go first: a reference may be one of the unique values.
    let depths = context.container.relationships[store].depths
    func depth(_ entity: ModelEntity?) -> Int { entity.flatMap { depths[$0.entity.name] } ?? 0 }
    for (entity, set) in objects.byEntity().sorted(by: { depth($0.entity) < depth($1.entity) }) {
      guard let entity else { continue }
      let lookUps = try entity.uniques.map { unique throws(BatchError) in
        try LookUp(unique, of: entity)
      }
      for object in set { try resolve(object, entity, lookUps, connection) }
    }
    // Whoever refers to such an object refers to the one that it is.
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

  /// The objects that are written: all but those that stand for others.
  func remaining(_ objects: [ManagedObject]) -> [ManagedObject] {
    targets.isEmpty ? objects : objects.filter { targets[ObjectIdentifier($0)] == nil }
  }

  /// Pairs of the objects that are written.
  func remaining(_ links: [UnsavedLinks.Link]) -> [UnsavedLinks.Link] {
    if targets.isEmpty { return links }
    return links.map { link in
      UnsavedLinks.Link(
        store: link.store,
        table: link.table,
        source: targets[ObjectIdentifier(link.source)] ?? link.source,
        target: targets[ObjectIdentifier(link.target)] ?? link.target,
        isJoined: link.isJoined
      )
    }
  }

  // MARK: Finding

  /// The statement that finds rows by unique values, with all that the entity has of them.
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

  /// What an object has in unique columns as things stand; nil if one of them is NULL.
  private func values(
    of object: ManagedObject,
    _ slots: [Int],
    _ entity: ModelEntity
  ) -> [(value: SQLValue?, object: ManagedObject?)]? {
    var values: [(value: SQLValue?, object: ManagedObject?)] = []
    for slot in slots {
      if let reference = object.references[slot] {
        let target = targets[ObjectIdentifier(reference)] ?? reference
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

  /// The unique values as they are compared; nil if that is not known.
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

  /// Notes what an object has in unique columns.
  private mutating func note(_ object: ManagedObject) {
    for unique in object.entity?.uniques ?? [] {
      if let place = place(unique, of: object) { owners[place] = object }
    }
  }

  /// Notes the unique values that rows will have once what is unsaved of them is written.
  private mutating func noteUpdates(inTables tables: Set<String>) {
    for object in context.unsaved.all(.update) {
      guard let entity = object.entity, tables.contains(entity.entity.table),
        entity.uniques.contains(where: { isChanged(object, $0) })
      else { continue }
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
      // What an object had when it was noted, it may have no more.
      if let place = place(unique, entity, values), let other = owners[place],
        self.place(unique, of: other) == place
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
    if let owner, owner.object !== object { try set(object, on: owner.object, entity) }
    note(owner?.object ?? object)
  }

  /// The object of an identifier that the context has, or will have.
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

  /// Whether the row of an identifier will not have these unique values any more.
  private func isLeft(_ identifier: PersistentIdentifier, _ unique: UniqueColumns) -> Bool {
    guard let object = known(identifier) else { return false }
    switch object.unsaved {
    case .delete: return true
    case .update: return isChanged(object, unique)
    case .insert, nil: return false
    }
  }

  /// The object that a row is to have: one that the context has, or the new object itself.
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
    // What it has read may be outdated, unless something was set on top of that.
    if other.unsaved == nil {
      try own.validate(row, of: concrete)
      other.take(row)
    }
    return other
  }

  // MARK: Setting

  /// Makes a new object that of a row.
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

  /// Sets what was set on a new object on another one, which stands for it.
  private mutating func set(
    _ object: ManagedObject,
    on owner: ManagedObject,
    _ entity: ModelEntity
  ) throws(BatchError) {
    targets[ObjectIdentifier(object)] = owner
    aliases.append((object, owner))
    mark(owner)
    for (slot, value) in object.changes {
      if entity.keySlots.contains(slot), owner.unsaved != .insert { continue }
      if let reference = object.references[slot] {
        if let value = self.value(of: object, at: slot) {
          try owner.set(value, at: slot)
        } else {
          try owner.set(targets[ObjectIdentifier(reference)] ?? reference, at: slot)
        }
      } else {
        try owner.set(value, at: slot)
      }
    }
  }

  /// The value of a column, if it is known before new objects have keys.
  private func value(of object: ManagedObject, at slot: Int) -> SQLValue? {
    guard let reference = object.references[slot] else { return object.changes[slot] }
    let target = targets[ObjectIdentifier(reference)] ?? reference
    return (target.identity?.key?.components.first).map { SQLValue($0) }
  }

  /// Refuses a new object whose key was set, and is not that of its row.
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
        remedy: "leave the key to the row that is there, or change the unique values"
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

  /// Leaves all objects as they were.
  func undo() {
    if marks.isEmpty { return }
    for mark in marks.reversed() {
      mark.object.identity = mark.identity
      // A save that found the row of a changed object to be outdated has noted that.
      if mark.unsaved != .update { mark.object.stored = mark.stored }
      mark.object.changes = mark.changes
      mark.object.bases = mark.bases
      mark.object.references = mark.references
      context.track(mark.object, mark.unsaved)
    }
    // One of which nothing was left to save has come back as the last; another store may be saved by now.
    context.unsaved.arrange(as: unsavedBefore.filter(\.hasChanges))
    context.unsavedReferences = nil
  }

  /// Gives objects back the identifiers under which the context knows them, before it is told the others.
  func prepareToFinish() {
    for (object, temporary, _) in adopted { object.identity = temporary }
  }

  /// Makes the new objects that others stand for what those are, now that all is committed.
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
