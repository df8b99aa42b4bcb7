package import BatchRuns

extension RunCause {
  /// The files of its runs.
  package var files: RunFiles {
    RunFiles(ofJob: name, checkpoint: checkpointPath, store: database.path)
  }
}
