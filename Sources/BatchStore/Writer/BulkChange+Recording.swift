import BatchEngine
import BatchIdentifiers

extension BulkChange {
  /// What is recorded of the rows, so that the change can be undone.
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

  /// The declared types of the recorded columns.
  package var recordedTypes: [String] {
    undoShape.columns.map { column in
      entity.attributes.first { $0.column == column }?.type ?? ""
    }
  }

  /// Has the change keep what it does in the undo records of a run.
  package func recorded(forRun run: String) -> BulkChange {
    var change = self
    change.undoRun = run
    return change
  }

  /// Whether workers read for the records what rows are, while the lane writes others.
  ///
  /// A deletion records the rows that it finds, and alone decides which these are.
  var recordsAhead: Bool { undoRun != nil && isIndependent && !undoShape.isDeletion }

  /// The rows that the change is about to write.
  ///
  /// - Returns: Nil if they hold more than is to be held at once, and are not a single one.
  func rowsBefore(
    _ keys: ChunkKeys,
    in connection: Connection
  ) throws(BatchError) -> RowsBefore? {
    try rows(keys, where: condition(for: keys), in: connection).map {
      RowsBefore($0, keyCount: key.columns.count)
    }
  }

  /// The rows of a chunk, read by a worker before the chunk's turn comes.
  ///
  /// Those that the change will leave alone are among them: only when it is made is it known which.
  ///
  /// - Parameters:
  ///   - keys: The keys of the chunk.
  ///   - lookCount: What the lane's ``WriterLane/lookCount`` was before.
  ///   - connection: The worker's connection.
  /// - Returns: Nil if they hold more than is to be held at once.
  /// - Throws: What SQLite says.
  func readAhead(
    _ keys: ChunkKeys,
    lookCount: Int,
    in connection: Connection
  ) throws(BatchError) -> RowsAhead? {
    try rows(keys, where: keys.condition(key: key), in: connection).map {
      RowsAhead(RowsBefore($0, keyCount: key.columns.count), lookCount: lookCount)
    }
  }

  /// Keeps what rows were before the change and what they are after it.
  ///
  /// The latter is read in the transaction of the change, so that nothing that triggers, defaults and
  /// types have their part in is missed.
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
    try connection.execute(
      "INSERT INTO _batch_undo (run, rows, bytes) VALUES (?, ?, ?)",
      .text(run),
      .integer(Int64(record.count)),
      .blob(record.packed)
    )
  }

  /// The keys and recorded columns of rows, in the order of the keys.
  private func rows(
    _ keys: ChunkKeys,
    where condition: String,
    holding byteLimit: Int = ChunkBytes.chunkLimit,
    in connection: Connection
  ) throws(BatchError) -> ValueBlock? {
    let shape = undoShape
    let columns = (shape.key + shape.columns).map(SQLName.quoted)
    let order = keys.isRange ? " NOT INDEXED" : ""
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
  /// The rows that another block has, in its order; of those that are missing no value is given.
  ///
  /// - Parameters:
  ///   - other: Rows whose first columns tell them apart, as those of this block do.
  ///   - keyCount: How many columns these are.
  /// - Returns: As many rows as the other block has.
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
