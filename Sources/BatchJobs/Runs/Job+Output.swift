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
      try folder().refuse(unlessForJob: metadata.job, overwriting: overwrite)
      metadata.output = file.string
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

  /// The folder of an export in parts.
  package func folder(permissions: FilePermissions = []) -> ExportFolder {
    ExportFolder(path: file, permissions: permissions)
  }

  /// What the files of an export in parts have in common; nil for an export to one file.
  package func files(ofJob job: String, header: [UInt8]) -> ExportFiles.Settings? {
    guard isInParts else { return nil }
    var isWhole = false
    if case .parquet = format { isWhole = true }
    return ExportFiles.Settings(
      format.form(ofJob: job),
      header: header,
      isHeaderRepeated: isWhole,
      limit: maximumFile.map { Int($0) }
    )
  }
}
