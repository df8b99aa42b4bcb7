import BatchRuns
import BatchIdentifiers
import BatchSQLite

extension ModelContext {
  func relationship(
    _ name: String,
    of object: ManagedObject
  ) throws(BatchError) -> Relationship {
    guard let entity = object.entity else { throw .notFound(object.persistentModelID) }
    return try relationship(name, of: entity, object)
  }

  /// A relationship of an entity, which is the object's current or future one.
  func relationship(
    _ name: String,
    of entity: ModelEntity,
    _ object: ManagedObject
  ) throws(BatchError) -> Relationship {
    let relationships = container.relationships[entity.store].of(entity)
    if let relationship = relationships[name] { return relationship }
    throw BatchError(
      .unknownRelationship,
      "entity \(entity.entity.name.quotedForMessage) has no relationship \(name.quotedForMessage)",
      at: object.persistentModelID.description,
      remedy: remedyForUnknownName(name, among: relationships.keys.sorted(), kind: "relationships")
    )
  }

  // MARK: Reading

  func related(
    to object: ManagedObject,
    by relationship: Relationship
  ) throws(BatchError) -> [ManagedObject] {
    switch relationship.storage {
    case .column(let slot):
      return try target(of: object, at: slot, relationship.destination).map { [$0] } ?? []
    case .inverse(let slot):
      let committed = try committed(object, relationship)
      let known = Set(committed.map(ObjectIdentifier.init))
      let references = unsavedReferences ?? UnsavedReferences(unsaved, container.relationships)
      unsavedReferences = references
      let added = references.referrers(
        to: object,
        from: relationship.destination.entity.table,
        at: slot
      ).filter { !known.contains(ObjectIdentifier($0)) }
      let kept = committed.filter { !$0.hasChanges || $0.refers(to: object, at: slot) }
      return (kept + added).filter { !$0.isDeleted }
    case .table(let table):
      var isJoined: [ObjectIdentifier: Bool] = [:]
      var added: [ManagedObject] = []
      let committed = try committed(object, relationship)
      let known = Set(committed.map(ObjectIdentifier.init))
      for (other, isJoinedNow) in links.targets(of: object, in: table) {
        isJoined[ObjectIdentifier(other)] = isJoinedNow
        if isJoinedNow, !known.contains(ObjectIdentifier(other)), other.modelContext === self {
          added.append(other)
        }
      }
      added.sort { $0.persistentModelID < $1.persistentModelID }
      let kept = committed.filter { isJoined[ObjectIdentifier($0)] ?? true }
      return (kept + added).filter { !$0.isDeleted }
    }
  }

  private func target(
    of object: ManagedObject,
    at slot: Int,
    _ destination: ModelEntity
  ) throws(BatchError) -> ManagedObject? {
    guard let entity = object.entity else { return nil }
    if let reference = object.references[slot] {
      // A new object that was forgotten is not referred to.
      return reference.modelContext === self ? reference : nil
    }
    let value = try object.value(at: slot, entity)
    guard value != .null else { return nil }
    let identifier = try destination.identifier(
      referredToBy: value,
      in: connection(to: destination.store)
    )
    if let object = registered(identifier) { return object }
    // Within a hierarchy, only the row determines the class.
    if destination.concrete != nil,
      let row = try destination.row(of: identifier, in: connection(to: destination.store))
    {
      return try self.object(of: identifier, destination, row)
    }
    return register(identifier, destination)
  }

  // MARK: Changing

  func relate(
    _ object: ManagedObject,
    to others: [ManagedObject],
    by relationship: Relationship
  ) throws(BatchError) {
    guard relationship.isToMany || others.count <= 1 else {
      throw BatchError(
        .modelTypeMismatch,
        "relationship \(relationship.name.quotedForMessage) is to one object, not to"
          + " \(others.count)",
        at: object.persistentModelID.description
      )
    }
    if case .column(let slot) = relationship.storage {
      return try refer(object, at: slot, to: others.first, relationship.destination)
    }
    let known = try related(to: object, by: relationship)
    if others.starts(with: known, by: ===) {
      for other in others[known.count...] {
        try set(other, isRelated: true, to: object, by: relationship)
      }
      return
    }
    let wanted = Set(others.map(ObjectIdentifier.init))
    var kept: Set<ObjectIdentifier> = []
    for other in known {
      if wanted.contains(ObjectIdentifier(other)) {
        kept.insert(ObjectIdentifier(other))
      } else {
        try set(other, isRelated: false, to: object, by: relationship)
      }
    }
    for other in others where !kept.contains(ObjectIdentifier(other)) {
      try set(other, isRelated: true, to: object, by: relationship)
    }
  }

  func set(
    _ other: ManagedObject,
    isRelated: Bool,
    to object: ManagedObject,
    by relationship: Relationship
  ) throws(BatchError) {
    switch relationship.storage {
    case .column(let slot):
      if !isRelated, try target(of: object, at: slot, relationship.destination) !== other { return }
      try refer(object, at: slot, to: isRelated ? other : nil, relationship.destination)
    case .inverse(let slot):
      try requireOwn(other, relationship.destination)
      guard let entity = object.entity else { return }
      if !isRelated {
        _ = try other.value(at: slot, relationship.destination)
        guard other.refers(to: object, at: slot) else { return }
      }
      try refer(other, at: slot, to: isRelated ? object : nil, entity)
    case .table(let table):
      try requireOwn(other, relationship.destination)
      if lastRelated?.isKeptInPairs ?? false { lastRelated = nil }
      links.set(
        UnsavedLinks.Link(
          store: relationship.destination.store,
          table: table,
          source: object,
          target: other,
          isJoined: isRelated
        )
      )
    }
  }

  private func refer(
    _ object: ManagedObject,
    at slot: Int,
    to target: ManagedObject?,
    _ destination: ModelEntity
  ) throws(BatchError) {
    guard let entity = object.entity else { return }
    try object.requireSettable(at: slot, entity)
    guard let target else { return try object.set(.null, at: slot) }
    try requireOwn(target, destination)
    try part(target, fromAllBut: object, at: slot, entity)
    if let key = target.persistentModelID.key {
      try object.set(SQLValue(key.components[0]), at: slot)
    } else {
      try object.set(target, at: slot)
    }
  }

  /// Ends the relationships of the target to other objects, if only one object can have it.
  private func part(
    _ target: ManagedObject,
    fromAllBut object: ManagedObject,
    at slot: Int,
    _ entity: ModelEntity
  ) throws(BatchError) {
    guard let targetEntity = target.entity else { return }
    for relationship in container.relationships[entity.store].all(of: targetEntity)
    where !relationship.isToMany && relationship.destination.entity.table == entity.entity.table {
      guard case .inverse(slot) = relationship.storage else { continue }
      for other in try related(to: target, by: relationship) where other !== object {
        try other.set(.null, at: slot)
      }
    }
  }

  func requireOwn(
    _ object: ManagedObject,
    _ entity: ModelEntity
  ) throws(BatchError) {
    if object.isNew { try take(object) }
    guard object.modelContext === self else { throw Self.foreign(object) }
    guard let own = object.entity, own.store == entity.store,
      own.entity.table == entity.entity.table
    else {
      throw BatchError(
        .modelTypeMismatch,
        "the relationship is to objects of entity \(entity.entity.name.quotedForMessage)",
        at: object.persistentModelID.description
      )
    }
  }
}

extension ManagedObject {
  /// Whether a column refers to an object, as far as this is known without reading.
  final func refers(to other: ManagedObject, at slot: Int) -> Bool {
    if references[slot] != nil || changes[slot] != nil { return isSet(to: other, at: slot) }
    return row.map { $0[slot].isKey(of: other) } ?? true
  }

  /// Whether a column was set to an object, and this is unsaved.
  final func isSet(to other: ManagedObject, at slot: Int) -> Bool {
    if let reference = references[slot] { return reference === other }
    return changes[slot]?.isKey(of: other) ?? false
  }
}

extension SQLValue {
  fileprivate func isKey(of object: ManagedObject) -> Bool {
    (object.persistentModelID.key?.components.first).map { isIdentical(to: SQLValue($0)) } ?? false
  }
}
