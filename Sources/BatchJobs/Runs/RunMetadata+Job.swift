import BatchRuns
package import BatchIdentifiers
import SystemPackage

extension Checkpoint {
  /// Refuses a job that differs from the run's, as far as this is known without the database and
  /// the list of identifiers; `parameters` are nil if unknown.
  package func refuse(unless job: Job, _ parameters: ParameterValues?) throws(BatchError) {
    try metadata.refuse(unless: job, parameters, at: path.string)
  }

  package func refusal(_ reason: String, remedy: String = RunMetadata.remedy) -> BatchError {
    BatchError(.otherRun, reason, at: path.string, remedy: remedy)
  }
}

extension RunMetadata {
  /// What to do about a job that has changed since its run began.
  package static let remedy = "change it back to resume, or run with --fresh to set the run aside"

  /// Refuses a job that differs from the run's, as far as this is known without the database and
  /// the list of identifiers.
  ///
  /// - Parameters:
  ///   - job: The job as it is now.
  ///   - parameters: The values of its parameters; nil if they are unknown.
  ///   - place: Where the run is recorded.
  /// - Throws: `BatchError` of code `otherRun`.
  package func refuse(
    unless job: Job,
    _ parameters: ParameterValues?,
    at place: String
  ) throws(BatchError) {
    let identifiers = job.source.identifiers.flatMap { try? IdentifierFile(opening: $0) }
    guard job.source.identifiers == nil || identifiers != nil else { return }
    try refuse(
      unless: job,
      parameters,
      identifiersHash: identifiers?.contentHash ?? loaded?.contentHash,
      at: place
    )
  }

  /// Also compares the content of a list of identifiers.
  package func refuse(
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

  package func refuse(unless work: ProgramWork, at place: String) throws(BatchError) {
    let differences = try differences(of: work, JobFingerprint(of: work), true, at: place)
    guard !differences.isEmpty else { return }
    var error = hasChanged(differences, at: place)
    switch work.kind {
    case .objects:
      error.remedy =
        "change it back to resume, pass over: nil to finish the run with its identifiers, or set"
        + " options.fresh to set it aside"
    case .load: error.remedy = "change it back to resume, or set options.fresh to set the run aside"
    case .undo: break
    }
    throw error
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

extension RunMetadata {
  /// The parameters of the run: those that it recorded, and the given ones where it did not.
  package func parameters(
    of job: Job,
    given texts: [String]
  ) throws(BatchError) -> ParameterValues {
    func name(_ text: String) -> Substring { text.prefix { $0 != "=" } }
    let given = texts.filter { job.parameters[String(name($0))] != nil }
    let names = Set(given.map(name))
    let recorded = parametersToGive(to: job).compactMap(\.argument)
    var options = RunOptions()
    options.parameterTexts = recorded.filter { !names.contains(name($0)) } + given
    return try options.parameters(of: job, for: RunIdentity(self))
  }
}
