package import BatchRuns
package import BatchIdentifiers
import SystemPackage

/// The records of a job's runs, as operators read and steer them, wherever they are.
package protocol RunRecords: Sendable {
  /// The work whose runs they are.
  var cause: any RunCause { get }

  /// What the job's next run would do.
  func nextStep(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async -> NextStep

  /// How the last run stands.
  ///
  /// - Throws: `BatchError` if there is none, or it cannot be read; of code `unknownRun` if the options have an
  ///   identifier of other work.
  func status(
    _ options: RunOptions,
    _ handlers: [String: TransformHandler]
  ) async throws(BatchError) -> RunStatus

  /// The runs on record, newest first.
  func history() async throws(BatchError) -> JobHistory

  /// One of them, by its UUID or the first characters of that.
  ///
  /// - Throws: `BatchError` of code `unknownRun` if no record matches, or several do.
  func run(named name: String) async throws(BatchError) -> RecordedRun

  /// Identifiers of the last run, or of a named one.
  func identifiers(
    _ outcome: IdentifierSelection.Outcome,
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

  /// Removes what past runs left behind and nobody needs any more.
  func cleanUp(removingHistory: Bool) async throws(BatchError) -> JobCleanup

  /// Whether a process is about to begin a run: it has the job locked, and may be selecting identifiers.
  func isBeginning() async -> Bool
}
