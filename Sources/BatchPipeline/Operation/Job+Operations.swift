public import BatchIdentifiers
public import BatchJobs
public import BatchRuns
public import SystemPackage

/// What can be done with a job besides running it; of runs, the ones on record.
extension Job {
  /// Finds out what a run would do, on either store; writes nothing.
  ///
  ///     let plan = try await job.plan()
  ///     print(plan.matches, plan.sql.apply, plan.warnings)
  ///
  /// - Parameters:
  ///   - options: What may differ from one run to the next.
  ///   - handlers: Handlers that the `handler` of a transform may name, none of which is called.
  /// - Returns: The plan, which has the keys of `batch plan --json`.
  /// - Throws: `BatchError` with the place in the job file if the job is not valid or does not fit its database.
  /// - Complexity: One count of the matching rows, reads of up to 10,000 of them, and up to six chunks of 1,000 that are
  ///   tried and rolled back.
  public func plan(
    _ options: RunOptions = .init(),
    handlers: [String: TransformHandler] = [:]
  ) async throws(BatchError) -> PlanReport {
    try options.check()
    var report = try await store.report(options, handlers)
    let next = await nextStep(options, handlers: handlers)
    (report.next, report.nextWords) = (next.name, next.words)
    return report
  }

  /// Decides what the next run would do; writes nothing.
  ///
  /// - Parameters:
  ///   - options: What may differ from one run to the next. If a parameter is missing, they are not compared
  ///     with those of an unfinished run.
  ///   - handlers: Handlers that the `handler` of a transform may name. Without the job's, whether the job fits
  ///     its database is not checked.
  /// - Returns: The step; a run that would be refused is a step, too.
  public func nextStep(
    _ options: RunOptions = .init(),
    handlers: [String: TransformHandler] = [:]
  ) async -> NextStep {
    await records.nextStep(options, handlers)
  }

  /// Reads how the last run stands.
  ///
  /// - Parameters:
  ///   - options: The options of the next run.
  ///   - handlers: Handlers that the `handler` of a transform may name; see ``nextStep(_:handlers:)``.
  /// - Returns: The state of the last run, which has the keys of `batch status --json`.
  /// - Throws: `BatchError` if the job has no run, or its record is damaged; of code `unknownRun` if the options have an
  ///   identifier of other work.
  public func status(
    _ options: RunOptions = .init(),
    handlers: [String: TransformHandler] = [:]
  ) async throws(BatchError) -> RunStatus {
    try await records.status(options, handlers)
  }

  /// Reads the runs on record.
  ///
  /// - Returns: The runs, newest first, with the keys of `batch history --json`.
  /// - Throws: `BatchError` if the last one cannot be read; other unreadable ones are left out.
  public func history() async throws(BatchError) -> JobHistory { try await records.history() }

  /// Reads the record of one of the last runs.
  ///
  /// - Parameter name: Its UUID, or the first characters of it.
  /// - Returns: The run.
  /// - Throws: `BatchError` of code `unknownRun` if no record matches, or several do.
  public func run(named name: String) async throws(BatchError) -> RecordedRun {
    try await records.run(named: name)
  }

  /// Reads which identifiers a run has done, or has not.
  ///
  /// - Parameters:
  ///   - outcome: Which of them.
  ///   - run: One of the last runs, by its UUID or the first characters of that; nil for the last.
  /// - Returns: The selection, which reads the identifiers when they are asked for.
  /// - Throws: `BatchError` if there is no such run, or of code `outcomeNotRecorded` if the
  ///   outcomes were not recorded per row.
  public func identifiers(
    _ outcome: IdentifierSelection.Outcome,
    ofRun run: String? = nil
  ) async throws(BatchError) -> IdentifierSelection {
    try await records.identifiers(outcome, ofRun: run)
  }

  /// Rewrites a run's report from its record, replacing an earlier one.
  ///
  /// - Parameters:
  ///   - run: Its UUID, or the first characters of it; nil for the last run.
  ///   - path: The file, which ends in `.html` or `.json`.
  /// - Throws: `BatchError` of code `unknownRun`, or if the file is no report or cannot be written.
  public func writeReport(ofRun run: String? = nil, to path: FilePath) async throws(BatchError) {
    try await RecordedRun.report(run, ofWork: self, to: path)
  }

  /// Removes what past runs left behind and nobody needs any more.
  ///
  /// - Parameter removesHistory: Whether to remove all records of earlier runs, rather than only those
  ///   beyond the job's limit.
  /// - Returns: What was removed.
  /// - Throws: `BatchError` of code `alreadyRunning` if a run is alive, or the database's errors.
  public func cleanUp(
    removingHistory removesHistory: Bool = false
  ) async throws(BatchError) -> JobCleanup {
    try await records.cleanUp(removingHistory: removesHistory)
  }

  /// Checks the job against its database, as `batch validate` does.
  ///
  /// - Returns: The entity that it concerns, and what whoever runs it should know.
  package func check(
    _ options: RunOptions,
    handlers: [String: TransformHandler]
  ) async throws(BatchError) -> (entity: String, notes: [String]) {
    try await store.check(options, handlers)
  }
}

extension RunStatus {
  /// Reads how a run stands that a program has begun without a job file: by objects, or as an undo.
  ///
  /// - Parameter checkpoint: The checkpoint of the run.
  /// - Throws: `BatchError` of code `damagedFile` if the file is none, `invalidJob` for that of a job with a job file.
  public init(ofRunAt checkpoint: FilePath) async throws(BatchError) {
    self = try await ProgramWork(ofRunAt: checkpoint).records.status(.init(), [:])
  }
}
