package import BatchIdentifiers
package import BatchRuns

/// Options that may differ from one run of a job to the next.
public struct RunOptions: Sendable {
  /// The values of the job's parameters: `["rate": 1.1, "country": "CZ"]`.
  public var parameters: [String: ParameterValue] = [:]
  /// The values as texts `name=value` from a command line.
  package var parameterTexts: [String]?
  /// The number of workers, each with its own background context; overrides the job's.
  public var workers: Int?
  /// The number of identifiers per chunk; overrides the job's.
  public var chunkSize: Int?
  /// Whether to set an unfinished checkpoint aside instead of resuming it.
  public var fresh = false
  /// Whether only to join an unfinished run and never begin one; on PostgreSQL.
  public var joinOnly = false
  /// The digest of the only plan to execute, or at least its first 12 digits; nil for any plan.
  ///
  /// ``PlanReport/digest`` has it. A run whose statements, parameters, rows, schema or settings differ
  /// is refused with code `planChanged`.
  public var plan: String?
  /// Whether a run that must be approved waits for that, instead of ending.
  public var waitsForApproval = false
  /// The ID of the work, of up to 200 bytes; nil for none.
  ///
  /// Work with an ID is done at most once, no matter who repeats the call or how late: once the
  /// work is done, a call only returns the summary of its run. The ID is kept in the checkpoint and
  /// in the store, so losing one of them does not repeat the work.
  public var runID: String?
  /// Programs to notify of a run by objects; a job has its own.
  public var hooks = Job.Hooks()
  /// Where to report the end of a run by objects; a job has its own.
  public var report: Job.Report?
  package var commandLine: [String]?
  /// How often to report progress.
  public var progressInterval = Duration.milliseconds(200)

  /// Makes the default options.
  public init() {}
}

extension RunOptions {
  package var request: RunRequest { RunRequest(runID: runID, fresh: fresh, joinOnly: joinOnly) }

  /// In bytes.
  private static let runIDLimit = 200

  package func check() throws(BatchError) {
    var policy = RunPolicy()
    policy.workers = workers
    if let chunkSize { policy.chunk = .init(size: chunkSize) }
    try policy.validate()
    guard let runID else { return }
    guard !runID.isEmpty, runID.utf8.count <= Self.runIDLimit,
      runID.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7f })
    else {
      throw BatchError(
        .invalidJob,
        "the run ID is empty, too long or holds control characters",
        remedy: "choose 1 to \(Self.runIDLimit) bytes of text"
      )
    }
  }

  /// The policy of a run, including what the options change of it.
  package func policy(of cause: any RunCause) -> RunPolicy {
    var policy = cause.policy
    if let chunkSize { policy.chunk = .init(size: chunkSize) }
    return policy
  }

  package func parameters(of job: Job, for run: RunIdentity) throws(BatchError) -> ParameterValues {
    if let parameterTexts {
      return try ParameterValues(
        arguments: parameterTexts,
        declarations: job.parameters,
        runStartedAt: run.startedAt,
        runID: run.run
      )
    }
    return try ParameterValues(
      parameters,
      declarations: job.parameters,
      runStartedAt: run.startedAt,
      runID: run.run
    )
  }
}

extension ParameterValues {
  /// The recorded text of a secret value.
  package static let secret = "(secret)"

  package var recorded: [String: String] {
    entries.mapValues { entry in entry.isSecret ? Self.secret : entry.value.words }
  }
}
