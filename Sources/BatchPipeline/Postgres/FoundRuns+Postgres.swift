#if PostgreSQL
import BatchEngine
import BatchIdentifiers
import BatchPostgres

extension FoundRuns<SharedRun> {
  /// The runs of a job in the database, from which it is decided what its next run does.
  ///
  /// - Parameters:
  ///   - runs: The runs, the newest last.
  ///   - isRetry: Whether the last one was reopened for what had failed in it.
  init(_ runs: [SharedRun], isRetry: Bool = false) {
    self.init()
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
          at: "run \(run.run)"
        )
      )
    }
  }
}

extension RunDecision<SharedRun> {
  /// The decision in words.
  var words: String { words(joining: "takes part in the unfinished run") }
}

extension SharedRun {
  /// The metadata that the host that began the run recorded.
  ///
  /// - Throws: `BatchError` of code `damagedFile` if it cannot be read.
  func described() throws(BatchError) -> RunMetadata {
    try RunMetadata(ofSharedRun: self)
  }

  /// The error for a job that differs from the one that the run began with.
  private func refusal(_ reason: String) -> BatchError {
    BatchError(
      .otherRun,
      reason,
      at: "run \(run)",
      remedy: "undo the change to take part in the run, or run with --fresh to set it aside"
    )
  }

  /// Refuses to take part with a changed job, changed parameters, or as a role that sees other rows.
  func refuse(unless plan: PostgresPlan) throws(BatchError) {
    let then = JobFingerprint(text: fingerprint)
    let differences = plan.fingerprint.differences(from: then)
    if !differences.isEmpty {
      throw refusal(
        "the job has changed since the run began: \(differences.joined(separator: ", "))"
      )
    }
    try plan.refuse(unlessExpecting: described().schema, at: "run \(run)")
  }
}
#endif
