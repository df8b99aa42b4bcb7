import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchSQLite
import SystemPackage

extension Checkpoint {
  /// Why an export's unfinished output differs from that in the checkpoint; nil if it does not.
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

  /// Records that nothing of an export is done, so that all rows are read again, including failed
  /// ones.
  func beginOutputAnew() throws(BatchError) {
    // Failures are cleared first: if the process is killed in between, the next one finds the
    // output lost again.
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
