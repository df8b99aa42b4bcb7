package import BatchEngine

extension Job {
  /// The files of its runs.
  package var files: RunFiles {
    RunFiles(ofJob: name, checkpoint: checkpointPath, store: database.path)
  }
}
