package import BatchEngine
package import BatchIdentifiers

/// Gives back what the chunks of a run by objects have done to rows of any table, a chunk at a time.
package struct ChangeUndo: Restoration {
  private let log: UndoLog<ChangeRecord>
  /// Whether rows that somebody has changed since are given back too.
  private let overwrites: Bool

  package init(_ log: UndoLog<ChangeRecord>, overwriting overwrites: Bool) {
    self.log = log
    self.overwrites = overwrites
  }

  /// Rows of a chunk may refer to one another, or have taken each other's places in an index.
  package var units: [Int] { log.firstPlaces }

  /// Rows of some records, on their way to the writer lane.
  package struct Rows: RestoredRows {
    fileprivate var parts: [(record: ChangeRecord, rows: [Int])] = []
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
    try log.forEachPart(of: places) { record, part in
      rows.parts.append((record, part))
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
    for (record, part) in rows.parts {
      let restoration = try RecordRestoration(record, part, in: connection)
      var passedOver = PassedOver()
      let (steps, refused) = restoration.decide(overwriting: overwrites, &passedOver)
      written.passedOver.formUnion(passedOver, from: position - first)
      let failures = refused.merging(try restoration.perform(steps)) { $1 }
      written.succeeded += steps.count
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
    let repeated = try repeatedKeys()
    return try await reader.perform { connection throws(BatchError) in
      var outcomes = Outcomes()
      var errors: [BatchError] = []
      var states: [PrimaryKey: RecordRestoration.Row?] = [:]
      try log.forEachPart(of: 0..<log.count) { record, part throws(BatchError) in
        var restoration = try RecordRestoration(record, part, in: connection)
        for row in part where repeated.contains(record.key(of: row)) {
          if let state = states[record.key(of: row)] { try restoration.assume(state, of: row) }
        }
        var passedOver = PassedOver()
        let (steps, refused) = restoration.decide(overwriting: overwrites, &passedOver)
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

  /// The keys of rows that more than one chunk has changed.
  private func repeatedKeys() throws(BatchError) -> Set<PrimaryKey> {
    var seen: Set<PrimaryKey> = []
    var repeated: Set<PrimaryKey> = []
    try log.forEachPart(of: 0..<log.count) { record, part in
      for row in part {
        let key = record.key(of: row)
        if !seen.insert(key).inserted { repeated.insert(key) }
      }
      return true
    }
    return repeated
  }
}
