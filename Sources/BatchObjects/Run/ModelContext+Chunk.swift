import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// The objects of part of an identifier list.
struct ChunkObjects {
  /// The identifiers reached, in the order of the list.
  var identifiers: [PersistentIdentifier]
  /// The objects with a row, in no particular order.
  var objects: [ManagedObject] = []
  /// The numbers of the identifiers without a row.
  var missing = RangeSet<Int>()
  /// Roughly how many bytes the rows hold.
  var byteCount = 0
}

extension ModelContext {
  /// The objects at some positions of a list, up to a number of bytes.
  ///
  /// - Parameters:
  ///   - list: The list, of one of the container's stores.
  ///   - positions: The positions.
  ///   - store: The index of that store.
  ///   - byteLimit: The maximum bytes held; the row that reaches it is the last.
  /// - Returns: The objects of the positions reached.
  /// - Throws: As ``fetch(_:as:skippingMissing:)`` does.
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

  /// The same for other keys than rowids, some at a time.
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
  /// Roughly how many bytes it holds.
  fileprivate var byteCount: Int {
    switch self {
    case .text(let text): 16 + text.utf8.count
    case .blob(let bytes), .invalidText(let bytes): 16 + bytes.count
    default: 16
    }
  }
}
