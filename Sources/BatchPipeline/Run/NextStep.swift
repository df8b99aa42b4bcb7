import BatchEngine
import BatchIdentifiers
import BatchPlatform
public import BatchStore

/// What `batch run` would do now, given what is on disk.
public struct NextStep: Sendable, Encodable {
  /// In a word: `begin`, `resume`, `acknowledge`, `acknowledgeAndBegin`, `nothing`, or `refuse`.
  public let name: String
  /// In a clause, with the reason if the run would be refused.
  public let words: String

  /// Decides as a run would; writes nothing.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - options: What may differ from one run to the next. If a parameter is missing, they are not compared
  ///     with those of an unfinished run.
  ///   - handlers: Handlers that the `handler` of a transform may name. Without the job's, whether the job fits
  ///     its database is not checked.
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
      let findings = try await FileFindings(
        of: job,
        options.request,
        interruptedRetry: RunLock.interruptedRetry(ofCheckpoint: job.checkpointPath)
      )
      if let alive = findings.stored?.first(where: { $0.process != nil }) { throw alive.isAlive }
      let decision = try findings.decide()
      var options = options
      var parameters: [ParameterArgument] = []
      if options.hasNoParameters, let checkpoint = decision.continued {
        parameters = checkpoint.metadata.parametersToGive(to: job)
        let texts = parameters.compactMap(\.argument)
        // The value of a secret is unknown, so parameters are not compared then.
        if texts.count == parameters.count { options.parameterTexts = texts }
      }
      let run = BatchRun(job, options: options, handlers: handlers)
      try await decision.refuse(unless: run, after: findings.checkpoint)
      switch decision {
      case .begin: try await findings.refuseDuringUndo(fresh: options.fresh)
      case .join:
        try await findings.refuseDuringUndo(fresh: options.fresh)
        if let checkpoint = decision.continued { try findings.refuseIfUnknown(checkpoint) }
      default: break
      }
      name = decision.name
      let given = parameters.map { " --param \($0.shown)" }.joined()
      words =
        decision.words(joining: findings.wordsOfJoining(decision))
        + (given.isEmpty ? "" : ", with\(given)")
    } catch {
      name = "refuse"
      words = "refuses: \(error)"
    }
  }
}

extension BatchRun.Options {
  fileprivate var hasNoParameters: Bool { parameterTexts == nil && parameters.isEmpty }
}

extension FileFindings {
  fileprivate func refuseDuringUndo(fresh: Bool) async throws(BatchError) {
    try await store?.refuseDuringUndo(ofJob: job, fresh: fresh)
  }
}

extension RunDecision<FileRun> {
  /// The run to resume, or whose end to report; nil if there is none.
  fileprivate var continued: Checkpoint? {
    switch self {
    case .join(let run), .conclude(let run):
      if case .checkpoint(let checkpoint) = run.record { checkpoint } else { nil }
    case .begin, .concludeFirst, .nothing: nil
    }
  }

  /// Refuses what a run would refuse: work that differs from that of the run to resume, or does not
  /// fit its database; as far as known without missing arguments.
  fileprivate func refuse(
    unless run: BatchRun,
    after previous: Checkpoint?
  ) async throws(BatchError) {
    switch (self, continued) {
    case (.begin, _):
      let identity = RunIdentity()
      guard let plan = try await run.work.foreseeablePlan(of: identity) else { return }
      var metadata = RunMetadata(
        run: identity.run,
        job: run.job.name,
        startedAt: identity.startedAt,
        fingerprint: "",
        schema: [],
        ledger: plan.ledger
      )
      try plan.describeOutput(in: &metadata, after: previous)
    case (.join, let checkpoint?):
      try run.work.refuse(unlessFor: checkpoint)
      let identity = RunIdentity(checkpoint.metadata)
      guard let plan = try await run.work.foreseeablePlan(of: identity) else { return }
      try await plan.refuse(unlessFor: checkpoint)
    case (.conclude, let checkpoint?): try run.work.refuse(unlessFor: checkpoint)
    case (.concludeFirst, _):
      if let previous { try run.work.refuse(unlessFor: previous) }
    case (.join, nil), (.conclude, nil), (.nothing, _): break
    }
  }
}
