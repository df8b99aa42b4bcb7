import BatchEngine
import BatchIdentifiers
import BatchStore
import SystemPackage

extension Checkpoint {
  /// What has become of an export's unfinished output, if it is not what the checkpoint says.
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

  /// Records that nothing of an export is done: its rows are read again, those that failed as well.
  func beginOutputAnew() throws(BatchError) {
    // The failed ones first: a process that is killed in between finds the output lost again.
    try record([])
    var progress = progress
    progress.done = DoneRanges()
    progress.passedOver = PassedOverRecord(replaces: true)
    progress.outputBytes = nil
    progress.outputIdentity = nil
    try record(progress)
  }
}
