package import BatchEngine
package import BatchIdentifiers

/// Gives back what the chunks of a run by objects have done to rows of any table, a chunk at a time.
package struct ChangeUndo: Restoration {
  private let log: UndoLog<ChangeRecord>
  /// Whether rows that somebody has changed since are given back too.
  private let overwrites: Bool
  /// Whether all of the run was undone before.
  private let wasUndone: Bool
  /// The rows that several chunks have changed, once somebody has asked for them.
  private let repeated = Lock<RepeatedChanges?>(nil)

  package init(
    _ log: UndoLog<ChangeRecord>,
    overwriting overwrites: Bool,
    again wasUndone: Bool
  ) {
    self.log = log
    self.overwrites = overwrites
    self.wasUndone = wasUndone
  }

  /// Rows of a chunk may refer to one another, or have taken each other's places in an index.
  package var units: [Int] { log.firstPlaces }

  /// Rows of some records, on their way to the writer lane.
  package struct Rows: RestoredRows {
    fileprivate var parts: [(record: ChangeRecord, place: Int, rows: [Int])] = []
    /// How many bytes they hold.
    package fileprivate(set) var byteCount = 0
    /// How many there are.
    package fileprivate(set) var count = 0
  }

  /// Reads the rows at some places of the log.
  ///
  /// - Returns: Those of the first records, if not all are to be held at once.
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

  /// Gives rows back, inside a transaction of the caller, without triggers and actions of foreign keys.
  ///
  /// - Returns: What became of them, and those that could not be given back.
  /// - Throws: The error of the row that is one too many, or whatever is about more than a row.
  package func write(
    _ rows: Rows,
    at first: Int,
    onFailure policy: FailurePolicy,
    in connection: Connection
  ) throws(BatchError) -> WaitingChunk.Written {
    var written = WaitingChunk.Written()
    var position = first
    for (record, place, part) in rows.parts {
      let restoration = try RecordRestoration(record, part, in: connection)
      let decision = try decide(restoration, at: place)
      written.passedOver.formUnion(decision.passedOver, from: position - first)
      let refused = decision.refused
      let failures = refused.merging(try restoration.perform(decision.steps)) { $1 }
      written.succeeded += decision.steps.count
      for (index, row) in part.enumerated() {
        guard let error = failures[row] else { continue }
        guard written.failures.count < policy.limit else {
          throw policy.refusal(error.about(record.key(of: row)))
        }
        if refused[row] == nil { written.succeeded -= 1 }
        written.failures.append((position + index, error))
      }
      position += part.count
    }
    return written
  }

  // MARK: Rows that several chunks have changed

  /// What is to be done to the rows of a record, those that somebody has changed, and those about which
  /// nothing is to be done, by their places among these rows.
  private func decide(
    _ restoration: RecordRestoration,
    at place: Int
  ) throws(BatchError) -> (
    steps: [RecordRestoration.Step], refused: [Int: BatchError], passedOver: PassedOver
  ) {
    var passedOver = PassedOver()
    var (steps, refused) = restoration.decide(overwriting: overwrites, &passedOver)
    // What is left after all of a run is undone may be just as a chunk has left it.
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

  /// Whether a row is as it was before an earlier chunk: then what this one has done to it is undone too.
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

  /// What would become of all rows.
  ///
  /// A row that several chunks have changed is looked at as it would be after those before it, which is
  /// remembered of such rows alone.
  ///
  /// - Parameters:
  ///   - limit: How many of the rows that would be left alone are told.
  ///   - reader: A connection to the store.
  /// - Returns: The counts, where those that would be given back have succeeded, and some that would not.
  /// - Throws: `BatchError` of code `damagedFile` or `noUndo`, or what SQLite says.
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
