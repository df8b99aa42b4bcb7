import BatchEngine
import BatchIdentifiers
import BatchStore
import SystemPackage

extension BatchRun {
  /// How a run ended, with everything released except the checkpoint that needs acknowledging.
  struct Ended {
    var summary: RunSummary
    var unacknowledged: Checkpoint?
  }

  /// Calls a closure for the run under its lock, and acknowledges a finished run.
  ///
  /// The acknowledgement is the very last change of any file: if the process is killed before it,
  /// the next one reports the end again; after it there is nothing left to interrupt.
  func acknowledging(
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ body: (RunLock?) async throws(BatchError) -> Ended
  ) async throws(BatchError) -> RunSummary {
    defer {
      forgetStop()
      endEvents()
    }
    do throws(BatchError) {
      // Before the lock beside it is.
      if job.sharedServer == nil { try job.refuseMissingFolderOfCheckpoint() }
      return try await acknowledged(body)
    } catch {
      await tellRefusal(error, onEvent)
      throw error
    }
  }

  /// Runs the program to notify of a run that was refused, failed to begin, or was stopped before
  /// it began.
  func tellRefusal(
    _ error: BatchError,
    endingWith status: ExitStatus? = nil,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async {
    let event: Job.Hooks.Event = error.code == .interrupted ? .onStop : .onRefuse
    // The problem may concern another program, or a parameter.
    let parameters = ParameterValues()
    guard let hooks = try? RunHooks(job, parameters: parameters, for: [event]) else { return }
    let hasFile = job.keepsRecord && job.sharedServer == nil
    let checkpoint = hasFile ? try? Checkpoint(ofJob: job) : nil
    var summary = checkpoint.map { RunSummary($0.metadata, $0.progress, checkpoint: $0) }
    // It belongs to the previous run.
    if event == .onRefuse { summary?.stopReason = nil }
    await hooks.run(
      event,
      summary
        ?? RunSummary(
          notBegun: job.name,
          path: job.sharedServer == nil ? job.checkpointPath.string : ""
        ),
      telling: [
        "BATCH_STATE": event == .onStop ? RunState.stopped.rawValue : "refused",
        "BATCH_EXIT_STATUS": String((status ?? ExitStatus(of: error)).rawValue),
        "BATCH_ERROR": error.inWordsOfJobs.description.replacing("\0", with: " "),
      ]
    )
    for message in hooks.takeMessages() { onEvent(.message(message)) }
  }

  private func acknowledged(
    _ body: (RunLock?) async throws(BatchError) -> Ended
  ) async throws(BatchError) -> RunSummary {
    try job.validate()
    try job.requireSupport()
    try options.check()
    if options.joinOnly {
      throw BatchError(
        .invalidJob,
        "--join-only is for runs that processes share; this one is recorded in a file of one process",
        remedy: "leave it out"
      )
    }
    let lock = job.keepsRecord ? try RunLock(of: job.files) : nil
    // A store without a ledger cannot tell who is working on it.
    let databaseLock =
      job.action.writes && job.keepsRecord && job.checkpoint.ledger == .file
      ? try RunLock(besideStoreOf: job.files) : nil
    ControlFile.remove(of: job.files)
    defer { withExtendedLifetime((lock, databaseLock)) {} }
    let obeying = obeyCancellation()
    defer { obeying.cancel() }
    let ended: Ended
    do {
      ended = try await body(lock)
    } catch {
      ControlFile.remove(of: job.files)
      throw job.words(of: error)
    }
    ControlFile.remove(of: job.files)
    lock?.removeFile()
    databaseLock?.removeFile()
    var summary = ended.summary
    guard summary.unacknowledged == nil else { return summary }
    do throws(BatchError) {
      try ended.unacknowledged?.acknowledge()
    } catch {
      summary.unacknowledged = error
    }
    return summary
  }

  /// Completes what is left of a run, and its end.
  func end(_ execution: RunExecution, _ answer: Answer) async -> Ended {
    let summary = await execution.perform()
    return await end(
      summary,
      of: execution.session.checkpoint,
      execution.lane,
      execution.plan.hooks,
      execution.onEvent,
      answer
    )
  }

  /// Does the steps after the chunks: writes the report, runs the hooks, calls `answer`, empties
  /// the log, closes the database.
  ///
  /// The next process may repeat all of it, if this one is killed meanwhile.
  func end(
    _ summary: RunSummary,
    of checkpoint: Checkpoint,
    _ lane: WriterLane?,
    _ hooks: RunHooks,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async -> Ended {
    if let report = job.report {
      do throws(BatchError) {
        try RunReport(summary, of: job, checkpoint).write(
          to: report,
          permissions: job.files.permissions
        )
      } catch {
        onEvent(.message("\(error)"))
      }
    }
    await hooks.runAtEnd(of: summary)
    await hooks.settle()
    for message in hooks.takeMessages() { onEvent(.message(message)) }

    var summary = summary
    if summary.state.isFinished {
      do throws(BatchError) {
        try await lane?.verifyStore()
      } catch {
        summary.state = .failed
        summary.failure = job.words(of: error)
      }
    }
    let ended = tell(summary, answer)
    let isTold = ended.summary.state.isFinished && ended.summary.unacknowledged == nil
    // The checkpoint's acknowledgement counts; the store's serves if the checkpoint is lost.
    if isTold, checkpoint.metadata.ledger == .store {
      try? await lane?.acknowledge(summary.run)
    }
    try? await lane?.release()
    _ = try? await lane?.emptyLog()
    await lane?.close()
    return Ended(summary: ended.summary, unacknowledged: isTold ? checkpoint : nil)
  }

  /// Calls `answer`.
  func tell(_ summary: RunSummary, _ answer: Answer) -> Ended {
    var summary = summary
    do throws(BatchError) {
      try answer(summary)
    } catch {
      summary.unacknowledged = error
    }
    return Ended(summary: summary)
  }

  /// Does the remaining steps after the end of a run, or repeats its result.
  func conclude(
    _ run: FileRun,
    _ findings: FileFindings,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> Ended {
    switch run {
    case .checkpoint(let checkpoint):
      try await conclude(checkpoint, findings, onEvent, answer)
    case .stored(let stored): try await acknowledge(stored, findings, answer)
    case .past(let past): tell(RunSummary(past, of: job.files), answer)
    }
  }

  /// Does the remaining steps after the end of a finished run, without touching rows.
  ///
  /// The work is compared with the run's, but not resolved against the database: the run is over,
  /// and a hook may have changed the database.
  func conclude(
    _ checkpoint: Checkpoint,
    _ findings: FileFindings,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> Ended {
    let hooks = try work.hooks(after: checkpoint)
    try checkpoint.takeUp()
    let lane = findings.lane()
    await findings.store?.close()
    onEvent(.message("the run was finished before; this concludes it"))
    if let output = checkpoint.metadata.output.map({ FilePath($0) }),
      FileSystem.status(of: output)?.identity != checkpoint.progress.outputIdentity
    {
      onEvent(.message("the output is missing or has changed: \(output)"))
    }
    let summary = RunSummary(checkpoint.metadata, checkpoint.progress, checkpoint: checkpoint)
    return await end(summary, of: checkpoint, lane, hooks, onEvent, answer)
  }

  /// Reports the end of a finished run whose checkpoint is gone.
  func acknowledge(
    _ run: StoredRun,
    _ findings: FileFindings,
    _ answer: Answer
  ) async throws(BatchError) -> Ended {
    let ended = tell(RunSummary(PastRun(finished: run), of: job.files), answer)
    if ended.summary.unacknowledged == nil, let lane = findings.lane() {
      await findings.store?.close()
      try await lane.acknowledge(run.run)
      await lane.close()
    }
    return ended
  }
}

extension FileFindings {
  /// A lane of the store as it is; nil if there is no writable store.
  fileprivate func lane() -> WriterLane? {
    var configuration = WriterConfiguration()
    configuration.usesWriteAheadLog = false
    return try? store?.makeWriterLane(configuration)
  }
}

extension BatchRun.Options {
  /// What is asked for.
  var request: RunRequest { RunRequest(runID: runID, fresh: fresh, joinOnly: joinOnly) }

  /// The maximum bytes of an ID of work.
  static let runIDLimit = 200

  /// Refuses values that no run can have.
  func check() throws(BatchError) {
    var policy = RunPolicy()
    policy.workers = workers
    if let chunkSize { policy.chunk = .init(size: chunkSize) }
    try policy.validate()
    guard let runID else { return }
    guard !runID.isEmpty, runID.utf8.count <= Self.runIDLimit,
      runID.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7f })
    else {
      throw BatchError(
        .invalidJob,
        "the run ID is empty, too long or holds control characters",
        remedy: "choose 1 to \(Self.runIDLimit) bytes of text"
      )
    }
  }
}
