import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchSQLite
import SystemPackage

extension Checkpoint {
  /// What is wrong with an export's unfinished output, if it differs from the checkpoint's.
  func lossOfOutput() -> String? {
    guard let count = progress.outputBytes, let path = metadata.output.map({ FilePath($0) }),
      let partial = metadata.partialOutput.map({ FilePath($0) })
    else { return nil }
    return ExportFile.loss(
      of: path,
      partial: partial,
      count: count,
      identity: progress.outputIdentity
    )
  }

  /// Records that nothing of an export is done: its rows are read again, including failed ones.
  func beginOutputAnew() throws(BatchError) {
    // Failed ones first: if the process is killed in between, the next finds the output lost again.
    try record([])
    var progress = progress
    progress.done = DoneRanges()
    progress.passedOver = PassedOverRecord(replaces: true)
    progress.outputBytes = nil
    progress.invalidTexts = nil
    progress.outputIdentity = nil
    try record(progress)
  }
}
