public import BatchEngine
public import BatchIdentifiers
import BatchPlatform
public import BatchStore
import SystemPackage

/// The state of a job's last run, in whatever process.
public struct RunStatus: Sendable {
  /// The counts; for a live run, as of now.
  public let summary: RunSummary
  /// The process that is running it, or nil.
  public let process: Int32?
  /// The completed run that has undone it, if any.
  package let undo: CompletedUndo?
  /// What `batch run` would do next.
  public let next: NextStep
  /// What other programs that have the database open risk beside the run; empty once it is done.
  package let warnings: [String]

  /// Reads the checkpoint of a job and, if the store keeps a ledger, that.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - options: The options of the next run.
  ///   - handlers: Handlers that the `handler` of a transform may name; see ``NextStep``.
  /// - Throws: `BatchError` if the job has no checkpoint, or it is damaged; of code `unknownRun` if the options have an
  ///   identifier of other work.
  public init(
    of job: Job,
    options: BatchRun.Options = .init(),
    handlers: [String: TransformHandler] = [:]
  ) async throws(BatchError) {
    let path = job.checkpointPath
    let process = RunLock.holder(ofCheckpoint: path)
    let next = await NextStep(of: job, options: options, handlers: handlers)
    guard FileSystem.status(of: path) != nil else {
      throw .noCheckpoint(
        ofJob: job,
        remedy: next.name == "begin" ? "run it first" : "batch run \(next.words)"
      )
    }
    let checkpoint = try Checkpoint(ofJob: job)
    if let id = options.runID, checkpoint.metadata.runID?.hasSameBytes(as: id) != true {
      throw .unknownRunID(id, at: path.string)
    }
    var summary = RunSummary(checkpoint.metadata, checkpoint.progress, checkpoint: checkpoint)
    let done = try await checkpoint.doneRanges(ofJob: job)
    summary.outcomes = done.outcomes
    summary.chunks = done.chunks
    if process != nil, !summary.state.isGoingOn, !summary.state.isFinished {
      // It is running, and has not recorded that yet.
      summary.state = .running
      summary.endedAt = nil
      summary.stopReason = nil
      summary.throttle = nil
      summary.waiting = nil
      summary.error = nil
    } else if process == nil, summary.state.isGoingOn {
      // It was killed before it could record that.
      summary.state = .stopped
      summary.wasKilled = true
      summary.throttle = nil
      summary.waiting = nil
    } else if summary.state.isGoingOn,
      let recorded = checkpoint.progress.recordedAt ?? checkpoint.metadata.startSeconds
    {
      // Nothing is written while a run is held, nor in its first moments, but its times continue.
      let since = max(0, Date.now.timeIntervalSince1970 - recorded)
      summary.elapsedSeconds += since
      summary.processSeconds? += since
      if summary.throttle != nil { summary.throttledSeconds += since }
    }
    let workSeconds = summary.elapsedSeconds - checkpoint.progress.selectionSeconds
    if workSeconds > 0, summary.done > 0 {
      let rate = Double(summary.done) / workSeconds
      summary.identifiersPerSecond = rate
      if process != nil, summary.state == .running, summary.waiting == nil {
        summary.etaSeconds = Double(summary.total - summary.done) / rate
      }
    }
    self.summary = summary
    self.process = process
    undo =
      checkpoint.metadata.undone == nil
      ? CompletedUndo(of: checkpoint.metadata.run, ofJob: job) : nil
    self.next = next
    warnings = summary.state.isFinished ? [] : job.risks
  }
}

extension RunMetadata {
  /// When the run first began, in seconds since 1970.
  fileprivate var startSeconds: Double? {
    guard let start = try? Date(startedAt, strategy: .iso8601) else { return nil }
    return start.timeIntervalSince1970 + Double(startedMicroseconds) / 1_000_000
  }
}
