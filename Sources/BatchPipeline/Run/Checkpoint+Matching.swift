import BatchEngine
import BatchIdentifiers
import BatchStore
import SystemPackage

extension Checkpoint {
  /// Refuses to resume a run whose job, store or schema has changed since it began.
  func refuse(unless plan: JobPlan, identifiersHash: String?) throws(BatchError) {
    try refuse(unless: plan.job, plan.parameters, identifiersHash: identifiersHash)
    let store = list.header.storeIdentifier
    guard plan.store.identity.admits(store, atPath: plan.store.path) else {
      throw refusal(
        "the checkpoint belongs to store \(store), the database is \(plan.store.identity.uuid)"
      )
    }
    guard plan.expected.recorded == metadata.schema else {
      throw refusal(
        "the run was begun by an earlier version of batch",
        remedy: "finish it with that version, or run with --fresh to set the checkpoint aside"
      )
    }
  }

  /// Refuses a job that differs from the run's, as far as can be known without a database or a lost
  /// list of identifiers.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - parameters: The values of its parameters; nil if they are not known.
  /// - Throws: `BatchError` of code `otherRun`.
  func refuse(unless job: Job, _ parameters: ParameterValues?) throws(BatchError) {
    let identifiers = job.source.identifiers.flatMap { try? IdentifierFile(opening: $0) }
    guard job.source.identifiers == nil || identifiers != nil else { return }
    try refuse(unless: job, parameters, identifiersHash: identifiers?.contentHash)
  }

  private func refuse(
    unless job: Job,
    _ parameters: ParameterValues?,
    identifiersHash: String?
  ) throws(BatchError) {
    guard metadata.job == job.name else {
      throw refusal("this is the checkpoint of job \"\(metadata.job)\"")
    }
    let now = JobFingerprint(
      job: job,
      parameters: parameters ?? ParameterValues(),
      store: "",
      identifiersHash: identifiersHash
    )
    let then = JobFingerprint(text: metadata.fingerprint)
    let differences = now.differences(from: then, comparingParameters: parameters != nil)
    guard differences.isEmpty else {
      let list = differences.joined(separator: ", ")
      guard differences.allSatisfy({ $0.hasPrefix("parameter ") }) else {
        throw refusal("the job has changed since the run began: \(list)")
      }
      let given = parametersToGive(to: job).map { " --param \($0.shown)" }.joined()
      throw refusal(
        "the run began with other parameters: \(list)",
        remedy: given.isEmpty
          ? "give those of the run to resume it, or run with --fresh to set the checkpoint aside"
          : "to resume it give\(given), or run with --fresh to set the checkpoint aside"
      )
    }
  }

  /// The error if the store does not know the run.
  func missingLedger() -> BatchError {
    BatchError(
      .otherRun,
      "the checkpoint has \(progress.done.count.grouped) identifiers done, but the database has no ledger"
        + " of this run",
      at: path.string,
      remedy: "the database may have been restored from a backup; run with --fresh to select"
        + " again"
    )
  }

  func refusal(
    _ reason: String,
    remedy: String = "undo the change to resume, or run with --fresh to set the checkpoint aside"
  ) -> BatchError {
    BatchError(.otherRun, reason, at: path.string, remedy: remedy)
  }
}
