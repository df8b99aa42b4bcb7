#if PostgreSQL
import BatchJobs
import BatchRuns
package import BatchIdentifiers

extension FoundRuns<TableRun> {
  /// The runs of a job in the database, which determine what its next run does.
  ///
  /// - Parameters:
  ///   - runs: The runs, the newest last.
  ///   - isRetry: Whether the last one was reopened to retry its failures.
  ///   - undo: Why no run may begin or go on without setting others aside.
  init(_ runs: [TableRun], isRetry: Bool = false, during undo: BatchError? = nil) {
    self.init(obstacle: undo)
    for run in runs {
      let state: FoundRunState? =
        switch run.state {
        case .running: .unfinished
        case .finished: .finished
        case .acknowledged: .acknowledged
        case .setAside: nil
        }
      guard let state else { continue }
      let isLast = run.run == runs.last?.run
      self.runs.append(
        FoundRun(
          run,
          state,
          runID: run.runID,
          isRetry: isRetry && isLast,
          at: "run \(run.run)",
          continuedBy: (try? run.described())?.invocation?.continuation,
          obstacle: state == .unfinished ? undo : nil
        )
      )
    }
  }
}

extension TableRun {
  /// - Throws: `BatchError` of code `damagedFile` if it cannot be read.
  func described() throws(BatchError) -> RunMetadata {
    try RunMetadata(ofSharedRun: self)
  }

  /// Refuses to take part with a changed job, changed parameters, or as a role that sees other
  /// rows.
  package func refuse(unless plan: PostgresPlan) throws(BatchError) {
    let metadata = try described()
    if plan.undone == nil {
      try metadata.refuse(
        unless: plan.job,
        plan.parameters,
        identifiersHash: plan.givenHash,
        at: "run \(run)"
      )
    }
    try plan.refuse(unlessExpecting: metadata.schema, at: "run \(run)")
  }
}
#endif
