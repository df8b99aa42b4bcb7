import BatchEngine
import BatchIdentifiers
import BatchStore
import SystemPackage

/// What `batch run` does, given what it finds on disk.
///
/// A value that performs nothing: `status` and `plan` report it, `run` executes it. The page
/// `Documentation/CommandLine.md` has the same as a table.
enum RunDecision {
  /// Selects again; the job's last run, if there is a checkpoint of it, is over.
  case begin(after: Checkpoint?)
  /// Resumes the run of the checkpoint.
  case resume(Checkpoint)
  /// Does the remaining steps after the end of the checkpoint's run, without touching rows.
  case conclude(Checkpoint)
  /// The same, and then selects again: the requested work differs from the checkpoint's.
  case concludeAndBegin(Checkpoint)
  /// Restores the checkpoint from the list in the store, and decides again.
  case restore(StoredRun)
  /// Reports a complete run that only the store knows to be unacknowledged.
  case acknowledge(StoredRun)
  /// Reports the result of the requested work, which was done before.
  case repeatSummary(PastRun)

  /// The basis of the decision.
  struct Findings {
    /// The job's name.
    let job: String
    /// The path of the job's checkpoint, whether it exists or not.
    var checkpointPath: FilePath?
    /// The checkpoint, if it exists and can be read.
    var checkpoint: Checkpoint?
    /// The store, open; nil if it was not consulted, or cannot be.
    var store: Store?
    /// The job's runs in the store; nil if it was not consulted, or cannot be.
    var stored: [StoredRun]?
    /// The ID of the requested work.
    var runID: String?
    /// The run whose failed identifiers a process was about to retry when it was killed.
    var interruptedRetry: String?
    /// Since when finished work is remembered; nil for forever.
    var oldestEnd: String?
    /// Whether to set unfinished runs aside for a new one.
    var isFresh = false
    /// The file to set aside for the new checkpoint: of a run that is not over, or damaged.
    var replacedFile: FilePath?
    /// The runs whose checkpoints were set aside by an earlier version.
    var setAside: Set<String> = []
    /// Whether the store keeps the list of a run.
    var storeHasList = false
  }

  /// Decides.
  ///
  /// - Throws: `BatchError` of code `unfinishedRun` if another run, or one whose checkpoint is
  ///   gone, is in the way; `alreadyRunning` if that is alive; `otherRun` if the store does not
  ///   know what the checkpoint records as done.
  init(_ findings: Findings) throws(BatchError) {
    let checkpoint = findings.checkpoint
    if let done = findings.requestedPastRun {
      try findings.refuseIfUnknown(done)
      if let checkpoint, checkpoint.metadata.run == done.run,
        checkpoint.progress.awaitsAcknowledgement
      {
        self = .conclude(checkpoint)
      } else {
        self = .repeatSummary(done)
      }
      return
    }
    if findings.isFresh {
      if let alive = findings.stored?.first(where: { $0.process != nil }) { throw alive.isAlive }
      self = .begin(after: findings.replacedFile == nil ? checkpoint : nil)
      return
    }
    if let checkpoint {
      if checkpoint.progress.state.isFinished { try findings.refuseIfUnknown(checkpoint) }
      let isAskedFor = findings.asksFor(checkpoint.metadata.runID)
      guard findings.isFinished(checkpoint) else {
        guard isAskedFor else { throw checkpoint.isUnfinished }
        self = .resume(checkpoint)
        return
      }
      let isRetried = checkpoint.metadata.run == findings.interruptedRetry
      if checkpoint.progress.awaitsAcknowledgement || isRetried {
        self = isAskedFor ? .conclude(checkpoint) : .concludeAndBegin(checkpoint)
        return
      }
    }
    if let lost = try findings.lost {
      // Whoever has the ID of the other work finishes it first.
      let isAskedFor = findings.asksFor(lost.runID)
      if isAskedFor, lost.standing == .finished {
        self = .acknowledge(lost)
        return
      }
      if isAskedFor, findings.storeHasList {
        self = .restore(lost)
        return
      }
      if lost.standing == .unfinished { throw findings.isInTheWay(lost) }
    }
    self = .begin(after: checkpoint)
  }
}

extension RunDecision.Findings {
  /// The unfinished or unacknowledged run in the store without a checkpoint; nil if nothing of it
  /// is done, so that nothing is lost with it.
  var lost: StoredRun? {
    get throws(BatchError) {
      let candidates = (stored ?? []).filter { run in
        guard run.run != checkpoint?.metadata.run, !setAside.contains(run.run) else { return false }
        // Whether an earlier version's checkpoint was set aside is unknown.
        if run.checkpoint == nil, checkpoint != nil { return false }
        switch run.standing {
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

  /// The error for an unfinished run without a checkpoint at the job's path.
  func isInTheWay(_ lost: StoredRun) -> BatchError {
    guard let checkpointPath, let path = lost.checkpoint.map({ FilePath($0) }),
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

  /// Whether all of the checkpoint's run is done: the file says so, and the store does not
  /// contradict it.
  ///
  /// It does if an earlier backup was restored.
  func isFinished(_ checkpoint: Checkpoint) -> Bool {
    guard checkpoint.progress.state.isFinished, let stored = stored(checkpoint) else {
      return checkpoint.progress.state.isFinished
    }
    // Nobody was notified of a retry, and a backup from before it has the failures that it fixed.
    let isUndone = stored.done.outcomes.failed != checkpoint.progress.done.outcomes.failed
    if isUndone, checkpoint.progress.awaitsAcknowledgement { return false }
    return stored.done.count >= stored.total
  }

  /// Whether work with an ID, or without one, is the requested work.
  fileprivate func asksFor(_ id: String?) -> Bool {
    guard let runID else { return true }
    return id?.hasSameBytes(as: runID) == true
  }

  /// The store's record of the checkpoint's run.
  private func stored(_ checkpoint: Checkpoint) -> StoredRun? {
    guard checkpoint.metadata.ledger == .store else { return nil }
    return stored?.first { $0.run == checkpoint.metadata.run }
  }

  /// Refuses a job's checkpoint with a run that the store must know and does not.
  ///
  /// For a run to be resumed, the comparison of job and store comes first, since it can say more.
  func refuseIfUnknown(_ checkpoint: Checkpoint) throws(BatchError) {
    guard let stored, checkpoint.metadata.ledger == .store, checkpoint.metadata.job == job else {
      return
    }
    if let own = self.stored(checkpoint) { return try own.refuseIfIncomplete() }
    let progress = checkpoint.progress
    if progress.state.isFinished {
      // The store may have forgotten an acknowledged run.
      if progress.awaitsAcknowledgement { throw checkpoint.isUnknown }
    } else if checkpoint.wasEntered
      || stored.contains(where: { $0.startedAt > checkpoint.metadata.startedAt })
    {
      throw checkpoint.missingLedger()
    }
  }

  /// Refuses work that is done according to a checkpoint, if the store must know it and does not.
  fileprivate func refuseIfUnknown(_ done: PastRun) throws(BatchError) {
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
  /// Whether the store knew the run before this file existed, and so still must.
  var wasEntered: Bool { metadata.isEntered == true || !progress.done.rows.isEmpty }

  /// The error for other work that cannot begin, since the end of this run could not be reported.
  func isNotTold(_ problem: BatchError) -> BatchError {
    BatchError(
      .unfinishedRun,
      "the last run could not be concluded, so nothing was started: \(problem.message)",
      at: path.string,
      remedy: "repeat the command where its output can be written",
      underlying: problem
    )
  }

  fileprivate var isUnknown: BatchError {
    BatchError(
      .otherRun,
      "run \(metadata.runID?.quotedForMessage ?? metadata.run) is finished according to the checkpoint,"
        + " but the database does not know it: another file has its name, or a backup was restored",
      at: path.string,
      remedy: "restore the right database; --fresh starts a new run"
    )
  }

  fileprivate var isUnfinished: BatchError {
    let name = metadata.runID.map { "run \($0.quotedForMessage)" } ?? "a run without --run-id"
    return BatchError(
      .unfinishedRun,
      "\(name) of this job is unfinished",
      at: path.string,
      remedy: metadata.runID.map { "finish it first: batch run --run-id \($0)" }
        ?? "finish it first: batch run without --run-id"
    )
  }
}

extension RunDecision {
  /// The decision in a word, as in `status --json`.
  var name: String {
    switch self {
    case .begin: "begin"
    case .resume, .restore: "resume"
    case .conclude, .acknowledge: "acknowledge"
    case .concludeAndBegin: "acknowledgeAndBegin"
    case .repeatSummary: "nothing"
    }
  }

  /// The decision in words.
  var words: String {
    switch self {
    case .begin: "starts a new run"
    case .resume: "resumes the unfinished run"
    case .restore: "restores the lost checkpoint from the database and resumes the run"
    case .conclude, .acknowledge:
      "changes no row: concludes the finished run"
    case .concludeAndBegin: "concludes the last run, then starts a new one"
    case .repeatSummary: "does nothing: the work of this run ID is done"
    }
  }
}
