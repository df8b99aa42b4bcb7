import BatchIdentifiers
import BatchStore

/// What `batch run` would do now, by what is on the disk.
public struct NextStep: Sendable, Encodable {
  /// In a word: `begin`, `resume`, `acknowledge`, `acknowledgeAndBegin`, `nothing`, or `refuse`.
  public let name: String
  /// In a clause, with the reason where the run would be refused.
  public let words: String

  /// Decides as a run would; writes nothing.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - runID: The identifier of the work that would be asked for.
  public init(of job: Job, runID: String? = nil) async {
    if let process = RunLock.holder(ofCheckpoint: job.checkpointPath) {
      name = "refuse"
      words = "refuses: another run of this job is alive (process \(process))"
      return
    }
    do throws(BatchError) {
      var options = BatchRun.Options()
      options.runID = runID
      try options.check()
      let findings = try await RunDecision.Findings(of: job, options)
      if let alive = findings.stored?.first(where: { $0.process != nil }) { throw alive.isAlive }
      let decision = try RunDecision(findings)
      try await decision.refuse(unless: job)
      if case .resume(let checkpoint) = decision { try findings.refuseIfUnknown(checkpoint) }
      name = decision.name
      words = decision.words
    } catch {
      name = "refuse"
      words = "refuses: \(error)"
    }
  }
}

extension RunDecision {
  /// Refuses a job that is not that of the run which it would go on with, as far as that shows without
  /// the values that its parameters will have.
  fileprivate func refuse(unless job: Job) async throws(BatchError) {
    switch self {
    case .resume(let checkpoint):
      guard let parameters = checkpoint.parameters(of: job) else { return }
      try checkpoint.refuse(unless: job, parameters)
      if let plan = try? await JobPlan(job, parameters: parameters) {
        let imported = try plan.importedIdentifiers()
        try checkpoint.refuse(unless: plan, identifiersHash: imported?.hash)
      }
    case .conclude(let checkpoint), .concludeAndBegin(let checkpoint):
      guard let parameters = checkpoint.parameters(of: job) else { return }
      try checkpoint.refuse(unless: job, parameters)
    case .begin, .restore, .acknowledge, .repeatSummary: break
    }
  }
}

extension Checkpoint {
  /// The values of the parameters, if all have one without an argument.
  fileprivate func parameters(of job: Job) -> ParameterValues? {
    try? ParameterValues(
      arguments: [],
      declarations: job.parameters,
      runStartedAt: metadata.startedAt,
      runID: metadata.run
    )
  }
}
