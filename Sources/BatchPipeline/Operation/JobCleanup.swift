import BatchRuns
public import BatchIdentifiers
import BatchPlatform
import BatchSQLite
import SystemPackage

/// What a job's past runs left behind and nobody needs any more.
///
/// These are checkpoints that were set aside, with the unfinished exports of their runs, and the
/// ledgers in the store of those runs and of finished ones. The job's checkpoint stays, and so does
/// the ledger of a run that can be resumed or has failed identifiers to retry.
public struct JobCleanup: Sendable {
  /// The removed files.
  public internal(set) var files: [String] = []
  /// The number of runs removed from the ledger.
  public internal(set) var runCount = 0
  /// The runs that can be undone, whose records are kept as long as the job says.
  public internal(set) var undoable: [UndoableRun] = []
  /// The size of the remaining records of earlier runs, in bytes.
  public internal(set) var historyBytes: Int64 = 0

  init() {}

  /// Removes what a job's past runs left behind.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - removesHistory: Whether to remove all records of earlier runs, rather than only those
  ///     beyond the job's limit.
  /// - Throws: `BatchError` of code `alreadyRunning` if a run is alive, or the database's errors.
  public init(of job: Job, removingHistory removesHistory: Bool = false) async throws(BatchError) {
    self = try await job.records.cleanUp(removingHistory: removesHistory)
  }
}
