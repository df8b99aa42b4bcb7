import BatchRuns
import BatchIdentifiers

extension BulkChange {
  /// What an undo needs of the changed rows.
  package var undoShape: UndoShape {
    let columns: [String]
    var kind = UndoShape.Kind.update
    switch action {
    case .update(let assignments): columns = assignments.map(\.column)
    case .assign(let assignments): columns = assignments.map(\.column)
    case .delete:
      kind = .deletion
      let stored = entity.attributes.filter { !$0.isGenerated }.map(\.column)
      columns = stored.filter { !key.columns.contains($0) }
    }
    return UndoShape(key: key.columns, columns: columns, kind: kind)
  }

  package var recordedTypes: [String] {
    undoShape.columns.map { column in
      entity.attributes.first { $0.column == column }?.type ?? ""
    }
  }

  package func recorded(forRun run: String) -> BulkChange {
    var change = self
    change.undoRun = run
    return change
  }

  /// Whether workers read the old rows for the records while the lane writes other chunks; a
  /// deletion cannot: it records the rows that it finds when it runs.
  var recordsAhead: Bool { undoRun != nil && isIndependent && !undoShape.isDeletion }

  /// The rows that the change will write.
  ///
  /// - Returns: Nil if more than one row was requested and they are too large to hold at once.
  func rowsBefore(
    _ keys: ChunkKeys,
    in connection: Connection
  ) throws(BatchError) -> RowsBefore? {
    try rows(keys, where: condition(for: keys), in: connection).map {
      RowsBefore($0, keyCount: key.columns.count)
    }
  }

  /// Whether a worker reads rows of a chunk before the chunk's turn.
  func readsAhead(_ keys: ChunkKeys, isScattered: Bool) -> Bool {
    let isRangeEnough = isRangeEnough && !isScattered
    return recordsAhead
      || isIndependent && keys.canBeLocated(by: key, isRangeEnough: isRangeEnough)
  }

  /// Whether a key range is enough to find the rows, because one statement changes them all.
  var isRangeEnough: Bool {
    switch action {
    case .update, .delete(archive: nil): undoRun == nil
    // Two statements must find the same rows.
    case .delete, .assign: false
    }
  }

  /// The keys in the form that changes their rows at the least cost.
  func suited(_ keys: ChunkKeys, isScattered: Bool) -> ChunkKeys {
    isScattered && isIndependent && isRangeEnough ? keys.unfiltered : keys
  }

  /// The locations of a chunk's rows, and the rows to record, as read by a worker before the
  /// chunk's turn.
  ///
  /// Includes rows that the change will skip, since that is not known yet. Has no rows if they are
  /// too large to hold at once.
  func readAhead(
    _ keys: ChunkKeys,
    lookCount: Int,
    isScattered: Bool,
    in connection: Connection
  ) throws(BatchError) -> ReadAhead {
    try connection.transaction(.deferred) { () throws(BatchError) in
      try expected?.verify(in: connection)
      let keys = try keys.located(
        by: key,
        in: entity,
        isRangeEnough: isRangeEnough && !isScattered,
        connection
      )
      guard recordsAhead else {
        return ReadAhead(suited(keys, isScattered: isScattered), nil, lookCount: lookCount)
      }
      let found = try rows(keys, where: keys.condition(key: key), in: connection)
      let rows = found.map { RowsBefore($0, keyCount: key.columns.count) }
      return ReadAhead(keys, rows, lookCount: lookCount)
    }
  }

  /// Saves the rows before and after the change; the new rows are read in the change's transaction,
  /// to include the effects of triggers, defaults and types.
  func record(
    _ before: RowsBefore,
    of keys: ChunkKeys,
    ofRun run: String,
    in connection: Connection
  ) throws(BatchError) {
    if before.keys.count == 0 { return }
    let keyCount = key.columns.count
    var after = ValueBlock(columns: 0, capacity: before.keys.count, count: before.keys.count)
    var before = before
    if !undoShape.isDeletion {
      let condition = keys.condition(key: key)
      guard let found = try rows(keys, where: condition, holding: .max, in: connection) else {
        return
      }
      after = found.aligned(with: before.keys, by: keyCount).columns(keyCount..<found.columnCount)
      let changed = (0..<after.count).filter { !before.values.isSame($0, as: after, $0) }
      if changed.isEmpty { return }
      if changed.count < after.count {
        before = before.selecting(changed)
        after = after.selecting(changed)
      }
    }
    let record = UndoRecord(before, after: after)
    try StoredUndo.keep(record.packed, of: record.count, ofRun: run, in: connection)
  }

  private func rows(
    _ keys: ChunkKeys,
    where condition: String,
    holding byteLimit: Int = ChunkBytes.chunkLimit,
    in connection: Connection
  ) throws(BatchError) -> ValueBlock? {
    let shape = undoShape
    let columns = (shape.key + shape.columns).map(SQLName.quoted)
    let order = keys.scan(of: key)
    let statement = try connection.prepare(
      """
      SELECT \(RowCollector.columns(columns)) FROM \(SQLName.quoted(entity.table))\(order) \
      WHERE \(condition)
      """
    )
    try statement.bind(parameters)
    let count = keys.identifierCount
    var rows = ValueBlock(columns: columns.count, capacity: count)
    var isTooMuch = false
    try keys.forEachBinding(of: statement, key: key) { _ throws(BatchError) in
      if isTooMuch { return }
      switch try connection.collector.collect(
        from: statement,
        into: &rows,
        upTo: count == 1 ? .max : byteLimit
      ) {
      case .all: break
      case .some: isTooMuch = true
      case .tooMany: throw BatchError.ambiguousKey(of: entity, key)
      }
    }
    return isTooMuch ? nil : rows
  }
}

extension ValueBlock {
  /// The rows in the order of another block, which begins with the same key columns; rows missing
  /// from this block have no values.
  fileprivate func aligned(with other: ValueBlock, by keyCount: Int) -> ValueBlock {
    let isAligned =
      count == other.count
      && (0..<count).allSatisfy { row in
        (0..<keyCount).allSatisfy { isSame(row, $0, as: other, row) }
      }
    if isAligned { return self }
    var places: [[SQLValue]: Int] = [:]
    for row in 0..<count { places[(0..<keyCount).map { value(row, $0) }] = row }
    return selecting(
      (0..<other.count).map { row in places[(0..<keyCount).map { other.value(row, $0) }] ?? -1 }
    )
  }
}
