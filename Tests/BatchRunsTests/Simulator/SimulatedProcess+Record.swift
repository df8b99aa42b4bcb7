@testable import BatchRuns
import BatchIdentifiers

/// The record of a simulation's run, as `FileRecord` has it: a file, and the ledger of the store.
extension SimulatedProcess: RunRecord {
  func find(_ request: RunRequest) throws(BatchError) -> FoundRuns<Checkpoint> {
    try mayCrash()
    if simulation.goesWrong(oncePer: 24) { throw .busy }
    let file = simulation.file
    guard file.exists else { return FoundRuns() }
    guard let ledger = simulation.store.content.ledger else {
      simulation.fail("there is a checkpoint, and the store does not know its run")
      throw .crashed
    }
    let checkpoint = checkpoint(file.progress)
    if file.restores == simulation.store.restores {
      demand(ledger.covers(checkpoint.progress.done), "the file knows of more than the ledger")
    }
    let run = FoundRun(
      checkpoint,
      checkpoint.progress.state(beside: ledger, of: checkpoint.list.count),
      runID: checkpoint.metadata.runID,
      isRetry: checkpoint.progress.isRetry == true,
      at: nil
    )
    return FoundRuns([run])
  }

  /// Enters a new run: in the store, and once that is durable in a file.
  func begin(
    _ request: RunRequest,
    replacing runs: [FoundRun<Checkpoint>]
  ) async throws(BatchError) -> RunEntry<SimulatedPart> {
    demand(simulation.store.content.ledger?.count ?? 0 == 0, "something is done without a file")
    try await RunSession.enterStore(Backoff(policy.retry), on: host) { () throws(BatchError) in
      try claim(DoneRanges())
    } then: { () throws(BatchError) in
      if simulation.goesWrong(oncePer: 12) { throw .busy }
      simulation.store.synchronize()
      restores = simulation.store.restores
      try mayCrash()
    }
    simulation.file.exists = true
    try mayCrash()
    return .part(part(of: checkpoint(RunProgress()), isResumed: false))
  }

  func join(
    _ run: FoundRun<Checkpoint>,
    retryingFailures: Bool
  ) throws(BatchError) -> RunEntry<SimulatedPart> {
    let progress = run.record.progress
    // The file lags behind.
    let known = simulation.flaw == .resumesFromFile ? progress.done : nil
    try claim(known ?? simulation.store.content.ledger ?? DoneRanges())
    // It shows the file's state until it has seen what is durable.
    restores = simulation.file.restores
    guard retryingFailures else {
      simulation.occur(.resumption)
      let part = part(of: run.record, isResumed: true)
      try? part.session.reopen()
      return .part(part)
    }
    let failed = simulation.store.failures
    guard !failed.isEmpty || !progress.isFinished(beside: ledger, of: run.record.list.count) else {
      return progress.awaitsAcknowledgement ? .end(end(of: run)) : .result(result(of: run))
    }
    retried = RetriedIdentifiers(failed, of: ledger)
    demand(retried != nil, "what has failed is in no row of the ledger")
    note("tries \(failed.map(\.position)) again")
    let part = part(of: run.record, isResumed: true)
    try part.session.reopen()
    return .part(part)
  }

  func end(of run: FoundRun<Checkpoint>) -> SimulatedEnd {
    ledger = simulation.store.content.ledger ?? DoneRanges()
    versionSeen = simulation.store.version
    simulation.occur(.secondEnd)
    return SimulatedEnd(process: self, checkpoint: run.record, summary: summary(of: run.record))
  }

  /// There is nothing left to do, and another run is not what is simulated.
  func result(of run: FoundRun<Checkpoint>) -> RunSummary {
    simulation.isOver = true
    return summary(of: run.record)
  }

  func wait(_ time: Duration) async throws(BatchError) {
    await host.sleep(time)
    try mayCrash()
  }

  func close() {}

  private func summary(of checkpoint: Checkpoint) -> RunSummary {
    RunSummary(checkpoint.metadata, checkpoint.progress, checkpoint: checkpoint)
  }

  private func checkpoint(_ progress: RunProgress) -> Checkpoint {
    Checkpoint(
      simulation.list.packed,
      metadata: simulation.metadata,
      progress: progress,
      failedAttempts: simulation.file.failedAttempts
    ) { [self] entry, replacesLast, sync throws(BatchError) in
      try append(entry, replacesLast, sync)
    }
  }

  private func part(of checkpoint: Checkpoint, isResumed: Bool) -> SimulatedPart {
    start = simulation.now
    lastReturn = simulation.now
    restoresAtStart = simulation.store.restores
    let session = RunSession(
      checkpoint: checkpoint,
      done: ledger,
      isResumed: isResumed,
      retrying: retried,
      by: self,
      on: host
    )
    if simulation.flaw != .skipsCanary { session.beginTrial(by: policy) }
    return SimulatedPart(process: self, session: session)
  }

  /// Appends to the checkpoint file.
  private func append(
    _ entry: CheckpointEntry,
    _ replacesLast: Bool,
    _ sync: Bool
  ) throws(BatchError) {
    try mayCrash()
    if simulation.goesWrong(oncePer: 24) {
      mayFail = true
      throw .broken
    }
    if case .progress(let progress) = entry {
      note("records \(progress.state), \(progress.done.count) done")
      if restores == simulation.store.restores {
        let isDurable = simulation.store.durable.ledger?.covers(progress.done) ?? false
        demand(isDurable, "the file is told of more than the ledger has durably")
      }
      let isDone = progress.done.count == simulation.scenario.count
      demand(isDone || !progress.state.isFinished, "it is finished, and not all is done")
      demand(
        simulation.isDelivered || progress.isAcknowledged != true,
        "the end is acknowledged, and nobody knows of it"
      )
    }
    simulation.file.append(
      entry,
      replacingLast: replacesLast,
      synced: sync,
      restores: restores
    )
    try mayCrash()
  }
}

/// What a session asks of its store.
extension SimulatedProcess: RunLedger {
  func makeDurable(
    _ progress: inout RunProgress,
    seen done: DoneRanges,
    knowing failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]? {
    // The lane may continue meanwhile.
    try await passInLane(upTo: 5)
    if simulation.goesWrong(oncePer: 12) { throw .busy }
    try verify()
    if simulation.flaw != .liesAboutDisk { simulation.store.synchronize() }
    restores = simulation.store.restores
    progress.done = ledger
    try mayCrash()
    return ledger.outcomes.failed == failedCount ? nil : simulation.store.failures
  }

  func seal() {}

  /// Records in the store that all is done.
  func finish(_ progress: inout RunProgress) throws(BatchError) {
    try verify()
    try commit { $0.hasEnded = true }
  }

  /// Works on the run from now on.
  private func claim(_ ledger: DoneRanges) throws(BatchError) {
    self.ledger = ledger
    try commit { content in
      content.ledger = content.ledger ?? ledger
      content.owner = id
    }
  }

  private func commit(_ change: (inout SimulatedStore.Content) -> Void) throws(BatchError) {
    var content = simulation.store.content
    change(&content)
    simulation.store.commit(content, synced: simulation.scenario.isFull)
    versionSeen = simulation.store.version
    try mayCrash()
  }

  /// Sees that the run is still its own, and its ledger as it left it.
  func verify() throws(BatchError) {
    let store = simulation.store
    guard simulation.flaw != .ignoresOwner, store.version != versionSeen else { return }
    if let stored = store.content.ledger, store.content.owner != id, stored.count >= ledger.count {
      mayFail = true
      throw BatchError(.alreadyRunning, "the run was taken over")
    }
    guard store.content.ledger == ledger else {
      mayFail = true
      throw BatchError(.init(rawValue: "storeChanged"), "the store is not as it was left")
    }
    versionSeen = store.version
  }
}
