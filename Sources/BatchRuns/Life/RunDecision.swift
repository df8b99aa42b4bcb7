public import BatchIdentifiers

extension BatchError.Code {
  /// The store has an unfinished run of the job that the caller does not resume.
  public static let unfinishedRun = Self(rawValue: "unfinishedRun")
}

/// What `batch run` and `batch retry-failed` do, given the recorded runs.
///
/// This is a value that performs nothing: `status` and `plan` report it, `run` executes it. The
/// page `Documentation/CommandLine.md` has the rules as a table.
package enum RunDecision<Record> {
  /// Select identifiers and begin a run, which replaces unfinished ones.
  case begin(replacing: [FoundRun<Record>])
  /// Resume an unfinished run, take part in it, or retry the failures of a run.
  case join(FoundRun<Record>)
  /// Perform the steps that remain after the end of a run, without touching rows.
  case conclude(FoundRun<Record>)
  /// Perform these steps, then decide again: the requested work is another run's.
  case concludeFirst(FoundRun<Record>)
  /// Report the result of the requested work, which was done before.
  case nothing(FoundRun<Record>)

  /// Decides from the recorded runs; throws if another run is in the way or has an obstacle.
  package init(
    _ found: FoundRuns<Record>,
    _ request: RunRequest,
    job: String
  ) throws(BatchError) {
    if request.retriesFailures {
      self = try Self.retry(found, job: job)
      return
    }
    let asked = request.runID.flatMap { _ in found.runs.last { request.asks(for: $0.runID) } }
    if let asked, asked.state != .unfinished {
      if let obstacle = asked.obstacle { throw obstacle }
      self = asked.state == .finished ? .conclude(asked) : .nothing(asked)
      return
    }
    let unfinished = found.runs.filter { $0.state == .unfinished }
    if request.fresh {
      if let alive = found.alive { throw alive }
      self = .begin(replacing: unfinished)
      return
    }
    if let run = unfinished.last {
      guard request.asks(for: run.runID) else { throw run.isUnfinished }
      if let obstacle = run.obstacle { throw obstacle }
      self = .join(run)
      return
    }
    if let obstacle = found.obstacle { throw obstacle }
    if let last = found.runs.last, last.state == .finished {
      if let obstacle = last.obstacle { throw obstacle }
      self = request.asks(for: last.runID) ? .conclude(last) : .concludeFirst(last)
      return
    }
    guard !request.joinOnly else {
      throw BatchError(
        .notRunning,
        "no run of job \"\(job)\" is unfinished, and --join-only does not begin one",
        remedy: "begin one without --join-only"
      )
    }
    self = .begin(replacing: [])
  }

  private static func retry(
    _ found: FoundRuns<Record>,
    job: String
  ) throws(BatchError) -> Self {
    if let obstacle = found.obstacle { throw obstacle }
    guard let last = found.runs.last else {
      throw BatchError(.fileAccess, "job \"\(job)\" has not been run", remedy: "run it first")
    }
    if let obstacle = last.obstacle { throw obstacle }
    // A retry whose end could not be reported is not repeated.
    return last.state == .finished && last.isRetry ? .conclude(last) : .join(last)
  }
}

extension FoundRun {
  /// The error for new work that must wait because the end of this run could not be reported.
  package func isNotTold(_ problem: BatchError) -> BatchError {
    BatchError(
      .unfinishedRun,
      "the last run could not be concluded, so nothing was started: \(problem.message)",
      at: place,
      remedy: "repeat the command where its output can be written",
      underlying: problem
    )
  }

  /// The error for new work that must wait until this run is over.
  fileprivate var isUnfinished: BatchError {
    let name = runID.map { "run \($0.quotedForMessage)" } ?? "a run without --run-id"
    return BatchError(
      .unfinishedRun,
      "\(name) of this job is unfinished",
      at: place,
      remedy: command.map { "finish it first: \($0) (--finish-first does)" }
        ?? runID.map { "finish it first, with the run ID \($0.quotedForMessage)" }
        ?? "finish it first, without a run ID"
    )
  }
}

extension RunDecision {
  package var name: String {
    switch self {
    case .begin: "begin"
    case .join: "resume"
    case .conclude: "acknowledge"
    case .concludeFirst: "acknowledgeAndBegin"
    case .nothing: "nothing"
    }
  }

  /// The decision as a clause about the command; `joining` is the clause for joining a run.
  package func words(joining: String = "resumes the unfinished run") -> String {
    switch self {
    case .begin: "starts a new run"
    case .join: joining
    case .conclude: "changes no row: concludes the finished run"
    case .concludeFirst: "concludes the last run, then starts a new one"
    case .nothing: "does nothing: the work of this run ID is done"
    }
  }
}
