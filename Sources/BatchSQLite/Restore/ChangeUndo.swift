package import BatchRuns
package import BatchIdentifiers

/// Reverts the changes of a run by objects to rows of any table, chunk by chunk.
package struct ChangeUndo: Restoration {
  private let log: UndoLog<ChangeRecord>
  private let overwrites: Bool
  /// The tables as they were when the run began; nil if that record was changed by hand.
  private let expected: ExpectedSchema?
  /// Whether the whole run was undone before.
  private let wasUndone: Bool
  /// The rows that several chunks have changed, loaded on demand.
  private let repeated = Lock<RepeatedChanges?>(nil)

  package init(
    _ log: UndoLog<ChangeRecord>,
    overwriting overwrites: Bool,
    again wasUndone: Bool
  ) {
    self.log = log
    expected = log.undo.schema.flatMap { ExpectedSchema(recorded: $0) }
    self.overwrites = overwrites
    self.wasUndone = wasUndone
  }

  /// Rows of a chunk may refer to one another, or have exchanged unique values.
  package var units: [Int] { log.firstPlaces }

  package struct Rows: RestoredRows {
    fileprivate var parts: [(record: ChangeRecord, place: Int, rows: [Int])] = []
    package fileprivate(set) var byteCount = 0
    package fileprivate(set) var count = 0
  }

  /// Reads the rows at some positions of the log; only those of the first records, if not all can
  /// be held at once.
  package func rows(at places: Range<Int>) throws(BatchError) -> Rows {
    var rows = Rows()
    try log.forEachPart(of: places) { record, place, part in
      rows.parts.append((record, place, part))
      rows.count += part.count
      rows.byteCount += record.byteCount
      return rows.byteCount < ChunkBytes.chunkLimit
    }
    return rows
  }

  /// Restores rows, inside the caller's transaction, without triggers and foreign-key actions.
  ///
  /// - Returns: Their outcomes, including those that could not be restored.
  /// - Throws: The error of the row that exceeds the allowed failures, or an error that concerns
  ///   more than one row.
  package func write(
    _ rows: Rows,
    onFailure policy: FailurePolicy,
    in connection: Connection
  ) throws(BatchError) -> ChunkResult {
    var written = ChunkResult()
    var number = 0
    for (record, place, part) in rows.parts {
      try expected?.limited(to: record).verify(in: connection)
      let restoration = try RecordRestoration(record, part, in: connection)
      let decision = try decide(restoration, at: place)
      written.passedOver.formUnion(decision.passedOver, from: number)
      let refused = decision.refused
      let failures = refused.merging(try restoration.perform(decision.steps)) { $1 }
      written.succeeded += decision.steps.count
      for (index, row) in part.enumerated() {
        guard let error = failures[row] else { continue }
        guard written.failures.count < policy.limit else {
          throw policy.refusal(error.about(record.key(of: row)))
        }
        if refused[row] == nil { written.succeeded -= 1 }
        written.failures.append((number + index, error))
      }
      number += part.count
    }
    return written
  }

  // MARK: Rows that several chunks have changed

  /// Decides what to do with the rows of a record, which rows others have changed, and which need
  /// nothing, by index among these rows.
  private func decide(
    _ restoration: RecordRestoration,
    at place: Int
  ) throws(BatchError) -> (
    steps: [RecordRestoration.Step], refused: [Int: BatchError], passedOver: PassedOver
  ) {
    var passedOver = PassedOver()
    var (steps, refused) = restoration.decide(overwriting: overwrites, &passedOver)
    // Rows that a complete undo did not restore may still be as a chunk left them.
    let isInDoubt = wasUndone ? Set(steps.map(\.row)) : []
    var undone: Set<Int> = []
    for (index, row) in restoration.rows.enumerated()
    where refused[row] != nil || isInDoubt.contains(row)
      || wasUndone && passedOver.vanished.contains(index)
    {
      guard try isUndone(row, of: restoration, at: place + index) else { continue }
      undone.insert(row)
      refused[row] = nil
      passedOver.vanished.remove(contentsOf: index..<index + 1)
      passedOver.unchanged.insert(index)
    }
    if !undone.isEmpty { steps.removeAll { undone.contains($0.row) } }
    return (steps, refused, passedOver)
  }

  /// Whether a row is as it was before an earlier chunk, so that this chunk's change is undone too.
  private func isUndone(
    _ row: Int,
    of restoration: RecordRestoration,
    at place: Int
  ) throws(BatchError) -> Bool {
    let repeated = try repeatedChanges()
    let key = restoration.record.key(of: row)
    guard repeated.contains(key) else { return false }
    var before = RecordRestoration.RowBefore()
    before.goBack(before: row, of: restoration.record)
    var isUndone = false
    try repeated.forEachEarlierChange(of: key, before: place) { record, earlier in
      before.goBack(before: earlier, of: record)
      isUndone = restoration.isSame(row, as: before)
      return !isUndone
    }
    return isUndone
  }

  private func repeatedChanges() throws(BatchError) -> RepeatedChanges {
    try repeated.withLock { repeated throws(BatchError) in
      if let repeated { return repeated }
      let found = try RepeatedChanges(log)
      repeated = found
      return found
    }
  }

  // MARK: Foreseeing

  /// Predicts what an undo would do to all rows.
  ///
  /// A row that several chunks have changed is compared with its state after the previous ones,
  /// which is kept only for such rows.
  ///
  /// - Parameters:
  ///   - limit: How many of the rows that would be left unchanged to return.
  ///   - reader: A connection to the store.
  /// - Returns: The counts, in which restorable rows count as succeeded, and some rows that would
  ///   be left unchanged.
  /// - Throws: `BatchError` of code `damagedFile` or `noUndo`, or errors of SQLite.
  package func foresee(
    telling limit: Int,
    in reader: StoreConnection
  ) async throws(BatchError) -> (outcomes: Outcomes, errors: [BatchError]) {
    let repeated = try repeatedChanges()
    return try await reader.perform { connection throws(BatchError) in
      var outcomes = Outcomes()
      var errors: [BatchError] = []
      var states: [PrimaryKey: RecordRestoration.Row?] = [:]
      try log.forEachPart(of: 0..<log.count) { record, place, part throws(BatchError) in
        try expected?.limited(to: record).verify(in: connection)
        var restoration = try RecordRestoration(record, part, in: connection)
        for row in part where repeated.contains(record.key(of: row)) {
          if let state = states[record.key(of: row)] { try restoration.assume(state, of: row) }
        }
        let (steps, refused, passedOver) = try decide(restoration, at: place)
        outcomes += passedOver.counts
        outcomes.succeeded += steps.count
        outcomes.failed += refused.count
        for row in part where errors.count < limit {
          if let error = refused[row] { errors.append(error.about(record.key(of: row))) }
        }
        let taken = Set(steps.map(\.row))
        for row in part where repeated.contains(record.key(of: row)) {
          states[record.key(of: row)] =
            taken.contains(row) ? restoration.restored(row) : restoration.now(row)
        }
        return true
      }
      return (outcomes, errors)
    }
  }
}
