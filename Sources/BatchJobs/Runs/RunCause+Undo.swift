import BatchRuns
import SystemPackage

extension RunCause {
  package var undoing: ProgramWork {
    let path = checkpointPath
    var work = ProgramWork(
      .undo,
      name: ProgramWork.jobName(undoing: name),
      entity: entity,
      database: database,
      policy: policy
    )
    if actionName == Job.Action.Kind.update.rawValue, policy.chunk == RunPolicy.Chunk(),
      sharedServer == nil
    {
      // Rows are restored as computed values, whose chunks have more overhead than those of an
      // expression: at this size, an undo takes as long as the update.
      work.policy.chunk.size *= 4
    }
    // Rows that others have changed since do not count as failures that the job allows.
    work.policy.skip = RunPolicy.Skip(limit: RunPolicy.skipLimit)
    work.policy.canary = nil
    // No other job's checkpoint has this name unless the job specifies it.
    work.policy.checkpoint.path = path.removingLastComponent().appending(
      "\(path.stem ?? name).undo"
    )
    work.baseDirectory = baseDirectory
    work.origin = origin
    return work
  }
}

extension ProgramWork {
  /// The name under which undo runs of a job are recorded; no job file can have it.
  package static func jobName(undoing job: String) -> String { "\(job)/undo" }
}
