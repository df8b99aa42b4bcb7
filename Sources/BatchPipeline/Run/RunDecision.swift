import BatchEngine
import BatchIdentifiers
import BatchStore
import SystemPackage

/// What `batch run` does, by what it finds on the disk.
///
/// A value that performs nothing: `status` and `plan` tell it, `run` carries it out. The page
/// `Documentation/CommandLine.md` has the same as a table.
enum RunDecision {
  /// Selects again; the job's last run, if there is a checkpoint of it, is over.
  case begin(after: Checkpoint?)
  /// Resumes the run of the checkpoint.
  case resume(Checkpoint)
  /// Does what is left to do after the end of the checkpoint's run, and nothing to rows.
  case conclude(Checkpoint)
  /// The same, and then selects again: the work that is asked for now is not that of the checkpoint.
  case concludeAndBegin(Checkpoint)
  /// Makes the checkpoint again from the list that the store keeps, and decides once more.
  case restore(StoredRun)
  /// Tells what came of a run that did all, and of which the store alone knows that nobody was told.
  case acknowledge(StoredRun)
  /// Tells what came of the work that is asked for, which was done before.
  case repeatSummary(PastRun)

  /// What there is to decide by.
  struct Findings {
    /// The job's name.
    let job: String
    /// Where the job has its checkpoint, if there is one or not.
    var checkpointPath: FilePath?
    /// The checkpoint, if there is one that can be read.
    var checkpoint: Checkpoint?
    /// The store, open; nil if it was not asked, or cannot be.
    var store: Store?
    /// The job's runs that the store knows; nil if it was not asked, or cannot be.
    var stored: [StoredRun]?
    /// The identifier of the work that is asked for.
    var runID: String?
    /// The run whose failed identifiers a process was about to try again when it was killed.
    var interruptedRetry: String?
    /// Since when finished work is remembered; nil forever.
    var oldestEnd: String?
    /// Whether unfinished runs make way for a new one.
    var isFresh = false
    /// The file that then makes way for the new checkpoint: of a run that is not over, or damaged.
    var replacedFile: FilePath?
    /// The runs whose checkpoints were set aside by an earlier version.
    var setAside: Set<String> = []
    /// Whether the store keeps the list of a run.
    var storeHasList = false
  }

  /// Decides.
  ///
  /// - Throws: `BatchError` of code `unfinishedRun` if another run is in the way, or one whose checkpoint
  ///   is gone; `alreadyRunning` if that is alive; `otherRun` if the store does not know what the checkpoint
  ///   says is done.
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
      // The work of another identifier is finished first by whoever gives that.
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
  /// The run that the store knows to be unfinished, or not to be acknowledged, while there is no
  /// checkpoint of it; nil if nothing of it is done, so that nothing is lost with it.
  var lost: StoredRun? {
    get throws(BatchError) {
      let candidates = (stored ?? []).filter { run in
        guard run.run != checkpoint?.metadata.run, !setAside.contains(run.run) else { return false }
        // Of earlier versions nobody knows whether their checkpoint was set aside.
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

  /// The error for an unfinished run of which there is no checkpoint where the job has its own.
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

  /// Whether all of the checkpoint's run is done: the file says so, and the store does not deny it.
  ///
  /// It does when it was taken back to a backup of the time before.
  func isFinished(_ checkpoint: Checkpoint) -> Bool {
    guard checkpoint.progress.state.isFinished, let stored = stored(checkpoint) else {
      return checkpoint.progress.state.isFinished
    }
    // Nobody was told of a retry, and a backup from before it has the failures that it made good.
    let isUndone = stored.done.outcomes.failed != checkpoint.progress.done.outcomes.failed
    if isUndone, checkpoint.progress.awaitsAcknowledgement { return false }
    return stored.done.count >= stored.total
  }

  /// Whether work of an identifier, or of none, is what is asked for.
  fileprivate func asksFor(_ id: String?) -> Bool {
    guard let runID else { return true }
    return id?.hasSameBytes(as: runID) == true
  }

  /// What the store says of the checkpoint's run.
  private func stored(_ checkpoint: Checkpoint) -> StoredRun? {
    guard checkpoint.metadata.ledger == .store else { return nil }
    return stored?.first { $0.run == checkpoint.metadata.run }
  }

  /// Refuses a checkpoint of the job that says what the store must know and does not.
  ///
  /// Of a run that is to be resumed the comparison of job and store comes first: it can say more.
  func refuseIfUnknown(_ checkpoint: Checkpoint) throws(BatchError) {
    guard let stored, checkpoint.metadata.ledger == .store, checkpoint.metadata.job == job else {
      return
    }
    if let own = self.stored(checkpoint) { return try own.refuseIfIncomplete() }
    let progress = checkpoint.progress
    if progress.state.isFinished {
      // What is acknowledged the store may have forgotten.
      if progress.awaitsAcknowledgement { throw checkpoint.isUnknown }
    } else if checkpoint.wasEntered
      || stored.contains(where: { $0.startedAt > checkpoint.metadata.startedAt })
    {
      throw checkpoint.missingLedger()
    }
  }

  /// Refuses work that is done by the word of a checkpoint, if the store must know of it and does not.
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
      remedy: "bring the right database back; --fresh repeats the work"
    )
  }
}

extension Checkpoint {
  /// Whether the store knew of the run before this file was there, so that it still must.
  var wasEntered: Bool { metadata.isEntered == true || !progress.done.rows.isEmpty }

  /// The error for other work that cannot begin, since nobody could be told how this run ended.
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
      remedy: "bring the right database back; --fresh starts a new run"
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
  /// The decision in a word, as `status --json` has it.
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
