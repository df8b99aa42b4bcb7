import BatchRuns
import SystemPackage

extension RunCause {
  /// The work whose runs undo those of this one.
  package var undoing: ProgramWork {
    let path = checkpointPath
    var work = ProgramWork(
      .undo,
      name: ProgramWork.jobName(undoing: name),
      entity: entity,
      database: database,
      policy: policy
    )
    if actionName == "update", policy.chunk == RunPolicy.Chunk() {
      // Rows are restored as computed values, whose chunks have more overhead than those of an
      // expression: at this size an undo takes as long as the update.
      work.policy.chunk.size *= 4
    }
    // Rows that somebody has changed since do not count as failures that the job allows.
    work.policy.skip = RunPolicy.Skip(limit: RunPolicy.skipLimit)
    // No other job's checkpoint has such a name unless it asks for it.
    work.policy.checkpoint.path = path.removingLastComponent().appending(
      "\(path.stem ?? name).undo"
    )
    work.baseDirectory = baseDirectory
    work.origin = origin
    return work
  }
}

extension ProgramWork {
  /// The name under which runs are recorded that undo those of a job; no job file can have it.
  package static func jobName(undoing job: String) -> String { "\(job)/undo" }
}
