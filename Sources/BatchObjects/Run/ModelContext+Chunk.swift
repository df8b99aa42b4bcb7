import BatchRuns
import BatchIdentifiers
import BatchSQLite

struct ChunkObjects {
  /// The identifiers reached, in the order of the list.
  var identifiers: [PersistentIdentifier]
  /// The objects with a row, in no particular order.
  var objects: [ManagedObject] = []
  /// The identifiers without a row, by number.
  var missing = RangeSet<Int>()
  var byteCount = 0

  /// The identifiers with a row, in the order of the list.
  var present: [PersistentIdentifier] {
    if missing.isEmpty { return identifiers }
    return identifiers.indices.filter { !missing.contains($0) }.map { identifiers[$0] }
  }
}

extension ModelContext {
  /// The objects at some positions of a list, up to a number of bytes.
  ///
  /// - Parameters:
  ///   - list: A list of one of the container's stores.
  ///   - positions: The positions to read.
  ///   - store: The index of the list's store.
  ///   - byteLimit: The maximum bytes to hold; the row that reaches it is the last one.
  /// - Returns: The objects of the positions that were reached.
  /// - Throws: An error of ``fetch(_:as:skippingMissing:)``.
  func objects(
    of list: PackedIdentifiers,
    _ positions: Range<Int>,
    inStore store: Int,
    holding byteLimit: Int
  ) throws(BatchError) -> ChunkObjects {
    guard let entity = container.entities[store][list.header.entityName] else {
      throw BatchError(
        .unknownEntity,
        "there is no entity \(list.header.entityName.quotedForMessage) in the store",
        at: container.stores[store].path
      )
    }
    let key = try entity.entity.requireKey()
    guard key.isRowID else { return try objectsByKey(of: list, positions, entity, byteLimit) }
    let keys = try list.integers(in: positions)
    let connection = try connection(to: entity.store)
    return try connection.transaction(.deferred) { () throws(BatchError) in
      let rows = try RowSetReading(of: entity.columns, in: entity.entity)
        .read(.rowIDs(keys), holding: byteLimit, in: connection)
      var chunk = ChunkObjects(
        identifiers: keys.prefix(rows.reached).map { entity.space.identifier(.integer($0)) }
      )
      chunk.byteCount = rows.values.byteCount
      chunk.objects.reserveCapacity(rows.numbers.count)
      registry.reserveCapacity(rows.numbers.count)
      registry.keepsObjects = true
      defer { registry.keepsObjects = false }
      let readAt = ContinuousClock.now
      for (row, number) in rows.numbers.enumerated() {
        let values = entity.columns.indices.map { rows.values.value(row, $0) }
        let identifier = chunk.identifiers[number]
        chunk.objects.append(try object(of: identifier, entity, values, readAt: readAt))
      }
      if rows.numbers.count < chunk.identifiers.count {
        chunk.missing.insert(contentsOf: 0..<chunk.identifiers.count)
        for number in rows.numbers { chunk.missing.remove(contentsOf: number..<(number + 1)) }
      }
      return chunk
    }
  }

  private func objectsByKey(
    of list: PackedIdentifiers,
    _ positions: Range<Int>,
    _ entity: ModelEntity,
    _ byteLimit: Int
  ) throws(BatchError) -> ChunkObjects {
    var chunk = ChunkObjects(identifiers: [])
    var start = positions.lowerBound
    while start < positions.upperBound, chunk.byteCount < byteLimit {
      let end = min(start + 100, positions.upperBound)
      let identifiers = try list.identifiers(in: start..<end)
      let found = try objects(of: identifiers)
      for (index, identifier) in identifiers.enumerated() {
        guard let object = found[identifier] else {
          chunk.missing.insert(chunk.identifiers.count + index)
          continue
        }
        chunk.objects.append(object)
        chunk.byteCount += object.row?.reduce(0) { $0 + $1.byteCount } ?? 0
      }
      chunk.identifiers += identifiers
      start = end
    }
    return chunk
  }
}

extension SQLValue {
  fileprivate var byteCount: Int {
    switch self {
    case .text(let text): 16 + text.utf8.count
    case .blob(let bytes), .invalidText(let bytes): 16 + bytes.count
    default: 16
    }
  }
}
