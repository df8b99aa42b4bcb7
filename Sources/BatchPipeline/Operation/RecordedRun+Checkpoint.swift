import BatchIdentifiers
import BatchJobs
import BatchRuns
import SystemPackage

extension RecordedRun {
  package static func report(
    _ run: String?,
    ofWork cause: some RunCause,
    to path: FilePath
  ) async throws(BatchError) {
    let checkpoint = try Checkpoint.ofRun(run, of: cause)
    try await RunReport(RecordedRun(checkpoint, of: cause), checkpoint).write(
      to: Job.Report(path: path),
      permissions: cause.files.permissions
    )
  }

  /// Reads a run from its checkpoint, and from the ledger in its store.
  init(_ checkpoint: Checkpoint, of cause: some RunCause) async throws(BatchError) {
    let (metadata, progress) = (checkpoint.metadata, checkpoint.progress)
    var summary = RunSummary(metadata, progress, checkpoint: checkpoint)
    if !progress.state.isFinished, let done = try? await checkpoint.doneRanges(of: cause) {
      summary.outcomes = done.outcomes
      summary.chunks = done.chunks
      if let seconds = try? await checkpoint.elapsedSeconds(of: cause) {
        summary.processSeconds? += seconds - summary.elapsedSeconds
        summary.elapsedSeconds = seconds
      }
    }
    if summary.state.isGoingOn,
      checkpoint.path != cause.checkpointPath
        || RunLock.holder(ofCheckpoint: checkpoint.path) == nil
    {
      summary.state = .stopped
      summary.wasKilled = true
    }
    summary.isSetAside = !summary.state.isFinished && checkpoint.path != cause.checkpointPath
    let undo = metadata.undone == nil ? CompletedUndo(of: metadata.run, ofWork: cause) : nil
    self.init(
      metadata,
      summary,
      entity: checkpoint.list.header.entityName,
      undo: undo,
      actions: checkpoint.actions(of: cause, undo)
    )
  }
}

extension RunReport {
  /// Uses only the record, since the job may have changed.
  init(_ run: RecordedRun, _ checkpoint: Checkpoint) throws(BatchError) {
    summary = run.summary
    description = nil
    database = checkpoint.metadata.database ?? ""
    entity = run.entity
    condition = run.condition
    action = run.action ?? ""
    startedAt = run.startedAt
    failures = try Self.failures(checkpoint)
    pace = try checkpoint.pace()
    warnings = []
    actions = run.actions
  }
}
