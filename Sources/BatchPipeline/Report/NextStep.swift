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
  ///   - options: What may differ from one run to the next. Parameters of which one is missing are not
  ///     compared with those of an unfinished run.
  ///   - handlers: What the `handler` of a transform may name. Without that of the job, it is not looked
  ///     whether the job fits its database.
  public init(
    of job: Job,
    options: BatchRun.Options = .init(),
    handlers: [String: TransformHandler] = [:]
  ) async {
    if let process = RunLock.holder(ofCheckpoint: job.checkpointPath) {
      name = "refuse"
      words = "refuses: another run of this job is alive (process \(process))"
      return
    }
    do throws(BatchError) {
      try options.check()
      let findings = try await RunDecision.Findings(
        of: job,
        options,
        interruptedRetry: RunLock.interruptedRetry(ofCheckpoint: job.checkpointPath)
      )
      if let alive = findings.stored?.first(where: { $0.process != nil }) { throw alive.isAlive }
      let decision = try RunDecision(findings)
      try await decision.refuse(unless: BatchRun(job, options: options, handlers: handlers))
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
  /// does not fit its database; as far as that shows without parameters that are not given.
  fileprivate func refuse(unless run: BatchRun) async throws(BatchError) {
    switch self {
    case .begin(let previous):
      guard let plan = try await run.plan(previous?.metadata) else { return }
      if case .export(_, let export) = plan.work {
        try ExportFile.checkName(
          export.file,
          overwrite: export.overwrite,
          made: previous?.progress.outputIdentity
        )
      }
    case .resume(let checkpoint):
      try checkpoint.refuse(unless: run.job, run.parameters(checkpoint.metadata))
      guard let plan = try await run.plan(checkpoint.metadata) else { return }
      let imported = try plan.importedIdentifiers()
      try checkpoint.refuse(unless: plan, identifiersHash: imported?.hash)
    case .conclude(let checkpoint), .concludeAndBegin(let checkpoint):
      try checkpoint.refuse(unless: run.job, run.parameters(checkpoint.metadata))
    case .restore, .acknowledge, .repeatSummary: break
    }
  }
}

extension BatchRun {
  /// The values of the parameters; nil if one is missing.
  fileprivate func parameters(_ metadata: RunMetadata?) -> ParameterValues? {
    let startedAt = metadata?.startedAt ?? Date.now.formatted(.iso8601)
    return try? parameters(ofRun: metadata?.run ?? "", startedAt: startedAt)
  }

  /// The job's plan, if it is known what it works with.
  fileprivate func plan(_ metadata: RunMetadata?) async throws(BatchError) -> JobPlan? {
    if case .transform(let transform) = job.action, case .handler(let name) = transform.program,
      handlers[name] == nil
    {
      return nil
    }
    guard let parameters = parameters(metadata) else { return nil }
    return try await JobPlan(job, parameters: parameters, handlers: handlers)
  }
}
