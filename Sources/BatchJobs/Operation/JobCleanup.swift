import BatchRuns
import BatchIdentifiers
import BatchPlatform
import SystemPackage

/// The remains of a job's past runs that are no longer needed.
///
/// They are checkpoints that were set aside, the unfinished exports of their runs, and the ledgers
/// of these and of finished runs in the store. The checkpoint of the job stays, and so does the
/// ledger of a run that can be resumed or has failed identifiers to retry.
public struct JobCleanup: Sendable {
  /// The files that were removed.
  public package(set) var files: [String] = []
  /// The number of runs removed from the ledger.
  public package(set) var runCount = 0
  /// The runs that can be undone; their changes are kept as long as the job says.
  public package(set) var undoable: [UndoableRun] = []
  /// The size of the remaining records of earlier runs, in bytes.
  public package(set) var historyBytes: Int64 = 0

  package init() {}
}
