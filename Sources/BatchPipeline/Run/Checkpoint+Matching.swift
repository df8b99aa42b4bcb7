import BatchRuns
import BatchIdentifiers
import BatchSQLite
import SystemPackage

extension Checkpoint {
  /// Refuses to resume a run whose job, store or schema has changed since it began.
  func refuse(unless plan: JobPlan, identifiersHash: String?) throws(BatchError) {
    try metadata.refuse(
      unless: plan.job,
      plan.parameters,
      identifiersHash: identifiersHash,
      at: path.string
    )
    let store = list.header.storeIdentifier
    guard plan.store.identity.admits(store, atPath: plan.store.path) else {
      throw refusal(
        "the checkpoint belongs to store \(store), the database is \(plan.store.identity.uuid)"
      )
    }
    guard plan.expected.recorded == metadata.schema else {
      throw refusal(
        "the record of what the run expects of the schema was changed by hand",
        remedy: "run with --fresh to set the checkpoint aside"
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
    try metadata.refuse(unless: job, parameters, at: path.string)
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

  func refusal(_ reason: String, remedy: String = RunMetadata.remedy) -> BatchError {
    BatchError(.otherRun, reason, at: path.string, remedy: remedy)
  }
}

extension RunMetadata {
  /// What to do about a job that has changed since its run began.
  static let remedy = "undo the change to resume, or run with --fresh to set the run aside"

  /// Refuses a job that differs from the run's, as far as can be known without a database or a lost
  /// list of identifiers.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - parameters: The values of its parameters; nil if they are not known.
  ///   - place: Where the run is recorded.
  /// - Throws: `BatchError` of code `otherRun`.
  func refuse(
    unless job: Job,
    _ parameters: ParameterValues?,
    at place: String
  ) throws(BatchError) {
    let identifiers = job.source.identifiers.flatMap { try? IdentifierFile(opening: $0) }
    guard job.source.identifiers == nil || identifiers != nil else { return }
    try refuse(
      unless: job,
      parameters,
      identifiersHash: identifiers?.contentHash,
      at: place
    )
  }

  /// The same with a list of identifiers, whose content counts.
  func refuse(
    unless job: Job,
    _ parameters: ParameterValues?,
    identifiersHash: String?,
    at place: String
  ) throws(BatchError) {
    let now = JobFingerprint(
      job: job,
      parameters: parameters ?? ParameterValues(),
      store: "",
      identifiersHash: identifiersHash
    )
    let differences = try differences(of: job, now, parameters != nil, at: place)
    guard !differences.isEmpty else { return }
    guard differences.allSatisfy({ $0.hasPrefix("parameter ") }) else {
      throw hasChanged(differences, at: place)
    }
    let given = parametersToGive(to: job).map { " --param \($0.shown)" }.joined()
    throw BatchError(
      .otherRun,
      "the run began with other parameters: \(differences.joined(separator: ", "))",
      at: place,
      remedy: given.isEmpty
        ? "give those of the run to resume it, or run with --fresh to set the run aside"
        : "to resume it give\(given), or run with --fresh to set the run aside"
    )
  }

  /// Refuses work without a job file that differs from the run's.
  ///
  /// - Parameters:
  ///   - work: The work.
  ///   - place: Where the run is recorded.
  /// - Throws: `BatchError` of code `otherRun`.
  func refuse(unless work: ProgramWork, at place: String) throws(BatchError) {
    let differences = try differences(of: work, JobFingerprint(of: work), true, at: place)
    if !differences.isEmpty { throw hasChanged(differences, at: place) }
  }

  private func differences(
    of cause: some RunCause,
    _ now: JobFingerprint,
    _ comparesParameters: Bool,
    at place: String
  ) throws(BatchError) -> [String] {
    guard job == cause.name else {
      throw BatchError(
        .otherRun,
        "this is the checkpoint of job \"\(job)\"",
        at: place,
        remedy: Self.remedy
      )
    }
    let then = JobFingerprint(text: fingerprint)
    return now.differences(from: then, comparingParameters: comparesParameters)
  }

  private func hasChanged(_ differences: [String], at place: String) -> BatchError {
    BatchError(
      .otherRun,
      "the job has changed since the run began: \(differences.joined(separator: ", "))",
      at: place,
      remedy: Self.remedy
    )
  }
}
