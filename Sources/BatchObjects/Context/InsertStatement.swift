import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// The statement that inserts rows with values for the same columns.
///
/// All other columns get their defaults.
struct InsertStatement: Sendable {
  let entity: ModelEntity
  let set: [Int]
  let sql: String
  /// The columns with values, except the key, ascending.
  let slots: [Int]
  /// The fixed values that some columns have in all new rows of the entity.
  let fixed: [Int: SQLValue]
  /// Whether the key is kept as given, since it is an integer and the rowid.
  private let keepsKey: Bool

  init(_ entity: ModelEntity, setting set: [Int]) throws(BatchError) {
    let key = try entity.entity.requireKey()
    var fixed: [Int: SQLValue] = [:]
    if let concrete = entity.concrete,
      let value = concrete.names.first(where: { $0.value == entity.entity.name })?.key
    {
      fixed[concrete.slot] = value
    }
    if let version = entity.versionSlot, !set.contains(version) { fixed[version] = .integer(1) }
    let keySlots = Set(entity.keySlots.compactMap(\.self))
    slots = Set(set).union(fixed.keys).subtracting(keySlots).sorted()
    keepsKey = key.isRowID
    self.entity = entity
    self.set = set
    self.fixed = fixed
    let columns = key.columns + slots.map { entity.columns[$0] }
    let returning = keepsKey ? "" : " RETURNING \(SQLName.list(key.columns))"
    sql = """
      INSERT INTO \(SQLName.quoted(entity.entity.table)) (\(SQLName.list(columns))) \
      VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))\(returning)
      """
  }

  /// Whether an inserted row is known without reading it, if its values keep their types.
  ///
  /// This is so if there are no triggers, defaults or generated columns.
  func isKnownAfterwards(in connection: Connection) throws(BatchError) -> Bool {
    guard keepsKey, entity.generatedSlots.isEmpty else { return false }
    let trigger =
      "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = lower(?)"
    guard try connection.value(trigger, .text(entity.entity.table)) == nil else { return false }
    let defaults = try connection.texts(
      "SELECT name FROM pragma_table_xinfo(?, 'main') WHERE dflt_value IS NOT NULL",
      .text(entity.entity.table)
    )
    return defaults.allSatisfy { name in
      entity.slot(ofColumn: name).map { slots.contains($0) } ?? true
    }
  }

  /// Inserts a row, and returns the identifier with its actual key.
  ///
  /// The key may have another type than the given one. If the row was skipped without an error,
  /// this throws `constraint`.
  func run(
    _ statement: borrowing Statement,
    _ identifier: PersistentIdentifier,
    _ values: [SQLValue]
  ) throws(BatchError) -> PersistentIdentifier {
    let keyCount: Int
    if keepsKey, case .integer(let key)? = identifier.key {
      try statement.bind(key, at: 1)
      keyCount = 1
    } else {
      if let key = identifier.key { try statement.bind(key) }
      keyCount = try entity.entity.requireKey().columns.count
    }
    for (index, value) in values.enumerated() {
      try statement.bind(value, at: keyCount + 1 + index)
    }
    defer { statement.reset() }
    let isInserted = try statement.step()
    if keepsKey {
      guard statement.changes > 0 else { throw StoreSave.ignored("insert", identifier) }
      return identifier
    }
    guard isInserted else { throw StoreSave.ignored("insert", identifier) }
    var encoder = EncodedKey.Encoder()
    for column in 0..<keyCount { statement.appendKeyComponent(at: column, to: &encoder) }
    while try statement.step() {}
    return entity.space.identifier(.encoded(encoder.key))
  }
}
