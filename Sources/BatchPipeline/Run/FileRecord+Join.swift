import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchSQLite
import SystemPackage

extension FileRecord {
  func join(
    _ run: FoundRun<FileRun>,
    retryingFailures: Bool
  ) async throws(BatchError) -> RunEntry<FilePart> {
    switch run.record {
    case .checkpoint(let checkpoint):
      return retryingFailures ? try await retry(checkpoint) : try await resume(checkpoint)
    case .stored where retryingFailures: throw .noCheckpoint(of: cause)
    case .stored(let stored):
      try await restore(stored)
      return .again
    case .past: return .result(try result(of: run))
    }
  }

  /// The state that an unfinished run, or a retry of failures, continues from.
  private struct Reopened {
    let plan: any RunPlan
    let lane: WriterLane?
    /// From the ledger if the store keeps it; nil if the store does not know the run.
    var done: DoneRanges?
    /// How long processes have worked on the run according to the ledger.
    let elapsedSeconds: Double
  }

  private func reopen(_ checkpoint: Checkpoint) async throws(BatchError) -> Reopened {
    // Damage found later would fail a run that has begun instead of refusing it.
    try checkpoint.list.verifyChecksums()
    let plan = try await work.plan(
      of: RunIdentity(checkpoint.metadata),
      stoppedBy: stop,
      in: findings.store
    )
    try await plan.refuse(unlessFor: checkpoint)
    try checkpoint.metadata.refuse(
      unlessPlanned: cause,
      options,
      options.policy(of: cause),
      plan.statements,
      at: checkpoint.path.string
    )
    let lane = try plan.makeLane()
    var done: DoneRanges? = checkpoint.progress.done
    if let lane, checkpoint.metadata.ledger == .store {
      // The ledger commits with the data, so only the ledger knows what is done; the file lags
      // behind.
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
    let isDone = done.map { $0.count == checkpoint.total && $0.outcomes.failed == 0 } ?? false
    try plan.start(run: checkpoint.metadata.run, atMost: workerCount, hasRows: !isDone)
    let elapsed = await lane?.elapsedSeconds ?? 0
    return Reopened(plan: plan, lane: lane, done: done, elapsedSeconds: elapsed)
  }

  private func resume(_ checkpoint: Checkpoint) async throws(BatchError) -> RunEntry<FilePart> {
    var run = try await reopen(checkpoint)
    try checkpoint.openForAppending()
    if let loss = try checkpoint.lossOfOutput() {
      onEvent(.message("\(loss); an export only reads, so its output starts over"))
      try checkpoint.beginOutputAnew()
      run.done = DoneRanges()
    }
    guard let done = run.done else {
      try findings.refuseIfUnknown(checkpoint)
      throw checkpoint.missingLedger()
    }
    let session = RunSession(
      checkpoint: checkpoint,
      done: done,
      isResumed: true,
      after: run.elapsedSeconds
    )
    // So that a kill is not mistaken for the earlier stop. If it cannot be written, that will show.
    try? session.reopen()
    onEvent(.resumed(session.summary()))
    return part(run.plan, over: checkpoint.list, by: run.lane, session)
  }

  private func restore(_ run: StoredRun) async throws(BatchError) {
    let path = cause.checkpointPath
    let permissions = cause.files.permissions
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

  private func retry(_ checkpoint: Checkpoint) async throws(BatchError) -> RunEntry<FilePart> {
    lock?.noteRetry(of: checkpoint.metadata.run)
    let reopened = try await reopen(checkpoint)
    guard let lane = reopened.lane, checkpoint.metadata.ledger == .store else {
      throw BatchError(
        .invalidJob,
        "this job has no failed identifiers that can be retried",
        at: checkpoint.path.string,
        remedy:
          "only jobs that change rows do; batch ids --outcome failed --output FILE saves what an"
          + " export has left out, for a job with source.identifiers"
      )
    }
    guard let done = reopened.done else { throw checkpoint.missingLedger() }
    let retried = try await lane.retryFailures()
    if retried.positions.isEmpty, done.count < checkpoint.total {
      throw BatchError(
        .unfinishedRun,
        "the run is unfinished, and no identifier of it has failed alone",
        at: checkpoint.path.string,
        remedy: "resume it first: batch run"
      )
    }
    let list = try checkpoint.list.slice(retried.positions.map { $0..<($0 + 1) }).packed
    // A process may have been killed after the last chunk, before it recorded the end.
    guard !retried.positions.isEmpty || !findings.isFinished(checkpoint) else {
      if checkpoint.progress.awaitsAcknowledgement {
        await lane.close()
        return .end(
          try await end(of: FoundRun(.checkpoint(checkpoint), .finished, runID: nil, at: nil))
        )
      }
      onEvent(.message("nothing has failed; nothing to retry"))
      return .result(
        RunSummary(checkpoint.metadata, checkpoint.progress, checkpoint: checkpoint)
      )
    }
    let session = RunSession(
      checkpoint: checkpoint,
      done: done,
      isResumed: true,
      after: reopened.elapsedSeconds,
      retrying: retried
    )
    try checkpoint.openForAppending()
    try session.reopen()
    onEvent(.retryingFailures(session.summary()))
    return part(reopened.plan, over: list, by: lane, session)
  }
}
