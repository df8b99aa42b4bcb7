package import BatchIdentifiers
package import BatchRuns
package import SystemPackage

extension Job.Export {
  /// The output of a run: `{runStartedAt}` and `{runID}` in its name stand for those of the run.
  package func file(of run: RunIdentity) -> FilePath {
    guard let name = file.lastComponent?.string else { return file }
    let stamp = RunHistory.stamp(run.startedAt, run.startedMicroseconds)
    let named = name.replacing("{runStartedAt}", with: stamp).replacing("{runID}", with: run.run)
    return named == name ? file : file.removingLastComponent().appending(named)
  }

  /// Records the file that a run will write; throws if it cannot be written.
  package func describe(
    in metadata: inout RunMetadata,
    after previous: Checkpoint?
  ) throws(BatchError) {
    if isInParts {
      let previous = previous?.metadata.job == metadata.job ? previous : nil
      try refuseOccupiedFolder(after: previous)
      // A file in it, or the folder itself.
      let isThere = FileSystem.status(of: file) != nil
      try ExportFile.checkFolder(of: isThere ? file.appending("part") : file)
      metadata.output = file.string
      var replaced = [folder().publishedRun].compactMap(\.self)
      if let previous, previous.progress.state.isFinished {
        replaced += [previous.metadata.run] + (previous.metadata.replacedRuns ?? [])
      }
      metadata.replacedRuns = Array(Set(replaced)).sorted()
      return
    }
    try ExportFile.checkName(
      file,
      overwrite: overwrite,
      made: previous?.progress.outputIdentity
    )
    let partial = ExportFile.partialPath(of: file, run: metadata.run)
    try ExportFile.checkFolder(of: partial)
    metadata.output = file.string
    metadata.partialOutput = partial.string
    // Only the job's own earlier output can have the name, unless the job says to overwrite.
    metadata.replacesOwnOutput = FileSystem.status(of: file) != nil
  }

  /// Refuses a folder with an export that the last run of the job, or one before it, did not make.
  package func refuseOccupiedFolder(after previous: Checkpoint?) throws(BatchError) {
    let own = previous.map { [$0.metadata.run] + ($0.metadata.replacedRuns ?? []) } ?? []
    try folder().refuse(overwriting: overwrite) { _, run in own.contains(run) }
  }

  /// The folder of an export in parts.
  package func folder(permissions: FilePermissions = []) -> ExportFolder {
    ExportFolder(path: file, permissions: permissions)
  }

  /// What the files of an export in parts have in common; nil for an export to one file.
  package func files(ofJob job: String, header: [UInt8]) -> ExportFiles.Settings? {
    guard isInParts else { return nil }
    return ExportFiles.Settings(
      format.form(ofJob: job),
      header: header,
      limit: maximumFile.map { Int($0) },
      isPartitioned: !partitions.isEmpty
    )
  }
}
