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
      entity: checkpoint.entity,
      database: .init(path: FilePath(database)),
      policy: policy
    )
  }
}

extension Checkpoint {
  /// The list of a load has records, whatever they become.
  fileprivate var entity: String {
    JobFingerprint(text: metadata.fingerprint).entity ?? list.header.entityName
  }

  /// The kind of work without a job file; nil for a job.
  fileprivate var kind: ProgramWork.Kind? {
    if metadata.undone != nil { return .undo }
    let fingerprint = JobFingerprint(text: metadata.fingerprint)
    for kind in [ProgramWork.Kind.objects, .load] {
      var work = ProgramWork(
        kind,
        name: metadata.job,
        entity: entity,
        database: .init(path: ""),
        policy: RunPolicy()
      )
      work.fetch = fingerprint.fetch
      for undo in [nil, Job.Undo()] {
        work.undo = undo
        if JobFingerprint(of: work).text == metadata.fingerprint { return kind }
      }
    }
    return nil
  }
}
