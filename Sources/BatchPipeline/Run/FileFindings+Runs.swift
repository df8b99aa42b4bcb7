import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchSQLite
import SystemPackage

extension FileFindings {
  func decide() throws(BatchError) -> RunDecision<FileRun> {
    try RunDecision(runs, request, job: job)
  }

  func wordsOfJoining(_ decision: RunDecision<FileRun>) -> String {
    guard case .join(let run) = decision else { return "resumes the unfinished run" }
    if case .stored = run.record {
      return "restores the lost checkpoint from the database and resumes the run"
    }
    // After a retry in an unfinished run, the rest is still to be done.
    guard run.isRetry, case .checkpoint(let checkpoint) = run.record,
      stored(checkpoint)?.done.count ?? checkpoint.progress.done.count >= checkpoint.total
    else { return "resumes the unfinished run" }
    return "ends the interrupted retry, which batch retry-failed continues"
  }

  /// The runs from which the next step is decided.
  ///
  /// The run of the checkpoint takes precedence. A run that only the store knows counts if the
  /// checkpoint's run is over. Only the results of the other runs are remembered.
  var runs: FoundRuns<FileRun> {
    let past = pastRuns
    var found = FoundRuns(past.map(remembered))
    found.alive = stored?.first { $0.process != nil }?.isAlive
    if let checkpoint {
      let ledger = stored(checkpoint)
      let state = checkpoint.progress.state(
        beside: ledger?.done,
        of: ledger?.total ?? checkpoint.total,
        interruptsRetry: checkpoint.metadata.run == interruptedRetry
      )
      let obstacle = checkpoint.progress.state.isFinished ? obstacle(of: checkpoint) : nil
      let isPast = past.contains { $0.run == checkpoint.metadata.run }
      // Finished work is never done again for its ID, even if its run was reopened since. Work that
      // is to be forgotten is not asked for.
      let counts =
        request.retriesFailures || state == .unfinished && !isPast
        || state == .finished && !(request.fresh && obstacle != nil)
      if counts {
        found.runs.removeAll { $0.record.run == checkpoint.metadata.run }
        found.runs.append(
          FoundRun(
            .checkpoint(checkpoint),
            state,
            runID: checkpoint.metadata.runID,
            isRetry: checkpoint.progress.isRetry == true,
            at: checkpoint.path.string,
            continuedBy: checkpoint.metadata.invocation?.continuation,
            obstacle: obstacle
          )
        )
        if state != .acknowledged { return found }
      }
      found.obstacle = obstacle
      if request.retriesFailures { return found }
    }
    if found.obstacle == nil { addLost(to: &found) }
    return found
  }

  private func remembered(_ past: PastRun) -> FoundRun<FileRun> {
    var obstacle: BatchError?
    do throws(BatchError) { try refuseIfUnknown(past) } catch { obstacle = error }
    return FoundRun(
      .past(past),
      .acknowledged,
      runID: past.id,
      at: checkpoint?.path.string,
      obstacle: obstacle
    )
  }

  private func obstacle(of checkpoint: Checkpoint) -> BatchError? {
    do throws(BatchError) { try refuseIfUnknown(checkpoint) } catch { return error }
    return nil
  }

  /// Adds the run in the store whose checkpoint is lost, or the reason why it is in the way.
  private func addLost(to found: inout FoundRuns<FileRun>) {
    do throws(BatchError) {
      guard let lost = try lost else { return }
      // Other work must be finished first, by a request with its ID.
      let isAskedFor = request.asks(for: lost.runID)
      switch lost.state {
      case .finished where isAskedFor && !request.retriesFailures:
        found.runs.removeAll { $0.record.run == lost.run }
        found.runs.append(
          FoundRun(.stored(lost), .finished, runID: lost.runID, at: lost.checkpoint)
        )
      case .unfinished where isAskedFor && storeHasList && !request.retriesFailures:
        found.runs.append(
          FoundRun(.stored(lost), .unfinished, runID: lost.runID, at: lost.checkpoint)
        )
      case .unfinished: found.obstacle = isInTheWay(lost)
      case .finished where request.retriesFailures: found.obstacle = isInTheWay(lost)
      case .finished, .acknowledged, .setAside: break
      }
    } catch {
      found.obstacle = error
    }
  }
}

extension FileRun {
  fileprivate var run: String {
    switch self {
    case .checkpoint(let checkpoint): checkpoint.metadata.run
    case .stored(let stored): stored.run
    case .past(let past): past.run
    }
  }
}

extension FileFindings {
  /// The unfinished or unacknowledged run in the store without a checkpoint.
  ///
  /// It is nil if none of it is done, since nothing is lost with it then.
  var lost: StoredRun? {
    get throws(BatchError) {
      let candidates = (stored ?? []).filter { run in
        guard run.run != checkpoint?.metadata.run, !setAside.contains(run.run) else { return false }
        switch run.state {
        case .unfinished: return !run.done.rows.isEmpty || run.process != nil
        case .finished: return true
        case .acknowledged, .setAside: return false
        }
      }
      guard let lost = candidates.last else { return nil }
      if lost.process != nil { throw lost.isAlive }
      return lost
    }
  }

  func isInTheWay(_ lost: StoredRun) -> BatchError {
    guard let checkpointPath, case let path = FilePath(lost.checkpoint),
      let checkpoint = try? Checkpoint(reading: path), checkpoint.metadata.run == lost.run
    else { return lost.isInTheWay }
    let own = FileSystem.absolute(checkpointPath)
    let isNeighbour = own.removingLastComponent() == path.removingLastComponent()
    let (then, now) =
      isNeighbour
      ? (path.lastComponent?.string ?? path.string, own.lastComponent?.string ?? own.string)
      : (path.string, own.string)
    return BatchError(
      .unfinishedRun,
      "the database has the unfinished run \(lost.run) of a job with this name, whose checkpoint is"
        + " \(then); the checkpoint of this job file is \(now)",
      at: path.string,
      remedy:
        "if it is the same job, rename the checkpoint \(then) to \(now); if it is another one,"
        + " change \"name\" in this job file"
    )
  }

  func isFinished(_ checkpoint: Checkpoint) -> Bool {
    let ledger = stored(checkpoint)
    return checkpoint.progress.isFinished(
      beside: ledger?.done,
      of: ledger?.total ?? checkpoint.total
    )
  }

  /// What the store has of a run that is replaced when nothing of it is left to do, so that its
  /// ledger goes.
  func ledgerOfReplaced() async throws(BatchError) -> (DoneRanges, [FailedIdentifier])? {
    guard replacedFile != nil, let checkpoint, let done = stored(checkpoint)?.done, let store,
      done.count == checkpoint.total
    else { return nil }
    return (done, try await store.failedIdentifiers(ofRun: checkpoint.metadata.run))
  }

  private func stored(_ checkpoint: Checkpoint) -> StoredRun? {
    guard checkpoint.metadata.ledger == .store else { return nil }
    return stored?.first { $0.run == checkpoint.metadata.run }
  }

  /// Refuses a checkpoint of the job whose run the store should know but does not.
  ///
  /// For a run to resume, the job is compared with the store first, since that error says more.
  func refuseIfUnknown(_ checkpoint: Checkpoint) throws(BatchError) {
    guard stored != nil, checkpoint.metadata.ledger == .store, checkpoint.metadata.job == job else {
      return
    }
    if let own = self.stored(checkpoint) { return try own.refuseIfIncomplete() }
    let progress = checkpoint.progress
    if progress.state.isFinished {
      // The store may have forgotten an acknowledged run.
      if progress.awaitsAcknowledgement { throw checkpoint.isUnknown }
    } else {
      throw checkpoint.missingLedger()
    }
  }

  /// Refuses work that is done according to a checkpoint, but that the store should know and does
  /// not.
  private func refuseIfUnknown(_ done: PastRun) throws(BatchError) {
    guard !isKnown(done) else { return }
    if let stored = stored?.first(where: { $0.run == done.run }) { throw stored.isInTheWay }
    if let checkpoint, checkpoint.metadata.job != job {
      throw checkpoint.refusal("this is the checkpoint of job \"\(checkpoint.metadata.job)\"")
    }
    throw BatchError(
      .otherRun,
      "the checkpoint says that run \(done.id.quotedForMessage) is done, but the database does not know"
        + " it: another file has its name, or a backup was restored",
      at: checkpoint?.path.string,
      remedy: "restore the right database; --fresh repeats the work"
    )
  }
}

extension Checkpoint {
  fileprivate var isUnknown: BatchError {
    BatchError(
      .otherRun,
      "run \(metadata.runID?.quotedForMessage ?? metadata.run) is finished according to the checkpoint,"
        + " but the database does not know it: another file has its name, or a backup was restored",
      at: path.string,
      remedy: "restore the right database; --fresh starts a new run"
    )
  }
}
