import BatchIdentifiers

/// Writes what a save does into the store's history, in the save's own transaction.
struct HistoryRecorder {
  /// The tables, which are made by the first save that is recorded.
  ///
  /// AUTOINCREMENT, so that no number comes again when transactions were deleted.
  static let schema = [
    """
    CREATE TABLE IF NOT EXISTS _batch_history (
      id INTEGER PRIMARY KEY AUTOINCREMENT, saved_at INTEGER NOT NULL, author TEXT
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS _batch_history_change (
      id INTEGER PRIMARY KEY, save INTEGER NOT NULL, entity TEXT NOT NULL, key BLOB NOT NULL,
      kind TEXT NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS _batch_history_change_save ON _batch_history_change (save)",
    """
    CREATE TABLE IF NOT EXISTS _batch_history_value (
      change INTEGER NOT NULL, attribute TEXT NOT NULL, value, PRIMARY KEY (change, attribute)
    ) WITHOUT ROWID
    """,
  ]

  private let connection: Connection
  private let author: String?
  private var attributes: [PersistentIdentifier: [String]] = [:]
  private var tombstones: [PersistentIdentifier: [String: SQLValue]] = [:]

  /// Notes what is known of objects only before they are written.
  init(
    _ objects: [ManagedObject],
    author: String?,
    in connection: Connection
  ) throws(BatchError) {
    self.connection = connection
    self.author = author
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
    guard save.inserted.count + save.updated.count + save.deleted.count > 0 else { return }
    for statement in Self.schema { try connection.execute(statement) }
    try connection.execute(
      """
      INSERT INTO _batch_history (saved_at, author)
      VALUES (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), ?)
      """,
      author.map { .text($0) } ?? .null
    )
    guard let number = try connection.value("SELECT last_insert_rowid()") else { return }
    for identifier in save.updated {
      let names = attributes[identifier] ?? []
      let values = names.map { ($0, SQLValue.null) }
      try record(.update, identifier, Dictionary(uniqueKeysWithValues: values), number)
    }
    for identifier in save.deleted {
      try record(.delete, identifier, tombstones[identifier] ?? [:], number)
    }
    for identifier in save.inserted { try record(.insert, identifier, [:], number) }
  }

  private func record(
    _ kind: HistoryChange.Kind,
    _ identifier: PersistentIdentifier,
    _ values: [String: SQLValue],
    _ save: SQLValue
  ) throws(BatchError) {
    guard let key = identifier.key else { return }
    try connection.execute(
      "INSERT INTO _batch_history_change (save, entity, key, kind) VALUES (?, ?, ?, ?)",
      save,
      .text(identifier.entityName),
      .blob(EncodedKey(key.components).bytes),
      .text(kind.rawValue)
    )
    guard let change = try connection.value("SELECT last_insert_rowid()") else { return }
    for (name, value) in values {
      try connection.execute(
        "INSERT INTO _batch_history_value (change, attribute, value) VALUES (?, ?, ?)",
        change,
        .text(name),
        value
      )
    }
  }
}
