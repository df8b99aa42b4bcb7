package import BatchIdentifiers
package import SystemPackage

extension RunSession {
  /// Makes the output of a new run, or opens that of a resumed one.
  package func openOutput(
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

  /// The identifiers of the output's positions that failed before.
  ///
  /// The file may know of more: their chunks were not recorded as done, and are read again.
  package func failedOutput() throws(BatchError) -> [FailedIdentifier] {
    guard done.outcomes.failed > 0 else { return [] }
    return try checkpoint.failedIdentifiers().filter { done.contains($0.position) }
  }

  package var replacesOwnOutput: Bool { checkpoint.metadata.replacesOwnOutput }
}
