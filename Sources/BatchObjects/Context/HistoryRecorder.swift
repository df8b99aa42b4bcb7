import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// Records a save in the history of the store, in the transaction of the save.
///
/// A relationship has two sides, and both change: the row with the column, or the pair, is written,
/// and the related objects change for the object that is or was referred to. The deletion of an
/// object implies the end of its relationships.
struct HistoryRecorder {
  private let container: ModelContainer
  private let connection: Connection
  private let log: HistoryLog
  private var rows: [ObjectIdentifier: [SQLValue]] = [:]
  private var names: [PersistentIdentifier: Set<String>] = [:]
  /// The objects whose relationships changed, in order of discovery.
  private var related: [PersistentIdentifier] = []
  private var tombstones: [PersistentIdentifier: [String: SQLValue]] = [:]

  /// Collects facts about objects that are available only before they are written.
  init(
    _ objects: [ManagedObject],
    author: String?,
    policy: MergePolicy,
    in container: ModelContainer,
    _ connection: Connection
  ) throws(BatchError) {
    self.container = container
    self.connection = connection
    log = HistoryLog(author: author, in: connection)
    for object in objects {
      let identifier = object.persistentModelID
      guard let entity = object.entity, object.unsaved != .insert, !identifier.isTemporary else {
        continue
      }
      var row = object.row
      for (slot, base) in object.bases { row?[slot] = base }
      // A save that overrules others also ends relationships that they saved, which this context
      // has not read.
      let isKnown = if case .error = policy { row != nil } else { false }
      let current = isKnown ? row : try entity.row(of: identifier, in: connection)
      rows[ObjectIdentifier(object)] = current
      if object.unsaved == .delete {
        guard let row = current ?? row else { continue }
        tombstones[identifier] = Dictionary(
          uniqueKeysWithValues: entity.declared.filter(\.attribute.isPreserved)
            .map { ($0.attribute.name, row[$0.slot]) }
        )
      } else {
        let slots = Set(object.changes.slots)
        names[identifier] = Set(entity.slots.filter { slots.contains($0.value) }.map(\.key))
      }
    }
  }

  func record(_ save: StoreSave) throws(BatchError) {
    var recorder = self
    let written = Set(save.updated + save.inserted)
    for (object, outcome) in save.outcomes {
      guard case .stored(let identifier, let row) = outcome, written.contains(identifier) else {
        continue
      }
      try recorder.noteReferences(of: object, identifier, row)
    }
    for link in save.writtenLinks {
      recorder.note(link.source.persistentModelID, link.source.entity, joinedBy: link.table)
      recorder.note(
        link.target.persistentModelID,
        link.target.entity,
        joinedBy: link.table.reversed
      )
    }
    try recorder.append(save)
  }

  // MARK: Relationships

  private mutating func noteReferences(
    of object: ManagedObject,
    _ identifier: PersistentIdentifier,
    _ row: [SQLValue]
  ) throws(BatchError) {
    guard let entity = object.entity else { return }
    let old = rows[ObjectIdentifier(object)]
    for relationship in container.relationships[entity.store].all(of: entity) {
      guard case .column(let slot) = relationship.storage else { continue }
      let (before, after) = (old?[slot] ?? .null, row[slot])
      if before.isIdentical(to: after) { continue }
      note(identifier, [relationship.name])
      for value in [before, after] where value != .null {
        guard let (target, own) = try find(value, relationship.destination) else { continue }
        let inverse = container.relationships[entity.store].all(of: own).filter { inverse in
          guard case .inverse(let other) = inverse.storage else { return false }
          return SQLName.equal(inverse.destination.entity.table, entity.entity.table)
            && SQLName.equal(inverse.destination.columns[other], entity.columns[slot])
        }
        note(target, inverse.map(\.name))
      }
    }
  }

  /// The object that a value refers to, and its concrete entity; nil if it no longer exists.
  private func find(
    _ value: SQLValue,
    _ destination: ModelEntity
  ) throws(BatchError) -> (PersistentIdentifier, ModelEntity)? {
    let identifier = try destination.identifier(referredToBy: value, in: connection)
    guard destination.concrete != nil else { return (identifier, destination) }
    guard let row = try destination.row(of: identifier, in: connection) else { return nil }
    return container.concrete(identifier, destination, row)
  }

  private mutating func note(
    _ identifier: PersistentIdentifier,
    _ entity: ModelEntity?,
    joinedBy table: JoinTable
  ) {
    guard let entity else { return }
    let relationships = container.relationships[entity.store].all(of: entity).filter {
      if case .table(table) = $0.storage { true } else { false }
    }
    note(identifier, relationships.map(\.name))
  }

  private mutating func note(_ identifier: PersistentIdentifier, _ relationships: [String]) {
    guard !relationships.isEmpty else { return }
    names[identifier, default: []].formUnion(relationships)
    related.append(identifier)
  }

  // MARK: Writing

  private func append(_ save: StoreSave) throws(BatchError) {
    var log = log
    // Inserted and deleted objects have no further changes.
    var recorded = Set(save.inserted + save.deleted)
    for identifier in save.updated + related where recorded.insert(identifier).inserted {
      let values = (names[identifier] ?? []).map { ($0, SQLValue.null) }
      try append(.update, identifier, Dictionary(uniqueKeysWithValues: values), to: &log)
    }
    for identifier in save.deleted {
      try append(.delete, identifier, tombstones[identifier] ?? [:], to: &log)
    }
    for identifier in save.inserted { try append(.insert, identifier, [:], to: &log) }
  }

  private func append(
    _ kind: HistoryChange.Kind,
    _ identifier: PersistentIdentifier,
    _ values: [String: SQLValue],
    to log: inout HistoryLog
  ) throws(BatchError) {
    guard let key = identifier.key else { return }
    let bytes = EncodedKey(key.components).bytes
    try log.append(kind, entityName: identifier.entityName, key: bytes, values)
  }
}
