package import BatchIdentifiers

/// A change whose values are computed outside SQL: rows are read, a handler computes, the writer
/// lane sets what was computed.
package struct RowTransform: Sendable {
  /// Where the values go, and which rows still are to be changed.
  package let target: BulkChange
  /// The columns that are read.
  private let reads: [String]
  /// The columns that are written.
  private let writes: [String]
  private let handler: any RowHandler
  /// Whether changing one row may change another one of the table, by a trigger or a foreign key.
  ///
  /// Then what a worker has read may be out of date through the run's own changes, and rows are
  /// changed by a statement each: one for all of them would look at `where` before the first is
  /// changed, and at foreign keys after the last.
  let mayChangeOtherRows: Bool

  /// A transform of the rows of `entity`; the predicate must have been checked.
  package init(
    entity: Entity,
    key: EntityKey,
    reads: [Attribute],
    writes: [Attribute],
    handler: any RowHandler,
    predicate: SQLExpression?,
    recheck: Recheck,
    parameters: [String: SQLValue],
    enforcesForeignKeys: Bool,
    connection: Connection
  ) throws(BatchError) {
    self.reads = reads.map(\.column)
    self.writes = writes.map(\.column)
    self.handler = handler
    target = BulkChange(
      entity: entity,
      key: key,
      action: .assign(writes.map { .init(column: $0.column, isPartial: false) }),
      predicate: predicate,
      recheck: recheck,
      parameters: parameters
    )
    mayChangeOtherRows = try target.reachesOtherRows(
      enforcesForeignKeys: enforcesForeignKeys,
      in: connection
    )
  }

  // MARK: The statements

  /// The statement that reads rows found by keys of this shape.
  ///
  /// After the declared columns it collects whether a row satisfies `where`, if that is applied
  /// again, and the key of a range.
  package func readSQL(for keys: ChunkKeys) -> String {
    var columns = reads.map(SQLName.quoted)
    // As in an export: a column tells rows that no longer satisfy `where` from rows that are gone.
    if let predicate { columns.append("\(predicate.sql) IS TRUE") }
    if keys.isRange { columns.append(SQLName.quoted(target.key.columns[0])) }
    // In the order of the keys.
    let order = keys.isRange ? " NOT INDEXED" : ""
    return """
      SELECT \(RowCollector.columns(columns)) FROM \(SQLName.quoted(target.entity.table))\(order) \
      WHERE \(keys.condition(key: target.key))
      """
  }

  private var predicate: SQLExpression? { target.recheck == .off ? nil : target.predicate }

  /// Compiles the statements, and so whatever triggers they set off; runs nothing.
  package func compile(in connection: Connection) throws(BatchError) {
    _ = try connection.prepare(readSQL(for: .shape(of: target.key)))
    try target.compile(in: connection)
  }

  // MARK: In a worker

  /// Reads the rows of a chunk and computes their changes.
  ///
  /// - Parameters:
  ///   - keys: The keys of the chunk.
  ///   - run: The run that changes them.
  ///   - look: What the lane's ``WriterLane/look`` was before.
  ///   - limit: How many may fail; nil if the first failure is that of the whole chunk.
  ///   - connection: The worker's connection.
  /// - Returns: What the lane applies.
  /// - Throws: What SQLite says, and what the handler does.
  package func prepare(
    _ keys: ChunkKeys,
    run: String,
    look: Int,
    failing limit: Int?,
    in connection: Connection
  ) throws(BatchError) -> TransformedChunk {
    let (rows, outcomes) = try connection.transaction(.deferred) { () throws(BatchError) in
      try read(keys, in: connection)
    }
    return try chunk(rows, outcomes, run: run, look: look, failing: limit)
  }

  /// Reads the declared columns of the rows of a chunk, in a transaction of the caller.
  private func read(
    _ keys: ChunkKeys,
    in connection: Connection
  ) throws(BatchError) -> (ChunkRows, Outcomes) {
    let statement = try connection.prepare(readSQL(for: keys))
    try statement.bind(target.parameters)
    let selected = keys.identifierCount
    let isChecked = predicate != nil
    let keyColumn = reads.count + (isChecked ? 1 : 0)
    var values = ValueBlock(columns: keyColumn + (keys.isRange ? 1 : 0), capacity: selected)
    var rows = ChunkRows(columns: reads, keys: keys)
    rows.numbers.reserveCapacity(selected)
    if keys.isRange { rows.rowIDs.reserveCapacity(selected) }
    // The rows that satisfy `where`, as those of a chunk nearly always all do.
    var matching: [Int] = []
    matching.reserveCapacity(selected)
    try keys.forEachBinding(of: statement, key: target.key) { numbers throws(BatchError) in
      let found = values.count
      guard try connection.collector.collect(from: statement, into: &values) else {
        throw BatchError.ambiguousKey(of: target.entity, target.key)
      }
      var numbers = numbers
      for row in found..<values.count where !isChecked || values.word(row, reads.count) != 0 {
        let rowID = keys.isRange ? values.word(row, keyColumn) : 0
        guard let number = numbers.next(rowID) else {
          throw BatchError.ambiguousKey(of: target.entity, target.key)
        }
        matching.append(row)
        rows.numbers.append(number)
        if keys.isRange { rows.rowIDs.append(rowID) }
      }
    }
    var outcomes = Outcomes()
    outcomes.noLongerMatching = values.count - matching.count
    values.keepColumns(reads.count)
    rows.values = matching.count == values.count ? values : values.selecting(matching)
    outcomes.vanished = selected - rows.count - outcomes.noLongerMatching
    guard outcomes.vanished >= 0 else {
      throw BatchError.ambiguousKey(of: target.entity, target.key)
    }
    try target.recheck.check(outcomes)
    return (rows, outcomes)
  }

  /// Computes the changes of rows.
  private func chunk(
    _ rows: ChunkRows,
    _ found: Outcomes,
    run: String,
    look: Int,
    failing limit: Int?
  ) throws(BatchError) -> TransformedChunk {
    let changes = try changes(of: rows, run: run, failing: limit)
    var outcomes = found
    outcomes.failed = changes.failures.count
    var changed: [Int] = []
    changed.reserveCapacity(rows.count)
    for row in 0..<rows.count where changes.values.isSet(row) { changed.append(row) }
    outcomes.unchanged = rows.count - changed.count - outcomes.failed
    let isWhole = changed.count == rows.keys.identifierCount
    return TransformedChunk(
      rows: rows,
      run: run,
      look: look,
      keys: isWhole ? rows.keys : rows.keys(ofRows: changed),
      numbers: isWhole ? rows.numbers : changed.map { rows.numbers[$0] },
      values: isWhole ? changes.values : changes.values.selecting(changed),
      outcomes: outcomes,
      failures: changes.failures.map { (rows.numbers[$0.row], $0.error) }
    )
  }

  /// Has the handler compute, and where it says no more than that something failed, has it compute
  /// halves, down to single rows.
  private func changes(
    of rows: ChunkRows,
    run: String,
    failing limit: Int?
  ) throws(BatchError) -> RowChanges {
    if rows.count == 0 { return RowChanges(values: ValueBlock(columns: writes.count, capacity: 0)) }
    var whole: RowChanges?
    // Parts still to do, the next one last.
    var parts = [0..<rows.count]
    while let part = parts.popLast() {
      let failedSoFar = whole?.failures.count ?? 0
      do throws(BatchError) {
        let isWhole = part.count == rows.count
        var changes = try handler.changes(
          of: isWhole ? rows : rows.part(part),
          run: run,
          failing: (limit ?? 0) - failedSoFar
        )
        changes.failures = changes.failures.map { ($0.row + part.lowerBound, $0.error) }
        if let failure = changes.failures.first, limit == nil {
          throw failure.error.about(rows.key(of: failure.row))
        }
        if isWhole {
          whole = changes
        } else {
          try whole?.values.replace(from: part.lowerBound, with: changes.values)
          whole?.failures += changes.failures
        }
      } catch {
        guard let limit, error.isAboutRows else { throw error }
        if whole == nil { whole = RowChanges(values: unset(rows.count)) }
        if part.count > 1 {
          let middle = part.lowerBound + part.count / 2
          parts.append(middle..<part.upperBound)
          parts.append(part.lowerBound..<middle)
        } else {
          whole?.failures.append((part.lowerBound, error))
        }
        guard failedSoFar <= limit else { throw error.pastSkip }
      }
      if let limit, let whole, whole.failures.count > limit {
        let failure = whole.failures[limit]
        throw failure.error.pastSkip.about(rows.key(of: failure.row))
      }
    }
    return whole ?? RowChanges(values: unset(rows.count))
  }

  private func unset(_ count: Int) -> ValueBlock {
    ValueBlock(columns: writes.count, capacity: count, count: count, filledWith: .unset)
  }

  // MARK: In the writer lane

  /// The chunk as it is now, under the write lock: computed again if a row has changed.
  func renewed(
    _ chunk: TransformedChunk,
    failing limit: Int?,
    in connection: Connection
  ) throws(BatchError) -> TransformedChunk {
    let (rows, outcomes) = try read(chunk.rows.keys, in: connection)
    if rows.isSame(as: chunk.rows) {
      var chunk = chunk
      chunk.outcomes.vanished = outcomes.vanished
      chunk.outcomes.noLongerMatching = outcomes.noLongerMatching
      return chunk
    }
    return try self.chunk(rows, outcomes, run: chunk.run, look: chunk.look, failing: limit)
  }

  /// Sets what was computed, inside a transaction of the caller.
  ///
  /// - Parameters:
  ///   - chunk: What was computed.
  ///   - first: The position of the chunk's first identifier.
  ///   - limit: How many may fail; nil if the first failure is that of the whole chunk.
  ///   - connection: The lane's connection.
  /// - Returns: What became of the chunk's identifiers, and those that failed, ascending.
  /// - Throws: The error of the row that is one too many, or whatever is about more than a row.
  func apply(
    _ chunk: TransformedChunk,
    at first: Int,
    failing limit: Int?,
    in connection: Connection
  ) throws(BatchError) -> (outcomes: Outcomes, failures: [(position: Int, error: BatchError)]) {
    var outcomes = chunk.outcomes
    var failures = chunk.failures.map { (position: first + $0.number, error: $0.error) }
    if let limit, failures.count > limit { throw failures[limit].error.pastSkip }
    guard !chunk.numbers.isEmpty else { return (outcomes, failures) }
    var change = target
    change.action = .assign(
      writes.enumerated().map { index, column in
        .init(column: column, isPartial: chunk.values.hasUnset(column: index))
      }
    )
    connection.values.block = chunk.values
    let applied: (outcomes: Outcomes, failures: [(position: Int, error: BatchError)])
    do throws(BatchError) {
      applied = try change.apply(
        to: mayChangeOtherRows ? chunk.keys.singly : chunk.keys,
        at: 0,
        failing: limit.map { $0 - failures.count },
        in: connection
      )
    } catch {
      throw limit == nil && error.isAboutRows
        ? culprit(of: error, change, chunk, in: connection) : error
    }
    outcomes += applied.outcomes
    failures += applied.failures.map { (first + chunk.numbers[$0.position], $0.error) }
    failures.sort { $0.position < $1.position }
    return (outcomes, failures)
  }

  /// The error with the identifier of the row that it is about, found by halves.
  private func culprit(
    of error: BatchError,
    _ change: BulkChange,
    _ chunk: TransformedChunk,
    in connection: Connection
  ) -> BatchError {
    guard !connection.isAutocommit,
      let tried = try? change.apply(to: chunk.keys, at: 0, failing: .max, in: connection),
      let found = tried.failures.first
    else { return error }
    return found.error.about(chunk.rows.keys.key(at: chunk.numbers[found.position]))
  }
}

/// A chunk that was read and computed, on its way to the writer lane.
package struct TransformedChunk: Sendable {
  /// What was read.
  let rows: ChunkRows
  let run: String
  /// The lane's look before it was read.
  let look: Int
  /// The keys of the rows that change, and their numbers within the chunk.
  let keys: ChunkKeys
  let numbers: [Int]
  /// The computed values, a row for each of the keys.
  let values: ValueBlock
  /// What became of the other identifiers.
  var outcomes: Outcomes
  let failures: [(number: Int, error: BatchError)]
}

extension BatchError {
  /// The error with the key of the row that it is about.
  func about(_ key: PrimaryKey) -> BatchError {
    var error = self
    error.message = "identifier \(key): \(message)"
    return error
  }
}
