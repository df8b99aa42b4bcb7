import BatchEngine
import BatchIdentifiers
import BatchStore
import SystemPackage

extension BatchRun {
  /// How a run ended, with all of it let go of but the checkpoint that is still to be acknowledged.
  struct Ended {
    var summary: RunSummary
    var unacknowledged: Checkpoint?
  }

  /// Does something with the run under its lock, and acknowledges it if it is finished.
  ///
  /// The acknowledgement is the last change of all to any file: a process that is killed before it has its
  /// end told again by the next, and there is nothing after it at which a process could be killed.
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

  /// Runs the program to notify of a run which was refused, failed to begin, or was stopped before it had
  /// begun.
  func tellRefusal(
    _ error: BatchError,
    endingWith status: ExitStatus? = nil,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async {
    let event: Job.Hooks.Event = error.code == .interrupted ? .onStop : .onRefuse
    // What is wrong may be another program, or a parameter.
    let parameters = ParameterValues()
    guard let hooks = try? RunHooks(job, parameters: parameters, for: [event]) else { return }
    let hasFile = job.keepsRecord && job.sharedServer == nil
    let checkpoint = hasFile ? try? Checkpoint(ofJob: job) : nil
    var summary = checkpoint.map { RunSummary($0.metadata, $0.progress, checkpoint: $0) }
    // It is of the run before.
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
        "--join-only is for runs that several processes share, which those on SQLite are not",
        remedy: "leave it out"
      )
    }
    let lock = job.keepsRecord ? try RunLock(of: job.files) : nil
    // Where the store has no ledger, it cannot say who is at work on it.
    let databaseLock =
      job.action.writes && job.keepsRecord && job.checkpoint.ledger == .file
      ? try RunLock(besideStoreOf: job.files) : nil
    ControlFile.remove(of: job.files)
    defer { withExtendedLifetime((lock, databaseLock)) {} }
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

  /// Has what is left of a run done, and what comes after it.
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

  /// Does what comes after the chunks: writes the report, runs the hooks, gives the answer, empties the
  /// log, closes the database.
  ///
  /// All of it may be done again by the next process, if this one is killed on the way.
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
    // The word of the checkpoint counts; the store's is for the case that the checkpoint is lost.
    if isTold, checkpoint.metadata.ledger == .store {
      try? await lane?.acknowledge(summary.run)
    }
    try? await lane?.release()
    _ = try? await lane?.emptyLog()
    await lane?.close()
    return Ended(summary: ended.summary, unacknowledged: isTold ? checkpoint : nil)
  }

  /// Gives the answer.
  func tell(_ summary: RunSummary, _ answer: Answer) -> Ended {
    var summary = summary
    do throws(BatchError) {
      try answer(summary)
    } catch {
      summary.unacknowledged = error
    }
    return Ended(summary: summary)
  }

  /// Does what is left to do after the end of a finished run, and nothing to rows.
  ///
  /// The work is compared with that of the run, but not resolved against the database: the run is over,
  /// and a hook that has run may have changed what there is.
  func conclude(
    _ checkpoint: Checkpoint,
    _ findings: RunDecision.Findings,
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
      onEvent(.message("the output is no longer there, or no longer as it was: \(output)"))
    }
    let summary = RunSummary(checkpoint.metadata, checkpoint.progress, checkpoint: checkpoint)
    return await end(summary, of: checkpoint, lane, hooks, onEvent, answer)
  }

  /// Tells the end of a finished run whose checkpoint is gone.
  func acknowledge(
    _ run: StoredRun,
    _ findings: RunDecision.Findings,
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

extension RunDecision.Findings {
  /// A lane of the store as it is; nil if there is no store that can be written.
  fileprivate func lane() -> WriterLane? {
    var configuration = WriterConfiguration()
    configuration.usesWriteAheadLog = false
    return try? store?.makeWriterLane(configuration)
  }
}

extension BatchRun.Options {
  /// The most bytes of the identifier of work.
  static let runIDLimit = 200

  /// Refuses an identifier of work that cannot be one.
  func check() throws(BatchError) {
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
