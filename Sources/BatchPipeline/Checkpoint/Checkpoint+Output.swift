import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchSQLite
import SystemPackage

extension Checkpoint {
  /// Why an export's unfinished output differs from that in the checkpoint; nil if it does not.
  func lossOfOutput() throws(BatchError) -> String? {
    if let current = progress.parts?.current, let folder = metadata.output {
      return try ExportFolder(path: FilePath(folder), permissions: [])
        .loss(of: closedParts(), current)
    }
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

  /// Whether the output of a finished export is not the one that the run wrote.
  var hasOtherOutput: Bool {
    get throws(BatchError) {
      if progress.parts != nil { return try lossOfOutput() != nil }
      guard let output = metadata.output.map({ FilePath($0) }) else { return false }
      return FileSystem.status(of: output)?.identity != progress.outputIdentity
    }
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
    if progress.parts != nil { progress.parts = ExportPartsRecord(current: nil, closed: []) }
    try record(progress)
  }
}
