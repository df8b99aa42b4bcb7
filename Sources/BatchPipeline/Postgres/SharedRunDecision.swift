#if PostgreSQL
import BatchEngine
import BatchIdentifiers
import BatchPostgres

/// What `batch run` does on PostgreSQL, by the runs of the job that the database knows.
///
/// A value that performs nothing.
enum SharedRunDecision {
  /// Selects identifiers and begins a run; those runs make way that are not finished.
  case begin(settingAside: [SharedRun])
  /// Takes part in a run.
  case takePart(SharedRun)
  /// Tells the end of a run that nobody may know of.
  case conclude(SharedRun)
  /// The same, and then decides once more: other work is asked for.
  case concludeFirst(SharedRun)
  /// Tells what came of the work that is asked for, which was done before.
  case repeatSummary(SharedRun)

  /// Decides.
  ///
  /// - Parameters:
  ///   - runs: The runs of the job, the newest last.
  ///   - options: What is asked for.
  ///   - job: The job's name.
  /// - Throws: `BatchError` of code `unfinishedRun` if another run is in the way, `notRunning` if none may be begun.
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
        "no run of job \"\(job)\" is unfinished, and --join-only begins none",
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

  /// The decision in a word, as `status --json` has it.
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
    case .begin: "selects anew and begins a run"
    case .takePart: "takes part in the unfinished run"
    case .conclude:
      "does nothing to rows: the run is finished, and only its end is told once more"
    case .concludeFirst: "tells the end of the last run once more, then begins a run"
    case .repeatSummary: "does nothing: the work of this run ID is done"
    }
  }
}

/// What somebody asks for who has a job run.
struct BatchRunRequest: Sendable {
  var runID: String?
  var fresh = false
  var joinOnly = false
}

extension SharedRun {
  /// What the host that began the run has said of it.
  ///
  /// - Throws: `BatchError` of code `damagedFile` if it cannot be read.
  func described() throws(BatchError) -> RunMetadata {
    try RunMetadata(ofSharedRun: self)
  }

  /// The error for a job that is no longer what the run began with.
  private func refusal(_ reason: String) -> BatchError {
    BatchError(
      .otherRun,
      reason,
      at: "run \(run)",
      remedy: "undo the change to take part in the run, or run with --fresh to set it aside"
    )
  }

  /// Refuses to take part with another job, other parameters, or a table that has changed since.
  func refuse(unless plan: PostgresPlan) throws(BatchError) {
    let then = JobFingerprint(text: fingerprint)
    let differences = plan.fingerprint.differences(from: then)
    if !differences.isEmpty {
      throw refusal(
        "the job has changed since the run began: \(differences.joined(separator: ", "))"
      )
    }
    let metadata = try described()
    // A database that was restored from a dump elsewhere has other numbers for the same tables.
    let place = "\(plan.database.derivedIdentity)/"
    if let table = metadata.table, table.hasPrefix(place), table != plan.tableIdentity {
      throw plan.table.isAnother.located(at: "run \(run)")
    }
    if let change = plan.change(since: metadata.schema) { throw refusal(change) }
  }
}
#endif
