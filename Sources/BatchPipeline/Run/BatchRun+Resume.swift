import BatchEngine
import BatchIdentifiers
import BatchStore
import SystemPackage

extension BatchRun {
  /// The state from which an unfinished run, or a retry of failures, continues.
  struct Reopened {
    let plan: any RunPlan
    let lane: WriterLane?
    /// The done positions, from the ledger if the store keeps it; nil if the store does not know
    /// the run.
    var done: DoneRanges?
  }

  /// Resolves the work of a checkpoint against its store's current state.
  func reopen(
    _ checkpoint: Checkpoint,
    _ findings: FileFindings
  ) async throws(BatchError) -> Reopened {
    // Damage found half-way would fail a run that has begun instead of refusing it.
    try checkpoint.list.verifyChecksums()
    let plan = try await work.plan(
      of: RunIdentity(checkpoint.metadata),
      for: self,
      in: findings.store
    )
    try await plan.refuse(unlessFor: checkpoint)
    let lane = try plan.makeLane()
    var done: DoneRanges? = checkpoint.progress.done
    if let lane, checkpoint.metadata.ledger == .store {
      // The ledger commits with the data, so it alone knows what is done; the file lags behind.
      done = try await lane.resume(checkpoint.metadata.run)
    }
    guard done?.rows.last?.next ?? 0 <= checkpoint.list.count else {
      throw BatchError(
        .damagedFile,
        "the ledger and the checkpoint do not belong together",
        at: checkpoint.path.string,
        remedy: "run with --fresh to select again"
      )
    }
    let isDone = done.map { $0.count == checkpoint.list.count && $0.outcomes.failed == 0 } ?? false
    try plan.start(
      run: checkpoint.metadata.run,
      atMost: workerCount,
      hasRows: !isDone
    )
    return Reopened(plan: plan, lane: lane, done: done)
  }

  func resume(
    _ checkpoint: Checkpoint,
    _ findings: FileFindings,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> Ended {
    var run = try await reopen(checkpoint, findings)
    try checkpoint.takeUp()
    if let loss = checkpoint.lossOfOutput() {
      onEvent(.message("\(loss); an export only reads, so its output starts over"))
      try checkpoint.beginOutputAnew()
      run.done = DoneRanges()
    }
    if run.done == nil {
      try findings.refuseIfUnknown(checkpoint)
      guard !checkpoint.wasEntered else { throw checkpoint.missingLedger() }
      // An earlier version was killed between saving the checkpoint and entering the run in the
      // store.
      _ = try await run.lane?.prepareStore()
      var description = RunDescription(
        checkpoint.metadata,
        total: checkpoint.list.count,
        at: checkpoint.path
      )
      description.settledRuns = Checkpoint.runsSetAside(of: job.checkpointPath)
      try await run.lane?.begin(description)
    }
    let session = RunSession(
      checkpoint: checkpoint,
      done: run.done ?? DoneRanges(),
      isResumed: true
    )
    // So that a kill is not mistaken for the earlier stop. If it cannot be written, that will show.
    try? session.reopen()
    onEvent(.resumed(session.summary()))
    let execution = RunExecution(
      run: self,
      plan: run.plan,
      list: checkpoint.list,
      lane: run.lane,
      session: session,
      onEvent: onEvent
    )
    return await end(execution, answer)
  }

  /// Restores a lost checkpoint from the list that the store has kept.
  func restore(
    _ run: StoredRun,
    _ findings: FileFindings,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async throws(BatchError) {
    let path = job.checkpointPath
    let permissions = job.files.permissions
    _ = try await findings.store?.readList(ofRun: run.run) { next throws(BatchError) in
      let file = try NewFile(for: path, permissions: permissions)
      do throws(BatchError) {
        while let piece = try next() { try file.write(piece) }
        try file.publish(overwriting: true)
      } catch {
        file.remove()
        throw error
      }
    }
    onEvent(.message("the checkpoint was lost, and was restored from the database"))
  }
}
