import BatchEngine
import BatchIdentifiers
import BatchStore
import SystemPackage

extension Job {
  /// Refuses files of the job for which there is no folder.
  func refuseMissingFolders() throws(BatchError) {
    // Those of a rehearsal are of its own.
    guard !isRehearsal else { return }
    if case .export(let export) = action {
      try refuse(
        withoutFolder: export.file,
        place(of: export.isInParts ? .exportFolder : .exportFile)
      )
    }
    if sharedServer == nil { try refuseMissingFolderOfCheckpoint() }
  }

  /// Refuses a checkpoint that the job file names in a folder which is not there.
  func refuseMissingFolderOfCheckpoint() throws(BatchError) {
    guard origin != nil, keepsRecord else { return }
    try refuse(withoutFolder: checkpointPath, place(of: .checkpoint))
  }

  private func refuse(withoutFolder file: FilePath, _ place: String) throws(BatchError) {
    let folder = file.removingLastComponent()
    guard !folder.isEmpty, FileSystem.status(of: folder) == nil else { return }
    var shown = folder
    if !baseDirectory.isEmpty { _ = shown.removePrefix(baseDirectory) }
    throw BatchError(
      .fileAccess,
      "there is no folder \(shown.string.quotedForMessage)",
      at: place,
      remedy: "make it"
    )
  }
}

extension Job {
  /// Refuses an export whose name is taken by a file that the job's last run did not make, as a run that
  /// begins does.
  package func refuseOccupiedOutput() throws(BatchError) {
    guard case .export(let export) = action, !export.isInParts,
      let file = try? ExportFile.resolve(export.file)
    else {
      return
    }
    let previous = try? BatchEngine.Checkpoint(ofJob: self)
    // What is unfinished continues with its own file.
    if let previous, !previous.progress.state.isFinished { return }
    do throws(BatchError) {
      try ExportFile.checkName(
        file,
        overwrite: export.overwrite,
        made: previous?.progress.outputIdentity
      )
    } catch {
      throw error.inWordsOfJobs.located(at: place(of: .exportFile))
    }
  }
}
