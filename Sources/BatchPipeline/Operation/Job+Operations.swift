public import BatchIdentifiers
public import BatchJobs
public import BatchRuns
public import SystemPackage

/// Operations on a job and its recorded runs, besides running it.
extension Job {
  /// Finds out what a run would do, without writing anything.
  ///
  ///     let plan = try await job.plan()
  ///     print(plan.matches, plan.sql.apply, plan.warnings)
  ///
  /// - Parameters:
  ///   - options: Options that may differ from one run to the next.
  ///   - handlers: The handlers that a transform's `handler` may name; none of them is called.
  ///   - digests: Whether to select all rows for ``PlanReport/digest``, which a job with ``approval`` always
  ///     does.
  /// - Returns: The plan, which has the keys of `batch plan --json`.
  /// - Throws: `BatchError` with the place in the job file if the job is not valid or does not fit
  ///   its database.
  /// - Complexity: Counts the matching rows once, reads up to 10,000 of them, and tries up to six
  ///   chunks of 1,000, which are rolled back.
  public func plan(
    _ options: RunOptions = .init(),
    handlers: [String: TransformHandler] = [:],
    digesting digests: Bool = false
  ) async throws(BatchError) -> PlanReport {
    try options.check()
    var report = try await store.report(options, handlers)
    if digests || approval != nil { report.digest = try await store.digest(options, handlers) }
    let next = await nextStep(options, handlers: handlers)
    (report.next, report.nextWords) = (next.name, next.words)
    let conditions = ThrottleProbe(policy.throttle, files.store).look()
    if let words = RunThrottle(policy.throttle).words(at: conditions) {
      report.warnings.append(words)
    }
    return report
  }

  /// Decides what the next run would do, without writing anything.
  ///
  /// - Parameters:
  ///   - options: Options that may differ from one run to the next. If a parameter is missing, the
  ///     parameters are not compared with those of an unfinished run.
  ///   - handlers: The handlers that a transform's `handler` may name. If the job's handler is
  ///     missing, the job is not checked against its database.
  /// - Returns: The next step, even if it is the refusal of the run.
  public func nextStep(
    _ options: RunOptions = .init(),
    handlers: [String: TransformHandler] = [:]
  ) async -> NextStep {
    await records.nextStep(options, handlers)
  }

  /// Reads the state of the last run.
  ///
  /// - Parameters:
  ///   - options: The options of the next run.
  ///   - handlers: The handlers that a transform's `handler` may name; see
  ///     ``nextStep(_:handlers:)``.
  /// - Returns: The state of the last run, which has the keys of `batch status --json`.
  /// - Throws: `BatchError` if the job has no run or its record is damaged; of code `unknownRun` if
  ///   the options have the ID of other work.
  public func status(
    _ options: RunOptions = .init(),
    handlers: [String: TransformHandler] = [:]
  ) async throws(BatchError) -> RunStatus {
    try await records.status(options, handlers)
  }

  /// Reads the recorded runs.
  ///
  /// - Returns: The runs, newest first, with the keys of `batch history --json`.
  /// - Throws: `BatchError` if the last run cannot be read; other unreadable runs are omitted.
  public func history() async throws(BatchError) -> JobHistory { try await records.history() }

  /// Reads the record of one of the last runs.
  ///
  /// - Parameter name: The UUID of the run, or the beginning of it.
  /// - Returns: The recorded run.
  /// - Throws: `BatchError` of code `unknownRun` if no record matches, or if several do.
  public func run(named name: String) async throws(BatchError) -> RecordedRun {
    try await records.run(named: name)
  }

  /// Selects identifiers of a run by their outcome.
  ///
  /// - Parameters:
  ///   - outcome: The outcome to select.
  ///   - part: The part of the run to select from.
  ///   - run: The UUID of one of the last runs, or the beginning of it; nil for the last run.
  /// - Returns: The selection, which reads the identifiers on demand.
  /// - Throws: `BatchError` if there is no such run, or of code `outcomeNotRecorded` if the
  ///   outcomes were not recorded per row.
  public func identifiers(
    _ outcome: IdentifierSelection.Outcome,
    part: IdentifierSelection.Part = .all,
    ofRun run: String? = nil
  ) async throws(BatchError) -> IdentifierSelection {
    try await records.identifiers(outcome, part, ofRun: run)
  }

  /// Writes a run's report again from its record, replacing an earlier one.
  ///
  /// - Parameters:
  ///   - run: The UUID of the run, or the beginning of it; nil for the last run.
  ///   - path: The file, which must end in `.html` or `.json`.
  /// - Throws: `BatchError` of code `unknownRun`, or if the file is not a report or cannot be
  ///   written.
  public func writeReport(ofRun run: String? = nil, to path: FilePath) async throws(BatchError) {
    try await records.report(ofRun: run).write(
      to: Report(path: path),
      permissions: files.permissions
    )
  }

  /// Removes the remains of past runs that are no longer needed.
  ///
  /// - Parameter removesHistory: Whether to remove all records of earlier runs, rather than only
  ///   those beyond the job's limit.
  /// - Returns: The removed and the remaining items.
  /// - Throws: `BatchError` of code `alreadyRunning` if a run is alive, or an error of the
  ///   database.
  public func cleanUp(
    removingHistory removesHistory: Bool = false
  ) async throws(BatchError) -> JobCleanup {
    try await records.cleanUp(removingHistory: removesHistory)
  }

  /// Checks the job against its database, as `batch validate` does; returns its entity, and notes
  /// for the user.
  package func check(
    _ options: RunOptions,
    handlers: [String: TransformHandler]
  ) async throws(BatchError) -> (entity: String, notes: [String]) {
    try await store.check(options, handlers)
  }
}

extension RunStatus {
  /// Reads the state of a run without a job file: a run by objects, or an undo.
  ///
  /// - Parameter checkpoint: The checkpoint of the run.
  /// - Throws: `BatchError` of code `damagedFile` if the file is not a checkpoint, of code
  ///   `invalidJob` if it is that of a job with a job file.
  public init(ofRunAt checkpoint: FilePath) async throws(BatchError) {
    self = try await ProgramWork(ofRunAt: checkpoint).records.status(.init(), [:])
  }
}
