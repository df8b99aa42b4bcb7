import BatchIdentifiers
import BatchStore
import SystemPackage

extension BatchRun {
  /// Does what comes after the chunks: writes the report, runs the hooks, gives the answer, empties the
  /// log; then, as the last write of all, records that a finished run is acknowledged.
  ///
  /// All of it may be done again by the next process, if this one is killed on the way.
  func end(
    _ summary: RunSummary,
    of checkpoint: Checkpoint,
    _ lane: WriterLane?,
    _ hooks: RunHooks,
    _ onEvent: @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async -> RunSummary {
    if let report = job.report {
      do throws(BatchError) {
        try RunReport(summary, of: job, checkpoint).write(
          to: report,
          permissions: job.filePermissions
        )
      } catch {
        onEvent(.message("\(error)"))
      }
    }
    if summary.state.isFinished { await hooks.run(.onFinish, summary) }
    if summary.state == .failed { await hooks.run(.onFailure, summary) }
    await hooks.settle()
    for message in hooks.takeMessages() { onEvent(.message(message)) }

    var summary = tell(summary, answer)
    let isAcknowledged = summary.state.isFinished && summary.unacknowledged == nil
    // The word of the checkpoint counts; the store's is for the case that the checkpoint is lost.
    if isAcknowledged { try? await lane?.acknowledge(summary.run) }
    // On the lane's thread: the last connection to be closed would do it on that of whoever lets go, and
    // after the acknowledgement.
    _ = try? await lane?.emptyLog()
    guard isAcknowledged else { return summary }
    do throws(BatchError) {
      try checkpoint.acknowledge()
    } catch {
      summary.unacknowledged = error
    }
    return summary
  }

  /// Gives the answer.
  func tell(_ summary: RunSummary, _ answer: Answer) -> RunSummary {
    var summary = summary
    do throws(BatchError) {
      try answer(summary)
    } catch {
      summary.unacknowledged = error
    }
    return summary
  }

  /// Does what is left to do after the end of a finished run, and nothing to rows.
  ///
  /// The job is compared with that of the run, but not resolved against the database: the run is over,
  /// and a hook that has run may have changed what there is.
  func conclude(
    _ checkpoint: Checkpoint,
    _ onEvent: @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    let parameters = try parameters(of: checkpoint)
    let identifiers = job.source.identifiers.flatMap { try? IdentifierFile(opening: $0) }
    let isUnknown = job.source.identifiers != nil && identifiers == nil
    if !isUnknown {
      try checkpoint.refuse(
        unless: job,
        parameters,
        identifiersHash: identifiers?.contentHash
      )
    }
    let hooks = try RunHooks(job, parameters: parameters)
    let lane = checkpoint.metadata.ledger == .store ? await existingLane() : nil
    onEvent(.message("the run was finished before; only its end is told once more"))
    let summary = RunSummary(checkpoint.metadata, checkpoint.progress, checkpoint: checkpoint)
    return await end(summary, of: checkpoint, lane, hooks, onEvent, answer)
  }

  /// Tells the end of a finished run whose checkpoint is gone.
  func acknowledge(
    _ run: StoredRun,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    let summary = tell(RunSummary(PastRun(finished: run), of: job), answer)
    if summary.unacknowledged == nil { try await existingLane()?.acknowledge(run.run) }
    return summary
  }

  /// The lane of the job's database as it is; nil if it cannot be opened.
  private func existingLane() async -> WriterLane? {
    let store = try? await Store(
      path: job.database.path.string,
      busyTimeout: job.database.busyTimeout
    )
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
