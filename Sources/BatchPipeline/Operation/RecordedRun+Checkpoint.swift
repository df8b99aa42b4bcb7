import BatchIdentifiers
import BatchJobs
import BatchRuns

extension RecordedRun {
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

extension Checkpoint {
  /// The first failures, for a report.
  func reportedFailures() throws(BatchError) -> [RunReport.Failure] {
    try failedIdentifiers().prefix(RunReport.failureLimit).map { failed throws(BatchError) in
      RunReport.Failure(failed, try list.key(at: failed.position).description)
    }
  }
}
