package import BatchEngine
package import BatchIdentifiers

/// Puts rows back that a run has deleted.
package struct DeletionUndo: Sendable {
  private let log: UndoLog
  private let entity: Entity
  private let key: EntityKey
  private let overwrites: Bool

  /// - Throws: `BatchError` of code `unstableKey` for an entity without a key.
  package init(_ log: UndoLog, of entity: Entity, overwriting overwrites: Bool) throws(BatchError) {
    self.log = log
    self.entity = entity
    self.overwrites = overwrites
    key = try entity.requireKey()
  }

  /// Rows that were deleted, on their way to the writer lane.
  package struct Rows: Sendable {
    /// The values, those of the key first.
    fileprivate var values: ValueBlock
    /// How many bytes of texts and blobs they hold.
    package var byteCount: Int { values.bytes.count }
    /// How many there are.
    package var count: Int { values.count }
  }

  /// Reads the deleted rows at some places of the log: the first ones, if all hold more than is to be held.
  package func rows(at places: Range<Int>) throws(BatchError) -> Rows {
    let keyCount = log.undo.shape.key.count
    let columns = keyCount + log.undo.shape.columns.count
    var values = ValueBlock(columns: columns, capacity: places.count, count: places.count)
    try log.forEachRow(at: Array(places)) { index, record, row throws(BatchError) in
      guard values.bytes.count < ChunkBytes.chunkLimit else {
        return values.count = min(index, values.count)
      }
      for column in 0..<columns {
        if column < keyCount {
          try values.set(index, column, from: record.keys, row, column)
        } else {
          try values.set(index, column, from: record.before, row, column - keyCount)
        }
      }
    }
    return Rows(values: values)
  }

  /// Inserts rows, inside a transaction of the caller.
  ///
  /// - Returns: What became of them, and those that could not be put back.
  /// - Throws: The error of the row that is one too many, or whatever is about more than a row.
  func write(
    _ rows: Rows,
    at first: Int,
    onFailure policy: FailurePolicy,
    in connection: Connection
  ) throws(BatchError) -> WaitingChunk.Written {
    var written: WaitingChunk.Written = (Outcomes(), [])
    for row in 0..<rows.values.count {
      do throws(BatchError) {
        let isInserted = try connection.savepoint { () throws(BatchError) in
          try insert(row, of: rows.values, in: connection)
        }
        if isInserted { written.outcomes.succeeded += 1 } else { written.outcomes.unchanged += 1 }
      } catch {
        guard error.isAboutRows || error.code == .changedSince, !connection.isAutocommit,
          written.failures.count < policy.limit
        else { throw policy.refusal(error.about(keyOfRow(row, rows.values))) }
        written.failures.append((first + row, error))
      }
    }
    written.outcomes.failed = written.failures.count
    return written
  }

  private func keyOfRow(_ row: Int, _ values: ValueBlock) -> PrimaryKey {
    .encoded(EncodedKey(key.columns.indices.map { KeyComponent(values.value(row, $0)) }))
  }

  /// - Returns: Whether the row was inserted: not if it is there, as it was.
  private func insert(
    _ row: Int,
    of values: ValueBlock,
    in connection: Connection
  ) throws(BatchError) -> Bool {
    let columns = log.undo.shape.key + log.undo.shape.columns
    let isKey = key.columns.map { "\(SQLName.quoted($0)) IS ?" }.joined(separator: " AND ")
    let table = SQLName.quoted(entity.table)
    let current = try connection.prepare(
      "SELECT \(SQLName.list(columns)) FROM \(table) WHERE \(isKey)"
    )
    for index in key.columns.indices { try current.bind(values.value(row, index), at: index + 1) }
    if try current.step() {
      let now = columns.indices.map { current.value(at: $0) }
      current.reset()
      if columns.indices.allSatisfy({ now[$0].isIdentical(to: values.value(row, $0)) }) {
        return false
      }
      guard overwrites else {
        throw BatchError(
          .changedSince,
          "somebody has inserted a row with the key since",
          remedy: "with --overwrite it is replaced"
        )
      }
      let deletion = try connection.prepare("DELETE FROM \(table) WHERE \(isKey)")
      for index in key.columns.indices {
        try deletion.bind(values.value(row, index), at: index + 1)
      }
      try deletion.run()
    }
    let places = columns.map { _ in "?" }.joined(separator: ", ")
    let insertion = try connection.prepare(
      "INSERT INTO \(table) (\(SQLName.list(columns))) VALUES (\(places))"
    )
    for index in columns.indices { try insertion.bind(values.value(row, index), at: index + 1) }
    try insertion.run()
    return true
  }
}

extension WriterLane {
  /// Puts the rows of one chunk back and enters it in the ledger, both or neither.
  ///
  /// - Throws: What ``commitInTurn(_:onFailure:isAlone:_:whenCommitted:)`` throws.
  package func commitUndo(
    _ undo: DeletionUndo,
    _ rows: DeletionUndo.Rows,
    at positions: Range<Int>,
    onFailure: FailurePolicy
  ) async throws(BatchError) -> Commit {
    try await commitInTurn(positions, onFailure: onFailure) {
      [connection] onFailure throws(BatchError) in
      try undo.write(rows, at: positions.lowerBound, onFailure: onFailure, in: connection)
    }
  }
}
