import BatchRuns
import BatchIdentifiers
import BatchPlatform
import BatchSQLite

/// Lets rows of one save exchange unique values.
///
/// SQLite checks a unique index after each row, so if two rows swap their values, the first one is
/// a duplicate of the second.
extension StoreSave {
  /// Removes unique values from rows that will get others or be deleted.
  ///
  /// Until then, the rows have NULL, or a value that no other row has; triggers see it. This is
  /// done only if the save was refused without it. Rows that have lost a value can no longer be
  /// compared, so if changes by others are an error, this throws `mergeConflict` for them first.
  mutating func vacate(
    _ objects: [ManagedObject],
    unchanged: Set<ObjectIdentifier>
  ) throws(BatchError) {
    let changed = objects.filter {
      $0.unsaved != .insert && !unchanged.contains(ObjectIdentifier($0))
    }
    switch policy {
    case .error:
      for object in changed { try reportConflict(of: object) }
      guard conflicts.isEmpty else { throw BatchError(conflicts) }
    case .mergeByPropertyObjectTrump, .overwrite:
      // The set values are written regardless of the values in these rows.
      return try vacate(objects.filter { $0.unsaved != .insert })
    case .mergeByPropertyStoreTrump, .rollback: break
    }
    // Rows that were never read, or were refreshed, have nothing to compare.
    try vacate(
      objects.filter { object in
        unchanged.contains(ObjectIdentifier(object))
          || object.unsaved != .insert && object.row == nil && !object.isMerged
      }
    )
  }

  private mutating func reportConflict(of object: ManagedObject) throws(BatchError) {
    guard let entity = object.entity, let row = object.row,
      !object.persistentModelID.isTemporary
    else { return }
    guard let current = try entity.row(of: object.persistentModelID, in: connection) else {
      if object.unsaved == .update { report(object, row, nil, entity) }
      return
    }
    let expected = row.replacing(object.bases)
    let isSame =
      object.isMerged
      ? current.isIdentical(to: expected) : entity.isSameVersion(current, expected)
    if !isSame { report(object, row, current, entity) }
  }

  private func vacate(_ objects: [ManagedObject]) throws(BatchError) {
    var places: [(object: ManagedObject, entity: ModelEntity, slots: [Int])] = []
    var tables: Set<String> = []
    for (entity, set) in objects.byEntity() {
      guard let entity, try !clearsReferences(to: entity) else { continue }
      let unique = Set(entity.entity.uniqueKeys.flatMap(\.columns).map(\.name))
        .compactMap { entity.slot(ofColumn: $0) }
        .filter { !entity.keySlots.contains($0) && !entity.generatedSlots.contains($0) }
        .sorted()
      for object in set {
        let isDeleted = object.unsaved == .delete
        let slots = unique.filter { isDeleted || object.changes[$0] != nil }
        if slots.isEmpty { continue }
        places.append((object, entity, slots))
        if !isDeleted { tables.insert(entity.entity.table) }
      }
    }
    for (object, entity, slots) in places where tables.contains(entity.entity.table) {
      for slot in slots { try vacate(object, entity, slot) }
    }
  }

  private func vacate(
    _ object: ManagedObject,
    _ entity: ModelEntity,
    _ slot: Int
  ) throws(BatchError) {
    guard let key = object.persistentModelID.key else { return }
    let parameter = try entity.entity.requireKey().columns.count + 1
    let statement = try connection.prepare(
      """
      UPDATE \(SQLName.quoted(entity.entity.table)) \
      SET \(SQLName.quoted(entity.columns[slot])) = ?\(parameter) WHERE \(entity.keyCondition())
      """
    )
    try statement.bind(key)
    try statement.bind(spare(for: slot, of: entity), at: parameter)
    try statement.run()
  }

  private func spare(for slot: Int, of entity: ModelEntity) throws(BatchError) -> SQLValue {
    let isMandatory = try connection.value(
      "SELECT 1 FROM pragma_table_info(?) WHERE name = ? COLLATE NOCASE AND \"notnull\"",
      .text(entity.entity.table),
      .text(entity.columns[slot])
    )
    if isMandatory == nil { return .null }
    let kept = entity.keptClasses[slot]
    if kept.contains(.text) { return .text("_batch_\(UUID().uuidString)") }
    let number = Int64.random(in: Int64.min / 2..<Int64.min / 4)
    return kept.contains(.integer) ? .integer(number) : .real(Double(number))
  }

  /// Whether removing a value would break references of other rows.
  private func clearsReferences(to entity: ModelEntity) throws(BatchError) -> Bool {
    try connection.value(
      """
      SELECT 1 FROM pragma_table_list AS t, pragma_foreign_key_list(t.name) AS f
      WHERE t.schema = 'main' AND f."table" = ? COLLATE NOCASE
        AND f.on_update IN ('SET NULL', 'SET DEFAULT')
      """,
      .text(entity.entity.table)
    ) != nil
  }
}

extension BatchError {
  var isUniqueViolation: Bool {
    code == .constraint && sqlite?.message.hasPrefix("UNIQUE constraint failed") == true
  }
}
