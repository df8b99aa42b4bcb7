#if PostgreSQL
package import BatchJobs
package import BatchRuns
import BatchIdentifiers

/// What a run in tables does: the action of a job, or the undo of one of its runs.
package enum TableWork: Sendable {
  /// A job, with the handlers that the `handler` of a transform may name.
  case job(Job, [String: TransformHandler])
  case undo(UndoRequest, of: Job)

  /// The job, or the one whose run is undone.
  package var job: Job {
    switch self {
    case .job(let job, _), .undo(_, of: let job): job
    }
  }

  package var cause: any RunCause {
    switch self {
    case .job(let job, _): job
    case .undo(let request, _): request.program
    }
  }

  /// The name of the job whose runs may not go on during an undo; nil for an undo.
  var undoableJob: String? {
    if case .job(let job, _) = self, job.action.writes { job.name } else { nil }
  }

  /// Resolves the work for a run; `metadata` is nil for a new one.
  func plan(
    of run: RunIdentity,
    _ metadata: RunMetadata?,
    _ options: RunOptions,
    in session: PostgresSession
  ) throws(BatchError) -> PostgresPlan {
    switch self {
    case .job(let job, let handlers):
      let interrupter = session.interrupter
      return try PostgresPlan(
        job,
        parameters: options.parameters(of: job, for: run),
        handlers: handlers,
        creatingArchive: metadata == nil,
        reading: metadata?.loaded.map { .recorded($0) }
          ?? .whole { interrupter.isInterrupted },
        expecting: run.schema,
        recordingIn: run.run,
        of: run,
        in: session
      )
    case .undo(let request, let job):
      if let metadata { try request.refuse(unlessFor: metadata, at: "run \(run.run)") }
      return try PostgresPlan(
        undoing: request,
        of: job,
        metadata?.undone,
        expecting: run.schema,
        in: session
      )
    }
  }

  /// The programs to notify of the end of a run, if they are those of this work.
  ///
  /// - Throws: `BatchError` of code `otherRun` if the run is that of other work.
  func hooks(
    after metadata: RunMetadata,
    _ options: RunOptions
  ) throws(BatchError) -> RunHooks {
    let place = "run \(metadata.run)"
    switch self {
    case .job(let job, _):
      let parameters = try options.parameters(of: job, for: RunIdentity(metadata))
      try metadata.refuse(unless: job, parameters, at: place)
      return try RunHooks(job, parameters: parameters)
    case .undo(let request, _):
      try request.refuse(unlessFor: metadata, at: place)
      return try RunHooks(cause, parameters: ParameterValues())
    }
  }
}
#endif
