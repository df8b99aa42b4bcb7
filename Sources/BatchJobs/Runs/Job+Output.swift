package import BatchIdentifiers
package import BatchRuns
import SystemPackage

extension Job.Export {
  /// Records the file that a run will write; throws if it cannot be written.
  package func describe(
    in metadata: inout RunMetadata,
    after previous: Checkpoint?
  ) throws(BatchError) {
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
}
