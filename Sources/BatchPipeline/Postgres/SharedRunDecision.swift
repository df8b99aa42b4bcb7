#if PostgreSQL
import BatchEngine
import BatchIdentifiers
import BatchPostgres

/// What `batch run` does on PostgreSQL, given the job's runs in the database.
///
/// A value that performs nothing.
enum SharedRunDecision {
  /// Selects identifiers and begins a run; sets unfinished runs aside.
  case begin(settingAside: [SharedRun])
  /// Takes part in a run.
  case takePart(SharedRun)
  /// Reports the end of a run, which may not have been reported.
  case conclude(SharedRun)
  /// The same, and then decides again: the requested work differs.
  case concludeFirst(SharedRun)
  /// Reports the result of the requested work, which was done before.
  case repeatSummary(SharedRun)

  /// Decides.
  ///
  /// - Parameters:
  ///   - runs: The runs of the job, the newest last.
  ///   - options: The request.
  ///   - job: The job's name.
  /// - Throws: `BatchError` of code `unfinishedRun` if another run is in the way, `notRunning` if no run may begin.
  init(_ runs: [SharedRun], _ options: BatchRunRequest, job: String) throws(BatchError) {
    let runs = runs.filter { $0.state != .setAside }
    let asked = options.runID.flatMap { id in
      runs.last { $0.runID?.hasSameBytes(as: id) == true }
    }
    if let asked, asked.state != .running {
      self = asked.state == .finished ? .conclude(asked) : .repeatSummary(asked)
      return
    }
    let unfinished = runs.filter { $0.state == .running }
    if options.fresh {
      self = .begin(settingAside: unfinished)
      return
    }
    if let run = unfinished.last {
      guard options.runID == nil || run.run == asked?.run else { throw Self.isUnfinished(run) }
      self = .takePart(run)
      return
    }
    if let last = runs.last, last.state == .finished {
      self = options.runID == nil ? .conclude(last) : .concludeFirst(last)
      return
    }
    if options.joinOnly {
      throw BatchError(
        .notRunning,
        "no run of job \"\(job)\" is unfinished, and --join-only does not begin one",
        remedy: "begin one without --join-only"
      )
    }
    self = .begin(settingAside: [])
  }

  private static func isUnfinished(_ run: SharedRun) -> BatchError {
    let name = run.runID.map { "run \($0.quotedForMessage)" } ?? "a run without --run-id"
    return BatchError(
      .unfinishedRun,
      "\(name) of this job is unfinished",
      remedy: run.runID.map { "finish it first: batch run --run-id \($0)" }
        ?? "finish it first: batch run without --run-id"
    )
  }

  /// The decision in a word, as in `status --json`.
  var name: String {
    switch self {
    case .begin: "begin"
    case .takePart: "resume"
    case .conclude: "acknowledge"
    case .concludeFirst: "acknowledgeAndBegin"
    case .repeatSummary: "nothing"
    }
  }

  /// The decision in words.
  var words: String {
    switch self {
    case .begin: "starts a new run"
    case .takePart: "takes part in the unfinished run"
    case .conclude:
      "changes no row: concludes the finished run"
    case .concludeFirst: "concludes the last run, then starts a new one"
    case .repeatSummary: "does nothing: the work of this run ID is done"
    }
  }
}

/// The options of a request to run a job.
struct BatchRunRequest: Sendable {
  var runID: String?
  var fresh = false
  var joinOnly = false
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
