package import BatchRuns

extension RunCause {
  package var files: RunFiles {
    RunFiles(ofJob: name, checkpoint: checkpointPath, store: database.path)
  }
}
