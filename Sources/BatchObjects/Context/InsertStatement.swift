import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// The statement that inserts rows of an entity with values for the same columns; the other columns
/// get their defaults.
struct InsertStatement: Sendable {
  let entity: ModelEntity
  /// The columns with values.
  let set: [Int]
  let sql: String
  /// The columns with values besides the key, ascending.
  let slots: [Int]
  /// Fixed values of some of these columns in all new rows of the entity.
  let fixed: [Int: SQLValue]
  /// Whether the row's key is the given one: an integer that is the rowid.
  private let keepsKey: Bool

  /// The statement for objects with values for some columns.
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

  /// Whether a row equals the inserted values, if those keep their types: no trigger, default or
  /// generated column is involved.
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

  /// Inserts a row.
  ///
  /// - Parameters:
  ///   - statement: The statement, prepared.
  ///   - identifier: The identifier with the row's key.
  ///   - values: The values of ``slots``.
  /// - Returns: The identifier with the row's actual key, which may have another type than the
  ///   given one.
  /// - Throws: `BatchError` of code `constraint` if the row was skipped without an error, or
  ///   SQLite's errors.
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
