package import BatchRuns
package import BatchIdentifiers
import SystemPackage

/// The records of a job's runs, in files or tables, for operators to read and steer.
package protocol RunRecords: Sendable {
  var cause: any RunCause { get }

  func nextStep(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async -> NextStep

  /// The state of the last run.
  ///
  /// - Throws: `BatchError` if there is none, or if it cannot be read; of code `unknownRun` if the
  ///   options have the ID of other work.
  func status(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> RunStatus

  func history() async throws(BatchError) -> JobHistory

  /// A run, given by its UUID or the beginning of it.
  ///
  /// - Throws: `BatchError` of code `unknownRun` if no record matches, or if several do.
  func run(named name: String) async throws(BatchError) -> RecordedRun

  func identifiers(
    _ outcome: IdentifierSelection.Outcome,
    _ part: IdentifierSelection.Part,
    ofRun name: String?
  ) async throws(BatchError) -> IdentifierSelection

  /// Changes the requests to the processes that work on the last run.
  ///
  /// - Returns: All requests that are in force now.
  /// - Throws: `BatchError` of code `notRunning` if none does, `invalidJob` if a setting is unknown or has an invalid
  ///   value.
  func request(
    _ change: @escaping @Sendable (inout RunControl) -> Void
  ) async throws(BatchError) -> RunControl

  /// Approves the plan of the last run.
  ///
  /// - Parameter name: The digest of the plan, or at least its first 12 digits.
  /// - Returns: The plan, and all of its approvals.
  /// - Throws: `BatchError` of code `planChanged` if the run has another plan, `notRunning` if no run waits for approval.
  func approve(_ name: String) async throws(BatchError) -> (PlannedRun, [PlanApproval])

  /// The report of a run, given by its UUID or the beginning of it; nil for the last run.
  ///
  /// - Throws: `BatchError` of code `unknownRun` if no record matches, or if several do.
  func report(ofRun name: String?) async throws(BatchError) -> RunReport

  /// Removes the remains of past runs that are no longer needed.
  func cleanUp(removingHistory: Bool) async throws(BatchError) -> JobCleanup

  /// Whether a process is about to begin a run: it has locked the job, and may be selecting
  /// identifiers.
  func isBeginning() async -> Bool
}
