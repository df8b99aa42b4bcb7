import BatchRuns
import BatchIdentifiers
import BatchSQLite

struct UpdateSet: Sendable {
  let entity: ModelEntity
  /// Ascending.
  let keys: [Int64]
  let slots: [Int]
  let values: ValueBlock
  /// The values in columns that show whether a row was changed since it was read.
  private let expected: [[SQLValue]]
  private let rows: RowSet

  /// Nil if the changes of the objects, in the order of their keys, cannot be made together.
  ///
  /// `key` returns the future key of a referenced object.
  init?(
    _ objects: [ManagedObject],
    keys: [Int64],
    _ entity: ModelEntity,
    key: (ManagedObject) -> SQLValue?
  ) throws(BatchError) {
    var set: Set<Int> = []
    for object in objects {
      if object.row == nil || object.isMerged { return nil }
      for (slot, _) in object.changes { set.insert(slot) }
    }
    let written = set.sorted()
    guard !written.isEmpty else { return nil }
    slots = written + (entity.versionSlot.map { [$0] } ?? [])
    var values = ValueBlock(
      columns: slots.count,
      capacity: objects.count,
      count: objects.count,
      filledWith: .unset
    )
    var isPartial = false
    var expected: [[SQLValue]] = []
    expected.reserveCapacity(objects.count)
    for (row, object) in objects.enumerated() {
      guard let old = object.row else { return nil }
      var count = 0
      for (slot, value) in object.changes {
        let column = written.count == 1 ? 0 : written.partitioningIndex { $0 >= slot }
        let value = object.references[slot].map { key($0) ?? .null } ?? value
        try values.set(row, column, value)
        count += 1
      }
      if count < written.count { isPartial = true }
      if let slot = entity.versionSlot {
        guard let next = Self.version(after: old[slot]) else { return nil }
        values.set(row, written.count, integer: next)
        expected.append([old[slot]])
      } else {
        expected.append(old)
      }
    }
    rows = try RowSet(
      updating: slots.map {
        (entity.columns[$0], isPartial: isPartial && $0 != entity.versionSlot)
      },
      of: entity.entity,
      comparing: entity.comparedSlots.map { entity.columns[$0] }
    )
    self.entity = entity
    self.keys = keys
    self.values = values
    self.expected = expected
  }

  /// The version of a row after another update; nil if the value is not a version.
  private static func version(after value: SQLValue) -> Int64? {
    switch value {
    case .null: 1
    case .integer(let version) where version < .max: version + 1
    default: nil
    }
  }

  /// Updates all rows or none, within the caller's transaction; returns false if nothing was done.
  func writeAllOrNone(in connection: Connection) throws(BatchError) -> Bool {
    guard try rows.isIndependent(enforcingForeignKeys: true, in: connection) else { return false }
    return try rows.writeAllOrNone(to: keys, values, ifStill: expected, in: connection)
  }
}

struct DeletionSet: Sendable {
  let entity: ModelEntity
  /// Ascending.
  let keys: [Int64]
  private let expected: [[SQLValue]]
  private let rows: RowSet

  /// Nil if the deletions of the objects, in the order of their keys, cannot be made together.
  init?(
    _ objects: [ManagedObject],
    keys: [Int64],
    _ entity: ModelEntity
  ) throws(BatchError) {
    // An object that was never read is deleted unconditionally.
    let isRead = objects.first?.row != nil
    guard objects.allSatisfy({ ($0.row != nil) == isRead }) else { return nil }
    let slots = isRead ? entity.comparedSlots : []
    expected = isRead ? objects.map { entity.compared($0.row ?? []).map(\.value) } : []
    rows = try RowSet(
      deletingFrom: entity.entity,
      comparing: slots.map { entity.columns[$0] }
    )
    self.entity = entity
    self.keys = keys
  }

  /// Deletes all rows or none, within the caller's transaction; returns false if nothing was done.
  func writeAllOrNone(in connection: Connection) throws(BatchError) -> Bool {
    guard try rows.isIndependent(enforcingForeignKeys: false, in: connection) else { return false }
    return try rows.writeAllOrNone(
      to: keys,
      ValueBlock(columns: 0, capacity: 0),
      ifStill: expected,
      in: connection
    )
  }
}

extension [ManagedObject] {
  /// The objects in the order of their rowids; nil if an object has none, or if two have the same.
  func byRowID() -> (keys: [Int64], objects: [ManagedObject])? {
    var keyed: [(key: Int64, object: ManagedObject)] = []
    keyed.reserveCapacity(count)
    var isSorted = true
    for object in self {
      guard case .integer(let key)? = object.persistentModelID.key else { return nil }
      if let last = keyed.last, last.key >= key { isSorted = false }
      keyed.append((key, object))
    }
    if !isSorted {
      keyed.sort { $0.key < $1.key }
      if zip(keyed, keyed.dropFirst()).contains(where: { $0.key == $1.key }) { return nil }
    }
    return (keyed.map(\.key), keyed.map(\.object))
  }

  /// The objects by entity, in the order of the first object of each.
  func byEntity() -> [(entity: ModelEntity?, objects: [ManagedObject])] {
    var sets: [(entity: ModelEntity?, objects: [ManagedObject])] = []
    var places: [ObjectIdentifier?: Int] = [:]
    for object in self {
      let entity = object.entity
      if let last = sets.indices.last, sets[last].entity === entity {
        sets[last].objects.append(object)
        continue
      }
      let key = entity.map { ObjectIdentifier($0) }
      if let place = places[key] {
        sets[place].objects.append(object)
      } else {
        places[key] = sets.count
        sets.append((entity, [object]))
      }
    }
    return sets
  }
}

extension ManagedObject {
  /// Whether the row was merged while there were unsaved changes, and may have other values than
  /// those that were replaced.
  final var isMerged: Bool {
    bases.contains { slot, base in row.map { !$0[slot].isIdentical(to: base) } ?? true }
  }
}
