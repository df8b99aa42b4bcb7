import BatchIdentifiers
import BatchStore

/// Writes what a save does into the store's history, in the save's own transaction.
struct HistoryRecorder {
  private let log: HistoryLog
  private var attributes: [PersistentIdentifier: [String]] = [:]
  private var tombstones: [PersistentIdentifier: [String: SQLValue]] = [:]

  /// Notes what is known of objects only before they are written.
  init(
    _ objects: [ManagedObject],
    author: String?,
    in connection: Connection
  ) throws(BatchError) {
    log = HistoryLog(author: author, in: connection)
    for object in objects {
      guard let entity = object.entity else { continue }
      let identifier = object.persistentModelID
      switch object.unsaved {
      case .update:
        let slots = Set(object.changes.slots + object.references.slots)
        attributes[identifier] = entity.slots.filter { slots.contains($0.value) }.map(\.key)
      case .delete where !identifier.isTemporary:
        let preserved = entity.declared.filter(\.attribute.isPreserved)
        if preserved.isEmpty { continue }
        var row = object.row
        if row == nil { row = try entity.row(of: identifier, in: connection) }
        guard let row else { continue }
        tombstones[identifier] = Dictionary(
          uniqueKeysWithValues: preserved.map { ($0.attribute.name, row[$0.slot]) }
        )
      case .insert, .delete, nil: continue
      }
    }
  }

  /// Records what was written.
  func record(_ save: StoreSave) throws(BatchError) {
    var log = log
    for identifier in save.updated {
      let names = attributes[identifier] ?? []
      let values = Dictionary(uniqueKeysWithValues: names.map { ($0, SQLValue.null) })
      try Self.append(.update, identifier, values, to: &log)
    }
    for identifier in save.deleted {
      try Self.append(.delete, identifier, tombstones[identifier] ?? [:], to: &log)
    }
    for identifier in save.inserted { try Self.append(.insert, identifier, [:], to: &log) }
  }

  private static func append(
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
