package import BatchIdentifiers
package import SystemPackage

extension RunSession {
  /// Creates the output of a new run, or opens that of a resumed one.
  package func openOutput(
    header: [UInt8],
    overwriting overwrites: Bool,
    permissions: FilePermissions
  ) throws(BatchError) -> ExportWriter {
    ExportWriter(
      try outputFile(header: header, permissions: permissions),
      done: done,
      failed: try failedOutput(),
      invalidTexts: progress.invalidTexts ?? 0,
      overwrites: overwrites || checkpoint.metadata.replacesOwnOutput
    )
  }

  private func outputFile(
    header: [UInt8],
    permissions: FilePermissions
  ) throws(BatchError) -> sending ExportFile {
    guard let path = checkpoint.metadata.output.map({ FilePath($0) }),
      let partial = checkpoint.metadata.partialOutput.map({ FilePath($0) })
    else {
      throw BatchError(
        .damagedFile,
        "the checkpoint of an export names no output",
        at: checkpoint.path.string
      )
    }
    guard let count = progress.outputBytes else {
      return try ExportFile(
        creating: path,
        partial: partial,
        header: header,
        permissions: permissions
      )
    }
    return try ExportFile(
      resuming: path,
      partial: partial,
      count: count,
      identity: progress.outputIdentity
    )
  }

  /// The output's positions that failed before.
  ///
  /// The file may have more: their chunks were not recorded as done, and are read again.
  private func failedOutput() throws(BatchError) -> [FailedIdentifier] {
    guard done.outcomes.failed > 0 else { return [] }
    return try checkpoint.failedIdentifiers().filter { done.contains($0.position) }
  }
}
