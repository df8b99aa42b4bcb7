package import BatchRuns
package import BatchIdentifiers

/// Reinserts rows that a run has deleted.
package struct DeletionUndo: Restoration {
  private let log: UndoLog<UndoRecord>
  private let entity: Entity
  private let table: String
  private let keyCount: Int
  private let columns: [String]
  /// The indexes of the columns to insert; SQLite computes the others, even those of a key.
  private let inserted: [Int]
  private let overwrites: Bool

  package init(_ log: UndoLog<UndoRecord>, of entity: Entity, overwriting overwrites: Bool) {
    self.log = log
    self.overwrites = overwrites
    self.entity = entity
    table = SQLName.quoted(entity.table)
    keyCount = log.undo.shape.key.count
    columns = log.undo.shape.key + log.undo.shape.columns
    let generated = entity.attributes.filter(\.isGenerated).map(\.column)
    inserted = columns.indices.filter { [columns] in !generated.contains(columns[$0]) }
  }

  package struct Rows: RestoredRows {
    /// The values, those of the key first.
    fileprivate var values: ValueBlock
    package var byteCount: Int { values.bytes.count }
    package var count: Int { values.count }
  }

  /// Reads the deleted rows at some positions of the log; only the first of them, if not all can be
  /// held at once.
  package func rows(at places: Range<Int>) throws(BatchError) -> Rows {
    var values = ValueBlock(columns: columns.count, capacity: places.count, count: places.count)
    try log.forEachRow(at: Array(places)) { index, record, row throws(BatchError) in
      guard values.bytes.count < ChunkBytes.chunkLimit else {
        return values.count = min(index, values.count)
      }
      for column in columns.indices {
        if column < keyCount {
          try values.set(index, column, from: record.keys, row, column)
        } else {
          try values.set(index, column, from: record.before, row, column - keyCount)
        }
      }
    }
    return Rows(values: values)
  }

  /// Predicts what an undo would do to rows.
  ///
  /// - Returns: The counts, in which restorable rows count as succeeded, and those that would be
  ///   left unchanged.
  package func foresee(
    _ rows: Rows,
    in connection: Connection
  ) throws(BatchError) -> (Outcomes, [BatchError]) {
    var outcomes = Outcomes()
    var errors: [BatchError] = []
    for row in 0..<rows.values.count {
      let current = try current(row, of: rows.values, in: connection)
      if current.count == 0 {
        outcomes.succeeded += 1
      } else if current.isSame(0, as: rows.values, row) {
        outcomes.unchanged += 1
      } else if overwrites {
        outcomes.succeeded += 1
      } else {
        outcomes.failed += 1
        errors.append(
          log.changed(rows.values, row, keyCount, to: current, 0, columns)
            .about(rows.values.key(of: row, columns: keyCount))
        )
      }
    }
    return (outcomes, errors)
  }

  /// Inserts rows, inside the caller's transaction.
  ///
  /// - Returns: Their outcomes, including those that could not be inserted.
  /// - Throws: The error of the row that exceeds the allowed failures, or an error that concerns
  ///   more than one row.
  package func write(
    _ rows: Rows,
    onFailure policy: FailurePolicy,
    in connection: Connection
  ) throws(BatchError) -> ChunkResult {
    var written = ChunkResult()
    let hasTriggers = try connection.hasTriggers(on: entity.table)
    for row in 0..<rows.values.count {
      do throws(BatchError) {
        let isChanged = try connection.savepoint { () throws(BatchError) in
          let isChanged = try put(row, of: rows.values, in: connection)
          if isChanged, hasTriggers, try problem(row, of: rows.values, in: connection) != nil {
            // Triggers may change a new row in ways that they do not change an existing one, so
            // update it too.
            try update(row, of: rows.values, in: connection)
            if let error = try problem(row, of: rows.values, in: connection) { throw error }
          }
          return isChanged
        }
        if isChanged { written.succeeded += 1 } else { written.passedOver.unchanged.insert(row) }
      } catch {
        guard error.isAboutRows || error.code == .changedSince, !connection.isAutocommit,
          written.failures.count < policy.limit
        else { throw policy.refusal(error.about(rows.values.key(of: row, columns: keyCount))) }
        written.failures.append((row, error))
      }
    }
    if written.succeeded > 0 { try connection.keepMaximum(of: entity) }
    return written
  }

  /// Whether something was written; nothing is if the row exists unchanged.
  private func put(
    _ row: Int,
    of values: ValueBlock,
    in connection: Connection
  ) throws(BatchError) -> Bool {
    let current = try current(row, of: values, in: connection)
    guard current.count > 0 else {
      let places = inserted.map { _ in "?" }.joined(separator: ", ")
      let names = SQLName.list(inserted.map { columns[$0] })
      // No other row is replaced, whatever conflict clause the table has.
      try run(
        "INSERT OR ABORT INTO \(table) (\(names)) VALUES (\(places))",
        row,
        of: values,
        inserted,
        in: connection
      )
      return true
    }
    if current.isSame(0, as: values, row) { return false }
    guard overwrites else { throw log.changed(values, row, keyCount, to: current, 0, columns) }
    try update(row, of: values, in: connection)
    return true
  }

  private func update(
    _ row: Int,
    of values: ValueBlock,
    in connection: Connection
  ) throws(BatchError) {
    let set = inserted.filter { $0 >= keyCount }
    if set.isEmpty { return }
    let sets = set.map { "\(SQLName.quoted(columns[$0])) = ?" }.joined(separator: ", ")
    try run(
      "UPDATE OR ABORT \(table) SET \(sets) WHERE \(keyCondition)",
      row,
      of: values,
      set + Array(0..<keyCount),
      in: connection
    )
  }

  /// The error of a row that lacks its values after its triggers have run; nil if it has them.
  private func problem(
    _ row: Int,
    of values: ValueBlock,
    in connection: Connection
  ) throws(BatchError) -> BatchError? {
    let now = try current(row, of: values, in: connection)
    guard now.count == 1 else { return BatchError.notRestored(in: entity) }
    for column in inserted where !now.isSame(0, column, as: values, row) {
      return BatchError.notRestored(
        columns[column],
        now.value(0, column),
        insteadOf: values.value(row, column),
        in: entity
      )
    }
    return nil
  }

  private var keyCondition: String {
    columns[..<keyCount].map { "\(SQLName.quoted($0)) IS ?" }.joined(separator: " AND ")
  }

  /// The row that now has the key; no rows if there is none.
  private func current(
    _ row: Int,
    of values: ValueBlock,
    in connection: Connection
  ) throws(BatchError) -> ValueBlock {
    let statement = try connection.prepare(
      """
      SELECT \(RowCollector.columns(columns.map(SQLName.quoted))) FROM \(table)
      WHERE \(keyCondition)
      """
    )
    for column in 0..<keyCount { try statement.bind(values, row, column, at: column + 1) }
    var current = ValueBlock(columns: columns.count, capacity: 1)
    _ = try connection.collector.collect(from: statement, into: &current, upTo: .max)
    statement.reset()
    return current
  }

  private func run(
    _ sql: String,
    _ row: Int,
    of values: ValueBlock,
    _ parameters: [Int],
    in connection: Connection
  ) throws(BatchError) {
    let statement = try connection.prepare(sql)
    for (index, column) in parameters.enumerated() {
      try statement.bind(values, row, column, at: index + 1)
    }
    try statement.run()
    guard connection.changes == 1 else {
      throw BatchError(
        .changedSince,
        "the database left the row out without an error",
        remedy: "look for a trigger with RAISE(IGNORE)"
      )
    }
  }
}

extension Connection {
  fileprivate func hasTriggers(on table: String) throws(BatchError) -> Bool {
    let sql = """
      SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = lower(?) LIMIT 1
      """
    return try value(sql, .text(table)) != nil
  }
}
