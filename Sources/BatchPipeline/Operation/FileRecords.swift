import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchPlatform
import BatchSQLite
import SystemPackage

/// The records of a job's runs in files and, if they write, in the ledger of their store.
struct FileRecords: RunRecords {
  let cause: any RunCause
  /// Makes the work of the next run; nil if only its program can.
  ///
  /// Of an undo, it is whatever `batch undo` would undo next.
  private let work: @Sendable (BatchRun.Options, [String: TransformHandler]) -> (any RunWork)?

  init(of job: Job) {
    cause = job
    work = { JobWork(job: job, options: $0, handlers: $1) }
  }

  init(of program: ProgramWork) {
    cause = program
    work = { _, _ in program.kind == .undo ? UndoWork(after: program) : nil }
  }

  func status(
    _ options: BatchRun.Options,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> RunStatus {
    let path = cause.checkpointPath
    let process = RunLock.holder(ofCheckpoint: path)
    let next = await nextStep(options, handlers)
    guard FileSystem.status(of: path) != nil else {
      if let process { return beginning(by: process, next) }
      throw .noCheckpoint(
        of: cause,
        remedy: next.name == "begin" ? "run it first" : "batch run \(next.words)"
      )
    }
    let checkpoint = try Checkpoint(of: cause)
    if let id = options.runID, checkpoint.metadata.runID?.hasSameBytes(as: id) != true {
      throw .unknownRunID(id, at: path.string)
    }
    if let process, options.runID == nil, checkpoint.progress.isAcknowledged == true {
      return beginning(by: process, next)
    }
    var summary = RunSummary(checkpoint.metadata, checkpoint.progress, checkpoint: checkpoint)
    let done = try await checkpoint.doneRanges(of: cause)
    summary.outcomes = done.outcomes
    summary.chunks = done.chunks
    if process != nil, !summary.state.isGoingOn, !summary.state.isFinished {
      // The run is in progress, but has not recorded this yet.
      summary.state = .running
      summary.endedAt = nil
      summary.stopReason = nil
      summary.throttle = nil
      summary.waiting = nil
      summary.error = nil
    } else if process == nil, summary.state.isGoingOn {
      // The process was killed before it could record an end.
      summary.state = .stopped
      summary.wasKilled = true
      summary.throttle = nil
      summary.waiting = nil
      let elapsed = try await checkpoint.elapsedSeconds(of: cause)
      summary.processSeconds? += elapsed - summary.elapsedSeconds
      summary.elapsedSeconds = elapsed
    } else if summary.state.isGoingOn,
      let recorded = checkpoint.progress.recordedAt ?? checkpoint.metadata.startSeconds
    {
      // Nothing is written during a hold or in the first moments of a run, but its times continue.
      let since = max(0, Date.now.timeIntervalSince1970 - recorded)
      summary.elapsedSeconds += since
      summary.processSeconds? += since
      if summary.throttle != nil { summary.throttledSeconds += since }
    }
    if process != nil, summary.state.isFinished {
      summary.waiting = "the last steps of its end: verification, report, or hooks"
    }
    // The first record of a speed comes after some seconds; a hold would be part of the average.
    let seconds = summary.elapsedSeconds - checkpoint.progress.selectionSeconds
    let isKnown = seconds > 0 && summary.done > 0 && summary.throttledSeconds == 0
    let average = isKnown ? Double(summary.done) / seconds : nil
    summary.setSpeed(
      checkpoint.progress.identifiersPerSecond ?? average,
      remaining: checkpoint.progress.remaining,
      isLive: process != nil
    )
    var status = RunStatus(summary, in: process, next: next)
    status.undo =
      checkpoint.metadata.undone == nil
      ? CompletedUndo(of: checkpoint.metadata.run, ofWork: cause) : nil
    status.actions = checkpoint.actions(of: cause, status.undo)
    status.requests = process == nil ? nil : RunControl(of: cause.files)
    // The run records them after its current chunk.
    status.actions.note(status.requests?.actions ?? [])
    status.warnings = summary.state.isFinished ? [] : cause.risks
    return status
  }

  /// The state of a run that has no record yet.
  private func beginning(by process: Int32, _ next: NextStep) -> RunStatus {
    var summary = RunSummary(notBegun: cause.name, path: cause.checkpointPath.string)
    let isRetry = RunLock.interruptedRetry(ofCheckpoint: cause.checkpointPath) != nil
    let step = isRetry ? "the retry of its failed identifiers" : "the selection of its identifiers"
    summary.waiting = "the database, or \(step)"
    return RunStatus(summary, in: process, next: next)
  }

  func history() async throws(BatchError) -> JobHistory {
    let history = RunHistory(of: cause.files)
    let entries = history.entries
    var runs: [RecordedRun] = []
    for checkpoint in try Checkpoint.recorded(of: cause, entries) {
      runs.append(try await RecordedRun(checkpoint, of: cause))
    }
    return JobHistory(
      folder: history.folder.string,
      bytes: entries.reduce(0) { $0 + $1.byteCount },
      runs: runs.sorted { $1.place < $0.place }
    )
  }

  func run(named name: String) async throws(BatchError) -> RecordedRun {
    try await RecordedRun(Checkpoint.ofRun(name, of: cause), of: cause)
  }

  func report(ofRun name: String?) async throws(BatchError) -> RunReport {
    let checkpoint = try Checkpoint.ofRun(name, of: cause)
    return try await RunReport(
      RecordedRun(checkpoint, of: cause),
      in: checkpoint.metadata.database,
      checkpoint.reportedFailures(),
      checkpoint.pace()
    )
  }

  func identifiers(
    _ outcome: IdentifierSelection.Outcome,
    _ part: IdentifierSelection.Part,
    ofRun name: String?
  ) async throws(BatchError) -> IdentifierSelection {
    let checkpoint = try Checkpoint.ofRun(name, of: cause)
    var list = checkpoint.list
    if checkpoint.metadata.isOpenEnded == true {
      let reached = try await checkpoint.doneRanges(of: cause).rows.last?.next ?? 0
      list = try list.slice([0..<reached]).packed
    }
    return try IdentifierSelection(
      list,
      outcome,
      outcome == .all ? nil : await checkpoint.rowOutcomes(of: cause),
      part,
      canary: checkpoint.metadata.canaryPositions(of: checkpoint.list.count),
      permissions: cause.files.permissions
    )
  }

  func request(
    _ change: @escaping @Sendable (inout RunControl) -> Void
  ) async throws(BatchError) -> RunControl {
    do throws(BatchError) {
      return try RunControl.change(of: cause.files, cause.policy, change)
    } catch {
      throw cause.words(of: error)
    }
  }

  func approve(_ name: String) async throws(BatchError) -> (PlannedRun, [PlanApproval]) {
    let checkpoint = try Checkpoint(of: cause)
    guard let planned = checkpoint.unapprovedPlan(of: cause), !checkpoint.progress.state.isFinished
    else { throw .noApprovalAwaited(ofJob: cause.name, at: checkpoint.path.string) }
    try planned.requireName(name, at: checkpoint.path.string)
    // Whoever approves may look at the file that they name.
    if let job = cause as? Job { try checkpoint.refuse(unless: job, nil) }
    guard checkpoint.owner != geteuid() else { throw .ownApproval(at: checkpoint.path.string) }
    try ApprovalFiles.approve(planned, in: cause.files)
    return (planned, checkpoint.approvals(of: cause))
  }

  func isBeginning() async -> Bool { RunLock.holder(ofCheckpoint: cause.checkpointPath) != nil }
}

// MARK: The next step

extension FileRecords {
  func nextStep(
    _ options: BatchRun.Options,
    _ handlers: [String: TransformHandler]
  ) async -> NextStep {
    if let process = RunLock.holder(ofCheckpoint: cause.checkpointPath) {
      return NextStep(refusing: "another run of this job is alive (process \(process))")
    }
    do throws(BatchError) {
      try options.check()
      let findings = try await FileFindings(
        of: cause,
        options.request,
        interruptedRetry: RunLock.interruptedRetry(ofCheckpoint: cause.checkpointPath)
      )
      if let alive = findings.stored?.first(where: { $0.process != nil }) { throw alive.isAlive }
      let decision = try findings.decide()
      var options = options
      var parameters: [ParameterArgument] = []
      if options.hasNoParameters, let checkpoint = decision.continued {
        parameters = checkpoint.metadata.parametersToGive(to: cause)
        let texts = parameters.compactMap(\.argument)
        // The value of a secret is unknown, so parameters are not compared in that case.
        if texts.count == parameters.count { options.parameterTexts = texts }
      }
      // What an unfinished undo is limited to is unknown here.
      let isKnown = cause is Job || decision.name == "begin"
      let work = isKnown ? work(options, handlers) : nil
      try await decision.refuse(unless: work, options, after: findings.checkpoint)
      switch decision {
      case .begin: try await findings.refuseDuringUndo(fresh: options.fresh)
      case .join:
        try await findings.refuseDuringUndo(fresh: options.fresh)
        if let checkpoint = decision.continued {
          try findings.refuseIfUnknown(checkpoint)
          if let planned = checkpoint.unapprovedPlan(of: cause) {
            return NextStep(
              awaiting: planned,
              checkpoint.approvals(of: cause).count,
              cause.commandWord
            )
          }
          if let canary = checkpoint.progress.canary, !canary.isOver {
            try CanaryTrial(
              of: checkpoint.metadata,
              options.policy(of: cause),
              total: checkpoint.list.count
            )?.refuse(failures: await checkpoint.doneRanges(of: cause).outcomes.failed)
          }
        }
      default: break
      }
      let given = parameters.map { " --param \($0.shown)" }.joined()
      return NextStep(
        decision.name,
        decision.words(joining: findings.wordsOfJoining(decision))
          + (given.isEmpty ? "" : ", with\(given)")
      )
    } catch {
      return NextStep(refusing: "\(cause.words(of: error))")
    }
  }
}

extension BatchRun.Options {
  fileprivate var hasNoParameters: Bool { parameterTexts == nil && parameters.isEmpty }
}

extension FileFindings {
  fileprivate func refuseDuringUndo(fresh: Bool) async throws(BatchError) {
    try await store?.refuseDuringUndo(ofJob: job, fresh: fresh)
  }
}

extension RunDecision<FileRun> {
  /// The run to resume or conclude; nil if there is none.
  fileprivate var continued: Checkpoint? {
    switch self {
    case .join(let run), .conclude(let run):
      if case .checkpoint(let checkpoint) = run.record { checkpoint } else { nil }
    case .begin, .concludeFirst, .nothing: nil
    }
  }

  /// Refuses work that a run would refuse, as far as this is known without missing arguments.
  ///
  /// Such work differs from that of the run to resume, or does not fit the database.
  fileprivate func refuse(
    unless work: (any RunWork)?,
    _ options: BatchRun.Options,
    after previous: Checkpoint?
  ) async throws(BatchError) {
    guard let work else { return }
    switch (self, continued) {
    case (.begin, _):
      let identity = RunIdentity(
        after: LastIncrement(previous, startingOver: options.fresh)
      )
      guard let plan = try await work.foreseeablePlan(of: identity) else { return }
      var metadata = RunMetadata(
        run: identity.run,
        job: work.cause.name,
        startedAt: identity.startedAt,
        fingerprint: "",
        schema: [],
        ledger: plan.ledger
      )
      try plan.describeOutput(in: &metadata, after: previous)
    case (.join, let checkpoint?):
      try work.refuse(unlessFor: checkpoint)
      let identity = RunIdentity(checkpoint.metadata)
      guard let plan = try await work.foreseeablePlan(of: identity) else { return }
      try await plan.refuse(unlessFor: checkpoint)
      try checkpoint.metadata.refuse(
        unlessPlanned: work.cause,
        options,
        options.policy(of: work.cause),
        plan.statements,
        at: checkpoint.path.string
      )
    case (.conclude, let checkpoint?): try work.refuse(unlessFor: checkpoint)
    case (.concludeFirst, _):
      if let previous { try work.refuse(unlessFor: previous) }
    case (.join, nil), (.conclude, nil), (.nothing, _): break
    }
  }
}

// MARK: Cleanup

extension FileRecords {
  func cleanUp(removingHistory removesHistory: Bool) async throws(BatchError) -> JobCleanup {
    var cleanup = JobCleanup()
    let path = cause.checkpointPath
    let lock = try RunLock(of: cause.files)
    defer { withExtendedLifetime(lock) {} }
    var setAside: [Checkpoint] = []
    for file in Checkpoint.filesSetAside(of: path) {
      // Any other file has such a name by accident, and the file of another user could claim any
      // file as its output.
      guard let checkpoint = try? Checkpoint(reading: file), checkpoint.metadata.job == cause.name,
        cause.files.trusts(owner: checkpoint.owner)
      else { continue }
      setAside.append(checkpoint)
    }
    if cause.writes, !cause.database.readOnly {
      let current = try FileSystem.status(of: path).map { _ throws(BatchError) in
        try Checkpoint(of: cause)
      }
      (cleanup.runCount, cleanup.undoable) = try await removeLedgers(
        setAside.map(\.metadata.run),
        but: current
      )
    }
    for checkpoint in setAside {
      if let partial = checkpoint.metadata.partialOutput.map({ FilePath($0) }),
        FileSystem.status(of: partial) != nil
      {
        try FileSystem.remove(partial)
        cleanup.files.append(partial.string)
      }
      if checkpoint.progress.parts != nil, let output = checkpoint.metadata.output {
        let folder = ExportFolder(path: FilePath(output), permissions: [])
        cleanup.files += folder.removeParts(ofRun: checkpoint.metadata.run, but: []).map(\.string)
      }
      try FileSystem.remove(checkpoint.path)
      cleanup.files.append(checkpoint.path.string)
    }
    let history = RunHistory(of: cause.files)
    let before = history.entries
    try history.prune(to: removesHistory ? .runs(0) : cause.policy.history)
    let left = history.entries
    cleanup.files += before.filter { !left.contains($0) }.map(\.path.string)
    cleanup.historyBytes = left.reduce(0) { $0 + $1.byteCount }
    return cleanup
  }

  private func removeLedgers(
    _ runs: [String],
    but current: Checkpoint?
  ) async throws(BatchError) -> (Int, [UndoableRun]) {
    let store = try await cause.openStore()
    // A Core Data store that must not be written has no ledger.
    if store.coreData != nil, store.isReadOnly { return (0, []) }
    var configuration = WriterConfiguration()
    configuration.usesWriteAheadLog = false
    let lane = try store.makeWriterLane(configuration)
    let isNeeded = current.map { $0.progress.state != .completed } ?? false
    let count = try await lane.removeRuns(
      ofJob: cause.name,
      and: runs,
      but: isNeeded ? current?.metadata.run : nil,
      before: cause.policy.checkpoint.oldestEnd
    )
    return (
      count, try await store.undoableRuns(ofJob: cause.name).map { UndoableRun($0, of: cause) }
    )
  }
}

extension RunMetadata {
  /// In seconds since 1970.
  fileprivate var startSeconds: Double? {
    guard let start = try? Date(startedAt, strategy: .iso8601) else { return nil }
    return start.timeIntervalSince1970 + Double(startedMicroseconds) / 1_000_000
  }
}
