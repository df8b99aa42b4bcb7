import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchSQLite
import SystemPackage

extension FileRecord {
  func begin(
    _ request: RunRequest,
    replacing runs: [FoundRun<FileRun>]
  ) async throws(BatchError) -> RunEntry<FilePart> {
    let run = RunIdentity(
      after: LastIncrement(findings.checkpoint, startingOver: options.fresh)
    )
    let plan = try await work.plan(of: run, stoppedBy: stop, in: findings.store)
    var metadata = metadata(of: run, plan)
    try plan.describeOutput(in: &metadata, after: findings.checkpoint)
    try await plan.enterIncrement()

    // The selection may be refused or interrupted, so it precedes any write. A store without an
    // identity gets the one in the selected identifiers.
    let identity =
      plan.ledger == .store && plan.identity.isDerived ? .made() : plan.identity
    let start = ContinuousClock.now
    let selection = try await plan.select(identity, readers: workerCount, stoppedBy: stop)
    let selectionTime = start.duration(to: .now)
    plan.describeWork(in: &metadata, selection)
    try metadata.notePlan(
      of: cause,
      options,
      options.policy(of: cause),
      plan.statements,
      over: selection.list,
      plan.plannedSchema
    )
    let replaced = try await findings.ledgerOfReplaced()
    try plan.start(run: run.run, atMost: workerCount, hasRows: selection.list.count > 0)

    // From here on, files and tables are written, and errors are failures of the run.
    var entry = LaneEntry(selectionTime: selectionTime)
    let checkpoint: Checkpoint
    do {
      if findings.replacedFile != nil { try findings.checkpoint?.openForAppending() }
      try await enter(run, metadata, selection, identity, plan, &entry)
      // Another run gave the database its identity at the same moment, which is now permanent.
      if entry.isOutrun { return .again }
      checkpoint = try makeFile(selection.list, metadata, replacing: replaced)
    } catch {
      // The store refused the run before it wrote anything, or it was locked.
      if error.code == .alreadyRunning || error.code == .unfinishedRun
        || !entry.isEntered && (error.isTransient || error.code == .unsupportedVersion)
      {
        try? plan.stop()
        await plan.close()
        throw error
      }
      return .result(await failure(error, metadata, selection.list.count, entry.lane))
    }
    try checkpoint.openForAppending()
    let session = RunSession(
      checkpoint: checkpoint,
      done: DoneRanges(),
      isResumed: false,
      selectedIn: selectionTime
    )
    onEvent(.started(session.summary()))
    return part(plan, over: checkpoint.list, by: entry.lane, session)
  }

  /// How much of a run was entered in its store.
  private struct LaneEntry {
    let selectionTime: Duration
    var lane: WriterLane?
    var isEntered = false
    /// Whether another process was faster.
    var isOutrun = false
  }

  private func metadata(of run: RunIdentity, _ plan: any RunPlan) -> RunMetadata {
    var metadata = RunMetadata(
      run: run.run,
      job: cause.name,
      startedAt: run.startedAt,
      fingerprint: "",
      schema: [],
      ledger: plan.ledger
    )
    metadata.startedMicroseconds = run.startedMicroseconds
    if cause.database.server == nil {
      metadata.database = FileSystem.absolute(cause.database.path).string
    }
    metadata.runID = options.runID
    metadata.canary = cause.canaryRows
    metadata.increment = plan.increment
    let past = findings.pastRuns
    metadata.pastRuns = past.isEmpty ? nil : past
    metadata.invocation = cause.invocation(commandLine: options.commandLine)
    return metadata
  }

  /// Enters a run in its store durably, if the store keeps its ledger.
  private func enter(
    _ run: RunIdentity,
    _ metadata: RunMetadata,
    _ selection: RunSelection,
    _ identity: StoreIdentity,
    _ plan: any RunPlan,
    _ entry: inout LaneEntry
  ) async throws(BatchError) {
    entry.lane = try plan.makeLane()
    guard let lane = entry.lane, plan.ledger == .store else { return }
    guard try await lane.prepareStore(identity) == identity || selection.isGiven else {
      entry.isOutrun = true
      await lane.close()
      try plan.stop()
      await plan.close()
      return
    }
    var description = RunDescription(
      metadata,
      total: selection.list.count,
      at: cause.checkpointPath
    )
    description.selectionSeconds = entry.selectionTime / .seconds(1)
    description.undo = try plan.undo(of: run)
    description.oldestEnd = cause.policy.checkpoint.oldestEnd
    description.settledRuns = findings.settledRuns
    description.setsOthersAside = options.fresh
    try await RunSession.enterStore(Backoff(cause.policy.retry)) { () throws(BatchError) in
      try await lane.begin(
        description,
        keeping: cause.policy.checkpoint.list == .store
          ? (selection.list, try Checkpoint.encode(metadata)) : nil
      )
      entry.isEntered = true
    } then: { () throws(BatchError) in
      _ = try await lane.makeDurable()
    }
  }

  private func makeFile(
    _ list: PackedIdentifiers,
    _ metadata: RunMetadata,
    replacing ledger: (DoneRanges, [FailedIdentifier])?
  ) throws(BatchError) -> Checkpoint {
    // The old run is replaced only when the new one is certain to begin: a refused run changes
    // nothing.
    if let file = findings.replacedFile {
      let replaced = findings.checkpoint
      let approvals = replaced?.approvals(of: cause).map { OperatorAction($0) } ?? []
      let keepsName = replaced?.metadata.increment != nil
      onEvent(.setAside(try Checkpoint.setAside(file, keepingName: keepsName).string))
      // It is set aside, whether that can be written or not.
      if let (done, failed) = ledger { try? replaced?.catchUp(done, failed) }
      try? replaced?.note(approvals + [OperatorAction(.setAside)])
    } else if let finished = findings.checkpoint {
      keep(finished)
    }
    guard cause.keepsRecord else { return Checkpoint(unkept: list, metadata: metadata) }
    ApprovalFiles.remove(of: cause.files)
    return try RunSession.createCheckpoint(
      at: cause.checkpointPath,
      list,
      metadata,
      permissions: cause.files.permissions
    )
  }

  private func failure(
    _ error: BatchError,
    _ metadata: RunMetadata,
    _ total: Int,
    _ lane: WriterLane?
  ) async -> RunSummary {
    var summary = RunSummary(
      metadata,
      RunProgress(),
      total: total,
      path: cause.checkpointPath.string
    )
    // A stop may end the wait for a lock of the database.
    summary.state = error.code == .interrupted ? .stopped : .failed
    if summary.state == .failed { summary.failure = cause.words(of: error) }
    try? await lane?.release()
    await cause.tellRefusal(cause.words(of: error), endingWith: ExitStatus(of: summary), onEvent)
    return summary
  }

  /// Keeps the record of the run that a new one replaces, and removes surplus records.
  private func keep(_ finished: Checkpoint) {
    let history = RunHistory(of: cause.files)
    do throws(BatchError) {
      if cause.policy.history != .runs(0) { try history.keep(finished) }
    } catch {
      onEvent(.message("the record of the previous run is not kept: \(error)"))
    }
    do throws(BatchError) {
      try history.prune(to: cause.policy.history)
    } catch {
      onEvent(.message("records of earlier runs are still there: \(error)"))
    }
  }
}

extension RunDescription {
  init(_ metadata: RunMetadata, total: Int, at path: FilePath) {
    self.init(
      identifier: metadata.run,
      job: metadata.job,
      total: total,
      startedAt: metadata.startedAt,
      checkpoint: FileSystem.absolute(path).string
    )
    runID = metadata.runID
    undone = metadata.undone
  }
}
