import BatchRuns
package import BatchIdentifiers
package import SystemPackage

extension ProgramWork {
  /// Restores work from the checkpoint of its run, enough to inspect, control and undo the run, but
  /// not to execute it.
  ///
  /// Throws if the file is not a checkpoint, or if it is that of a job with a job file.
  package init(ofRunAt path: FilePath) throws(BatchError) {
    let checkpoint = try Checkpoint(reading: path)
    let metadata = checkpoint.metadata
    guard let database = metadata.database, let kind = checkpoint.kind else {
      throw BatchError(
        .invalidJob,
        "this is the checkpoint of job \"\(metadata.job)\", which has a job file",
        at: path.string,
        remedy:
          "name the job file instead of the checkpoint, or - to give the job on standard input"
      )
    }
    var policy = RunPolicy()
    policy.checkpoint.path = path
    self.init(
      kind,
      name: metadata.job,
      entity: checkpoint.list.header.entityName,
      database: .init(path: FilePath(database)),
      policy: policy
    )
  }
}

extension Checkpoint {
  /// The kind of work without a job file; nil for a job.
  fileprivate var kind: ProgramWork.Kind? {
    if metadata.undone != nil { return .undo }
    var work = ProgramWork(
      .objects,
      name: metadata.job,
      entity: list.header.entityName,
      database: .init(path: ""),
      policy: RunPolicy()
    )
    work.fetch = JobFingerprint(text: metadata.fingerprint).fetch
    for undo in [nil, Job.Undo()] {
      work.undo = undo
      if JobFingerprint(of: work).text == metadata.fingerprint { return .objects }
    }
    return nil
  }
}
