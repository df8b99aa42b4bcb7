import BatchRuns
import BatchIdentifiers
import BatchSQLite

extension ModelContext {
  /// The unsaved changes as rows and pairs, for a predicate about related objects.
  ///
  /// They are nil if there are none, or if they do not count.
  func unsavedRelated<Model: PersistentModel>(
    for descriptor: FetchDescriptor<Model>
  ) -> UnsavedRelated? {
    guard descriptor.includePendingChanges, !unsaved.isEmpty || !links.isEmpty else { return nil }
    return UnsavedRelated(
      rows: { entity throws(BatchError) in try self.unsavedRows(of: entity) },
      pairs: { table, store in self.unsavedPairs(of: table, store) }
    )
  }

  private func unsavedRows(of entity: ModelEntity) throws(BatchError) -> UnsavedRelated.Rows? {
    let objects = unsaved.all().filter { object in
      guard let own = object.entity, own.store == entity.store else { return false }
      return SQLName.equal(own.entity.table, entity.entity.table) && own.columns == entity.columns
    }
    if objects.isEmpty { return nil }
    let keyCount = try entity.entity.requireKey().columns.count
    var rows = UnsavedRelated.Rows()
    for object in objects {
      if let key = object.persistentModelID.key { rows.hidden.insert(key) }
      guard !object.isDeleted, let own = object.entity,
        let values = try valuesInMemory(of: object, own)
      else { continue }
      rows.rows.append(object.keyInMemory(of: keyCount) + values)
    }
    return rows
  }

  private func unsavedPairs(of table: JoinTable, _ store: Int) -> UnsavedRelated.Pairs? {
    var pairs = UnsavedRelated.Pairs()
    for link in links.of(store: store) {
      let pair: [ManagedObject]
      switch table {
      case link.table: pair = [link.source, link.target]
      case link.table.reversed: pair = [link.target, link.source]
      default: continue
      }
      let keys = pair.map { $0.keyInMemory(of: 1)[0] }
      pairs.hidden.insert(keys)
      if link.isJoined { pairs.pairs.append(keys) }
    }
    return pairs.hidden.isEmpty ? nil : pairs
  }

  /// The values of the object's properties; nil if its row is gone.
  func valuesInMemory(
    of object: ManagedObject,
    _ entity: ModelEntity
  ) throws(BatchError) -> [SQLValue]? {
    var values: [SQLValue] = []
    do {
      for slot in entity.columns.indices {
        let value = try object.value(at: slot, entity)
        values.append(object.references[slot]?.keyInMemory(of: 1)[0] ?? value)
      }
    } catch {
      if error.code == .objectNotFound { return nil }
      throw error
    }
    for (slot, attribute) in entity.declared
    where object.references[slot] == nil && !attribute.codec.fits(values[slot]) {
      values[slot] = attribute.codec.storedPlaceholder
    }
    return values
  }
}

extension ManagedObject {
  /// The parts of the object's key; for an object without a key, a placeholder for the statement.
  func keyInMemory(of count: Int) -> [SQLValue] {
    if let key = persistentModelID.key { return key.components.map { SQLValue($0) } }
    let own = "\(persistentModelID)"
    return (0..<count).map { _ in .blob(Array(own.utf8)) }
  }
}
