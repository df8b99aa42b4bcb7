import BatchEngine
public import BatchIdentifiers
public import SystemPackage

extension Job {
  /// The job of a run at a path; see the other initializer.
  ///
  /// - Throws: As the other initializer.
  @_disfavoredOverload
  public init(ofRunAt path: String) throws(BatchError) {
    try self.init(ofRunAt: FilePath(path))
  }

  /// The job of a job file, or of a checkpoint left by a run by objects: enough to inspect and
  /// control the run, but not to execute it.
  ///
  /// - Throws: `BatchError` as ``init(contentsOf:)`` does; `damagedFile` for a file that is
  ///   neither, and `invalidJob` for the checkpoint of a job with a job file.
  public init(ofRunAt path: FilePath) throws(BatchError) {
    guard !Job.isJobFile(path), FileSystem.status(of: path)?.type == .regular else {
      self = try Job(contentsOf: path)
      return
    }
    let checkpoint = try BatchEngine.Checkpoint(reading: path)
    let isUndo = checkpoint.metadata.undone != nil
    guard let database = checkpoint.metadata.database, isUndo || checkpoint.isOfContexts else {
      throw BatchError(
        .invalidJob,
        "this is the checkpoint of job \"\(checkpoint.metadata.job)\", which has a job file",
        at: path.string,
        remedy:
          "name the job file instead of the checkpoint, or - to give the job on standard input"
      )
    }
    self.init(
      name: checkpoint.metadata.job,
      database: .init(path: FilePath(database)),
      source: .init(entity: checkpoint.list.header.entityName, everything: true),
      action: isUndo ? .undo : .contexts,
      checkpoint: .init(path: path)
    )
  }
}

extension Checkpoint {
  /// Whether it belongs to a run by objects.
  fileprivate var isOfContexts: Bool {
    var job = Job(
      name: metadata.job,
      database: .init(path: ""),
      source: .init(entity: list.header.entityName, everything: true),
      action: .contexts
    )
    return [nil, Job.Undo()].contains { undo in
      job.undo = undo
      let own = JobFingerprint(job: job, parameters: ParameterValues(), store: "")
      return own.differences(from: JobFingerprint(text: metadata.fingerprint)).isEmpty
    }
  }
}
