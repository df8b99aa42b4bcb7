package import BatchEngine

extension Job {
  /// Where its runs keep their files.
  package var files: RunFiles {
    RunFiles(ofJob: name, checkpoint: checkpointPath, store: database.path)
  }
}
