import BatchJobs
import BatchRuns

extension Job {
  /// The job for a clone of its database, without effects outside the folder.
  ///
  /// Settings that hold a run back or end it early are omitted, except for the limit of the
  /// write-ahead log: a rehearsal shows what a run does, not how it waits.
  func rehearsed(in folder: RehearsalFolder) -> Job {
    var job = self
    job.isRehearsal = true
    job.database.path = folder.database
    // No app has opened the clone, or will.
    job.database.coreData = .overwrite
    job.checkpoint.path = folder.path.appending("\(name).batch")
    job.throttle = Throttle(maximumWAL: policy.throttle.maximumWAL)
    job.limits = Limits()
    job.hooks = Hooks()
    job.canary = nil
    job.approval = nil
    job.report = nil
    if case .export(var export) = action {
      export.file = folder.output.appending(export.file.lastComponent?.string ?? "output")
      job.action = .export(export)
    }
    return job
  }
}
