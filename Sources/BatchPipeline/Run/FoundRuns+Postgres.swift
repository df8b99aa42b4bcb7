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
  /// What the job's next run does, in a word and in words; `refuse` if it is refused.
  ///
  /// - Parameters:
  ///   - runs: The runs of the job, the newest last.
  ///   - request: What is asked for.
  ///   - job: The job.
  ///   - parameters: The values of its parameters; nil if they are not known.
  /// - Returns: The word and the words.
  static func next(
    after runs: [SharedRun],
    _ request: RunRequest,
    of job: Job,
    _ parameters: (RunIdentity) -> ParameterValues?
  ) -> (name: String, words: String) {
    do throws(BatchError) {
      let decision = try RunDecision(FoundRuns(runs), request, job: job.name)
      switch decision {
      case .join(let run), .conclude(let run), .concludeFirst(let run):
        let metadata = try run.record.described()
        try metadata.refuse(
          unless: job,
          parameters(RunIdentity(metadata)),
          at: run.place ?? metadata.run
        )
      case .begin, .nothing: break
      }
      return (decision.name, decision.words(joining: "takes part in the unfinished run"))
    } catch {
      return ("refuse", "refuses: \(error)")
    }
  }
}

extension BatchRun.Options {
  /// The values of a job's parameters for a run; nil if none, or not all, are given.
  func givenParameters(of job: Job, for run: RunIdentity) -> ParameterValues? {
    guard let parameterTexts, !parameterTexts.isEmpty else { return nil }
    return try? ParameterValues(
      arguments: parameterTexts,
      declarations: job.parameters,
      runStartedAt: run.startedAt,
      runID: run.run
    )
  }
}

extension SharedRun {
  /// The metadata that the host that began the run recorded.
  ///
  /// - Throws: `BatchError` of code `damagedFile` if it cannot be read.
  func described() throws(BatchError) -> RunMetadata {
    try RunMetadata(ofSharedRun: self)
  }

  /// Refuses to take part with a changed job, changed parameters, or as a role that sees other rows.
  func refuse(unless plan: PostgresPlan) throws(BatchError) {
    let metadata = try described()
    try metadata.refuse(
      unless: plan.job,
      plan.parameters,
      identifiersHash: plan.identifiers?.contentHash,
      at: "run \(run)"
    )
    try plan.refuse(unlessExpecting: metadata.schema, at: "run \(run)")
  }
}
#endif
