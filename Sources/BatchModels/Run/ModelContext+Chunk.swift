import BatchIdentifiers

/// The objects of a part of an identifier list.
struct ChunkObjects {
  /// The identifiers that were reached, in the order of the list.
  let identifiers: [PersistentIdentifier]
  /// The objects of those that have a row.
  let objects: [ManagedObject]
  let missingCount: Int
  let firstMissing: PersistentIdentifier?
  /// About how many bytes they hold.
  let byteCount: Int
}

extension ModelContext {
  /// The objects at some positions of a list, until they hold many bytes.
  ///
  /// - Parameters:
  ///   - list: The list, of one of the container's stores.
  ///   - positions: The positions.
  ///   - store: The place of that store.
  ///   - byteLimit: How many bytes are held; the row that comes to as many is the last.
  /// - Returns: The objects of the positions that were reached.
  /// - Throws: As ``fetch(_:as:skippingMissing:)`` does.
  func objects(
    of list: IdentifierList,
    _ positions: Range<Int>,
    inStore store: Int,
    holding byteLimit: Int
  ) throws(BatchError) -> ChunkObjects {
    let identifiers = Array(list[positions])
    let found = try objects(of: identifiers)
    let missing = identifiers.filter { found[$0] == nil }
    return ChunkObjects(
      identifiers: identifiers,
      objects: Array(found.values),
      missingCount: missing.count,
      firstMissing: missing.first,
      byteCount: 0
    )
  }
}
