import BatchRuns
import BatchIdentifiers
import BatchPlatform
import SystemPackage

/// What a job's past runs left behind and nobody needs any more.
///
/// These are checkpoints that were set aside, with the unfinished exports of their runs, and the
/// ledgers in the store of those runs and of finished ones. The job's checkpoint stays, and so does
/// the ledger of a run that can be resumed or has failed identifiers to retry.
public struct JobCleanup: Sendable {
  /// The removed files.
  public package(set) var files: [String] = []
  /// The number of runs removed from the ledger.
  public package(set) var runCount = 0
  /// The runs that can be undone, whose records are kept as long as the job says.
  public package(set) var undoable: [UndoableRun] = []
  /// The size of the remaining records of earlier runs, in bytes.
  public package(set) var historyBytes: Int64 = 0

  package init() {}
}
