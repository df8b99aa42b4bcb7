import BatchRuns
import BatchIdentifiers
import BatchSQLite

extension ModelContext {
  /// The objects that the store relates to an object.
  ///
  /// The last result is used again if all its objects still exist and the context has not changed.
  func committed(
    _ object: ManagedObject,
    _ relationship: Relationship
  ) throws(BatchError) -> [ManagedObject] {
    guard object.unsaved != .insert, let key = object.persistentModelID.key else { return [] }
    if let members = object.members[relationship.name], members.generation == generation {
      let objects = members.identifiers.compactMap { registry[$0] }
      if objects.count == members.identifiers.count { return objects }
    }
    let entity = relationship.destination
    let statement = try connection(to: entity.store).prepare(
      """
      SELECT \(SQLName.list(try entity.rowColumns)) FROM \(SQLName.quoted(entity.entity.table)) \
      WHERE \(try relationship.condition(ofKey: "?"))
      ORDER BY \(SQLName.list(try entity.entity.requireKey().columns))
      """
    )
    try statement.bind(SQLValue(key.components[0]), at: 1)
    var objects: [ManagedObject] = []
    while try statement.step() { objects.append(try member(entity, statement, from: 0)) }
    note(objects.map(\.persistentModelID), of: object, relationship)
    return objects
  }

  /// Reads the objects that the store relates to some objects, and stores them with each.
  ///
  /// SQLite reads the keys from a closure. If the referring column has no index, SQLite creates one
  /// for the statement: it scans the table once, however many objects there are. The result keeps
  /// all related objects alive, since the context does not.
  func readMembers(
    of objects: [ManagedObject],
    _ relationship: Relationship
  ) throws(BatchError) -> [ManagedObject] {
    let owners = objects.filter { $0.unsaved != .insert && $0.persistentModelID.key != nil }
    if owners.isEmpty { return [] }
    // The closure must not capture the objects: the statement keeps its bound values.
    let keys = owners.map { SQLValue($0.persistentModelID.key?.components[0] ?? .null) }
    let entity = relationship.destination
    let statement = try connection(to: entity.store).prepare(
      """
      WITH RECURSIVE _batch_ordinals(_batch_ordinal) AS (
        SELECT 0 UNION ALL
        SELECT _batch_ordinal + 1 FROM _batch_ordinals WHERE _batch_ordinal + 1 < ?1),
      _batch_owners(_batch_owner, _batch_key) AS MATERIALIZED (
        SELECT _batch_ordinal, \(SwiftFunction.sqlName)(?2, _batch_ordinal) FROM _batch_ordinals)
      SELECT _batch_owner, \(SQLName.list(try entity.rowColumns))
      FROM _batch_owners CROSS JOIN \(SQLName.quoted(entity.entity.table))
      WHERE \(try relationship.condition(ofKey: "+_batch_key"))
      ORDER BY _batch_owner, \(SQLName.list(try entity.entity.requireKey().columns))
      """
    )
    let keyOfOwner = SwiftFunction { row throws(BatchError) in
      guard case .integer(let owner)? = row.first else { return .null }
      return keys[Int(owner)]
    }
    try statement.bind([.value(.integer(Int64(keys.count))), .function(keyOfOwner)])
    var found: [ManagedObject] = []
    var members = owners.map { _ in [PersistentIdentifier]() }
    while try statement.step() {
      let object = try member(entity, statement, from: 1)
      found.append(object)
      members[Int(statement.integer(at: 0))].append(object.persistentModelID)
    }
    for (owner, identifiers) in zip(owners, members) { note(identifiers, of: owner, relationship) }
    return found
  }

  func readMembers(
    of objects: some Sequence<ManagedObject>,
    where isWanted: (Relationship) -> Bool
  ) throws(BatchError) -> [ManagedObject] {
    var members: [ManagedObject] = []
    for (entity, objects) in Array(objects).byEntity() {
      guard let entity else { continue }
      for relationship in container.relationships[entity.store].all(of: entity)
      where isWanted(relationship) {
        members += try readMembers(of: objects, relationship)
      }
    }
    return members
  }

  private func note(
    _ identifiers: [PersistentIdentifier],
    of owner: ManagedObject,
    _ relationship: Relationship
  ) {
    owner.members[relationship.name] = ManagedObject.Members(
      generation: generation,
      identifiers: identifiers
    )
  }

  private func member(
    _ entity: ModelEntity,
    _ statement: borrowing Statement,
    from first: Int
  ) throws(BatchError) -> ManagedObject {
    let keyCount = try entity.entity.requireKey().columns.count
    var encoder = EncodedKey.Encoder()
    for column in 0..<keyCount { statement.appendKeyComponent(at: first + column, to: &encoder) }
    let row = entity.columns.indices.map { statement.value(at: first + keyCount + $0) }
    return try object(of: entity.space.identifier(.encoded(encoder.key)), entity, row)
  }
}

extension ModelEntity {
  fileprivate var rowColumns: [String] {
    get throws(BatchError) { try entity.requireKey().columns + columns }
  }
}

extension Relationship {
  /// The condition for rows related to an object, whose key is an SQL expression.
  fileprivate func condition(ofKey owner: String) throws(BatchError) -> String {
    let related =
      switch storage {
      case .column: "0"
      case .inverse(let slot): "\(SQLName.quoted(destination.columns[slot])) = \(owner)"
      case .table(let join):
        """
        \(SQLName.quoted(try destination.entity.requireKey().columns[0])) IN (
          SELECT \(SQLName.quoted(join.target)) FROM \(SQLName.quoted(join.table))
          WHERE \(SQLName.quoted(join.source)) = \(owner))
        """
      }
    return [related, destination.entity.condition].compactMap(\.self).joined(separator: " AND ")
  }
}
