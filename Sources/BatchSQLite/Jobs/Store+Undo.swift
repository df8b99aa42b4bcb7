import BatchJobs
package import BatchRuns
package import BatchIdentifiers

extension Store {
  /// Refuses a run while an undo of the job's work is running or unfinished.
  ///
  /// - Throws: `BatchError` of code `alreadyRunning` or `unfinishedRun`.
  package func refuseDuringUndo(ofJob job: String, fresh: Bool) async throws(BatchError) {
    for undo in try await runs(ofJob: ProgramWork.jobName(undoing: job)) {
      if undo.process != nil { throw undo.isAlive }
      if case .unfinished = undo.state, !fresh {
        throw BatchError(
          .unfinishedRun,
          "a run of the job is being undone: \(undo.done.count.grouped) of \(undo.total.grouped) rows are",
          at: path,
          remedy: "finish that with batch undo, or start over with --fresh"
        )
      }
    }
  }

  /// Refuses to resume a run if an undo of it has begun.
  ///
  /// - Throws: `BatchError` of code `otherRun`.
  package func refuse(undone checkpoint: Checkpoint) async throws(BatchError) {
    let undos = try await undoableRuns(ofJob: checkpoint.metadata.job)
    if undos.contains(where: { $0.run == checkpoint.metadata.run && $0.isUndone }) {
      throw checkpoint.refusal(
        "what it has done was undone, so it is not resumed",
        remedy: "start over with --fresh"
      )
    }
  }
}
