import BatchRuns
package import BatchIdentifiers
import SystemPackage

extension Job {
  package func refuseMissingFolders() throws(BatchError) {
    // A rehearsal has its own files.
    guard !isRehearsal else { return }
    if case .export(let export) = action {
      try refuse(
        withoutFolder: export.file,
        place(of: export.path)
      )
    }
    if sharedServer == nil { try refuseMissingFolderOfCheckpoint() }
  }
}

extension RunCause {
  package func refuseMissingFolderOfCheckpoint() throws(BatchError) {
    guard origin != nil, keepsRecord else { return }
    try refuse(withoutFolder: checkpointPath, place(of: .checkpoint))
  }

  fileprivate func refuse(withoutFolder file: FilePath, _ place: String) throws(BatchError) {
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
  /// The identity of the run that a command would begin, or of the unfinished increment that it would resume, as
  /// the checkpoint tells it.
  package func nextRun(_ options: RunOptions) -> RunIdentity {
    guard source.isIncremental, let last = try? BatchRuns.Checkpoint(of: self) else {
      return RunIdentity()
    }
    if !last.progress.state.isFinished, !options.fresh { return RunIdentity(last.metadata) }
    return RunIdentity(after: LastIncrement(last, startingOver: options.fresh))
  }

  /// Refuses an export, like a new run, if its file exists and the job's last run did not write it.
  package func refuseOccupiedOutput() throws(BatchError) {
    guard case .export(let export) = action, sharedServer == nil,
      export.file(of: RunIdentity()) == export.file
    else { return }
    let previous = try? BatchRuns.Checkpoint(of: self)
    // An unfinished run continues with its own file.
    if let previous, !previous.progress.state.isFinished { return }
    do throws(BatchError) {
      if export.isInParts {
        return try export.refuseOccupiedFolder(
          after: previous?.metadata.job == name ? previous : nil
        )
      }
      guard let file = try? ExportFile.resolve(export.file) else { return }
      try ExportFile.checkName(
        file,
        overwrite: export.overwrite,
        made: previous?.progress.outputIdentity
      )
    } catch {
      throw error.inWordsOfJobs.located(
        at: place(of: export.path)
      )
    }
  }
}
