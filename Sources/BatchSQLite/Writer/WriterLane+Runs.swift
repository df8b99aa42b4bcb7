package import BatchRuns
package import BatchIdentifiers

extension WriterLane {
  /// Stores the UUID of `proposal` if the store has none, and creates the ledger's tables.
  package func prepareStore(
    _ proposal: StoreIdentity = .made()
  ) throws(BatchError) -> StoreIdentity {
    try connection.transaction(.immediate) { () throws(BatchError) in
      try Ledger.createTables(in: connection)
      return try StoreIdentity.establish(proposal, in: connection)
    }
  }

  /// Enters a new run in the ledger and makes this lane its owner.
  ///
  /// Stores `list`, with the metadata of its checkpoint, if given.
  ///
  /// - Throws: `BatchError` of code `alreadyRunning` or `unfinishedRun` if another run of the job
  ///   prevents it, or errors of SQLite; then nothing is entered.
  package func begin(
    _ run: RunDescription,
    keeping list: (list: PackedIdentifiers, metadata: [UInt8])? = nil
  ) throws(BatchError) {
    var entered = owned
    try connection.transaction(.immediate) { () throws(BatchError) in
      try entered.enter(run, in: connection)
      if let list {
        try StoredList.enter(
          list.list,
          metadata: list.metadata,
          ofRun: run.identifier,
          in: connection
        )
      }
    }
    owned = entered
  }

  /// Removes a job's finished runs except `kept`, and `runs` even if they are unfinished, from the
  /// ledger.
  ///
  /// Returns the number of removed runs; `oldestEnd` is the earliest end of runs whose IDs are
  /// remembered, or nil for all.
  package func removeRuns(
    ofJob job: String,
    and runs: [String],
    but kept: String?,
    before oldestEnd: String? = nil
  ) throws(BatchError) -> Int {
    try connection.transaction(.immediate) { () throws(BatchError) in
      try Ledger.remove(ofJob: job, and: runs, but: kept, before: oldestEnd, in: connection)
    }
  }

  /// Adopts the ledger of a run and makes this lane its owner.
  ///
  /// - Returns: The done ranges, or nil if the store does not know the run.
  /// - Throws: `BatchError` of code `alreadyRunning` if another lane works on it.
  @discardableResult
  package func resume(_ run: String) throws(BatchError) -> DoneRanges? {
    var claimed = owned
    try connection.transaction(.immediate) { () throws(BatchError) in
      try claimed.claim(run, in: connection)
    }
    owned = claimed
    return owned.ledger?.done
  }

  /// How long processes have worked on the lane's run.
  package var elapsedSeconds: Double { owned.elapsedSeconds }

  /// Makes the coming chunks retry failed identifiers, by index in their list.
  ///
  /// - Returns: All failed identifiers of the run.
  /// - Throws: `BatchError` of code `damagedFile` if the store's tables contradict each other.
  /// - Precondition: ``resume(_:)`` has found the run.
  package func retryFailures() throws(BatchError) -> RetriedIdentifiers {
    guard let entered = owned.ledger else { preconditionFailure("a retry without a ledger") }
    let failed = try Ledger.failed(ofRun: entered.run, in: connection)
    guard failed.count == entered.done.outcomes.failed,
      let retried = RetriedIdentifiers(failed, of: entered.done)
    else { throw Ledger.damaged(entered.run) }
    owned.retry(retried)
    return retried
  }

  /// Verifies that the run is as this lane left it, after others had time to change the store.
  ///
  /// - Throws: `BatchError` of code `storeChanged` or `alreadyRunning`. A missing file is no error,
  ///   since a hook may have moved it.
  package func verifyStore() throws(BatchError) {
    guard run != nil, connection.hasFile else { return }
    try connection.transaction(.deferred) { () throws(BatchError) in
      try owned.verify(in: connection)
    }
  }

  /// Makes all commits durable, whatever `synchronous` is: not even a power failure undoes them.
  ///
  /// - Returns: The durable ranges, and all failed identifiers of the run unless the caller knows
  ///   as many; always if `failedCount` is nil.
  /// - Throws: Errors of SQLite, or an error if the run no longer belongs to this lane; commits
  ///   stay.
  package func makeDurable(
    failedCount: Int? = 0
  ) async throws(BatchError) -> (done: DoneRanges, failed: [FailedIdentifier]?) {
    // The lane should be idle when the last chunk of a run is durable.
    await log.currentPass?.value
    try connection.transaction(.deferred) { () throws(BatchError) in
      // A deferred transaction begins with its first read.
      _ = try connection.value("SELECT count(*) FROM sqlite_schema")
      try owned.verify(in: connection)
    }
    try connection.synchronize()
    guard let ledger = owned.ledger else { return (DoneRanges(), []) }
    let isKnown = ledger.done.outcomes.failed == failedCount
    return (ledger.done, isKnown ? nil : try Ledger.failed(ofRun: ledger.run, in: connection))
  }

  /// The passed-over identifiers of the run after a position; nil if none are left.
  package func passedOver(
    after last: Int?
  ) throws(BatchError) -> [PassedOverRecord.Piece]? {
    guard let run else { return nil }
    return try Ledger.passedOver(ofRun: run, after: last, in: connection)
  }

  package func acknowledge(_ run: String) throws(BatchError) {
    // A store without a ledger gets no tables.
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_batch_run'"
    guard try connection.value(table) != nil else { return }
    try connection.transaction(.immediate) { () throws(BatchError) in
      try Ledger.createTables(in: connection)
      try StoredRun.acknowledge(run, in: connection)
      try StoredList.remove(ofRun: run, in: connection)
    }
  }

  /// Releases the run near its end, so that this process no longer counts as working on it.
  package func release() throws(BatchError) {
    guard run != nil, connection.hasFile else { return }
    try owned.release(in: connection)
  }
}

extension WriterLane: RunLedger {
  /// Syncs everything committed to the disk, if the run is entered in the store or has written to
  /// it.
  package func makeDurable(
    _ progress: inout RunProgress,
    seen done: DoneRanges,
    knowing failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]? {
    progress.done = done
    guard run != nil || hasWritten else { return [] }
    let durable = try await makeDurable(failedCount: failedCount)
    if run != nil { progress.done = durable.done }
    progress.peakWALBytes = max(progress.peakWALBytes, try peakLogBytes())
    return durable.failed
  }

  package func seal() {}

  package func finish(_ progress: inout RunProgress) throws(BatchError) {
    guard let run else { return }
    let (seconds, total) = (progress.elapsedSeconds, progress.total)
    try connection.transaction(.immediate) { () throws(BatchError) in
      try owned.verify(in: connection)
      try StoredRun.finish(run, after: seconds, total: total, in: connection)
    }
  }
}
