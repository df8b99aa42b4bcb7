import BatchIdentifiers
public import BatchStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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
  ///   - handlers: What the `handler` of a transform may name.
  public init(
    of job: Job,
    runID: String? = nil,
    handlers: [String: TransformHandler] = [:]
  ) async {
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
      try await decision.refuse(unless: job, handlers)
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
  /// Refuses what a run would refuse: a job that is not that of the run which it would go on with, or
  /// does not fit its database; as far as that shows without the values that its parameters will have.
  fileprivate func refuse(
    unless job: Job,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) {
    switch self {
    case .begin(let previous):
      guard let plan = try await plan(of: job, previous?.metadata, handlers) else { return }
      if case .export(_, let export) = plan.work {
        try ExportFile.checkName(
          export.file,
          overwrite: export.overwrite,
          made: previous?.progress.outputIdentity
        )
      }
    case .resume(let checkpoint):
      guard let parameters = parameters(of: job, checkpoint.metadata) else { return }
      try checkpoint.refuse(unless: job, parameters)
      guard let plan = try await plan(of: job, checkpoint.metadata, handlers) else { return }
      let imported = try plan.importedIdentifiers()
      try checkpoint.refuse(unless: plan, identifiersHash: imported?.hash)
    case .conclude(let checkpoint), .concludeAndBegin(let checkpoint):
      guard let parameters = parameters(of: job, checkpoint.metadata) else { return }
      try checkpoint.refuse(unless: job, parameters)
    case .restore, .acknowledge, .repeatSummary: break
    }
  }

  /// The values of the parameters, if all have one without an argument.
  private func parameters(of job: Job, _ metadata: RunMetadata?) -> ParameterValues? {
    try? ParameterValues(
      arguments: [],
      declarations: job.parameters,
      runStartedAt: metadata?.startedAt ?? Date.now.formatted(.iso8601),
      runID: metadata?.run ?? ""
    )
  }

  /// The job's plan, if it is known what it works with.
  private func plan(
    of job: Job,
    _ metadata: RunMetadata?,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> JobPlan? {
    if case .transform(let transform) = job.action, case .handler(let name) = transform.program,
      handlers[name] == nil
    {
      return nil
    }
    guard let parameters = parameters(of: job, metadata) else { return nil }
    return try await JobPlan(job, parameters: parameters, handlers: handlers)
  }
}
