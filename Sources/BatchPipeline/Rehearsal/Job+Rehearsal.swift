import BatchJobs
import BatchPlatform
import BatchRuns
import SystemPackage

extension Job {
  /// The job for a clone of its database, without effects outside the folder.
  ///
  /// Settings that hold a run back or end it early are omitted, except for the limit of the
  /// write-ahead log: a rehearsal shows what a run does, not how it waits.
  func rehearsed(in folder: RehearsalFolder) -> Job {
    var job = rehearsed(writingTo: folder)
    job.database.path = folder.database
    // No app has opened the clone, or will.
    job.database.coreData = .overwrite
    job.throttle.maximumWAL = policy.throttle.maximumWAL
    return job
  }

  /// The job for its server, or another, where each chunk is rolled back; an export is
  /// written to the folder.
  func rehearsed(onServer folder: RehearsalFolder?) -> Job { rehearsed(writingTo: folder) }

  private func rehearsed(writingTo folder: RehearsalFolder?) -> Job {
    var job = self
    job.isRehearsal = true
    // Without a folder, there is no checkpoint: the name only keeps others' requests away.
    let nowhere = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    let place = folder?.path ?? FilePath(nowhere.path)
    job.checkpoint.path = place.appending("\(name).batch")
    job.throttle = Throttle()
    job.limits = Limits()
    job.hooks = Hooks()
    job.canary = nil
    job.approval = nil
    job.report = nil
    if case .export(var export) = action, let folder {
      export.file = folder.output.appending(export.file.lastComponent?.string ?? "output")
      job.action = .export(export)
    }
    return job
  }
}
