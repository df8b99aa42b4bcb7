import BatchEngine

extension Job {
  /// The job on a clone of its database: the same work, with nothing to be seen outside of the folder.
  ///
  /// What holds a run back or ends it early is left out, but for the bound of the write-ahead log: what a
  /// run does is to be seen, and not how it waits.
  func rehearsed(in folder: RehearsalFolder) -> Job {
    var job = self
    job.isRehearsal = true
    job.database.path = folder.database
    // No app has opened the clone, or will.
    job.database.coreData = .overwrite
    job.checkpoint.path = folder.path.appending("\(name).batch")
    job.throttle = Throttle(maximumWAL: throttle.maximumWAL)
    job.limits = Limits()
    job.hooks = Hooks()
    job.report = nil
    if case .export(var export) = action {
      export.file = folder.output.appending(export.file.lastComponent?.string ?? "output")
      job.action = .export(export)
    }
    return job
  }
}
