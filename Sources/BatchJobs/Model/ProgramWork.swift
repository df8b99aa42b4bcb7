package import BatchRuns
package import BatchIdentifiers
package import SystemPackage

/// Work without a job file: a closure that changes objects, a load of records, or the undo of a run.
package struct ProgramWork: RunCause {
  package enum Kind: String, Sendable {
    case objects = "contexts"
    case load
    case undo
  }

  package let kind: Kind
  package let name: String
  package var entity: String
  package var database: Job.DatabaseOptions
  package var policy: RunPolicy
  package var undo: Job.Undo?
  /// The fetch that selects, as a text to compare; nil if it is no fetch.
  package var fetch: String?
  package var hooks = Job.Hooks()
  package var report: Job.Report?
  package var baseDirectory: FilePath = ""
  /// For an undo, the file of the job.
  package var origin: JobOrigin?

  package init(
    _ kind: Kind,
    name: String,
    entity: String,
    database: Job.DatabaseOptions,
    policy: RunPolicy
  ) {
    self.kind = kind
    self.name = name
    self.entity = entity
    self.database = database
    self.policy = policy
  }

  package var description: String? { nil }
  package var actionName: String { kind.rawValue }
  package var writes: Bool { true }
  package var condition: String? { nil }
  package var recheck: Recheck { .row }
  package var archive: String? { nil }
  package var approval: Job.Approval? { nil }
  package var afterwards: Job.Afterwards? { nil }
  package var sharedServer: Job.DatabaseOptions.Server? { nil }
  package var parameters: [String: ParameterDeclaration] { [:] }
  package var isRehearsal: Bool { false }
  package var isInOrder: Bool { kind == .load }
  /// The run of a closure is recorded only if its policy specifies a checkpoint.
  package var keepsRecord: Bool { kind == .undo || policy.checkpoint.path != nil }

  /// The author of work by objects writes Swift, not a job file, and an undo has its own command.
  package func words(of error: BatchError) -> BatchError {
    switch kind {
    case .objects, .load: error
    case .undo: error.inWordsOfUndos
    }
  }

  package func validate() throws(BatchError) {
    var problems = kind == .undo ? [] : Job.problems(ofName: name)
    if kind == .load, policy.canary != nil || policy.skip.ratio < 1 {
      problems.append(
        .init(
          policy.canary == nil ? JobPath("skip", "ratio") : JobPath("canary"),
          "the number of records is unknown until the sequence ends",
          remedy: "leave it out; skip.limit and limits.runtime end a run early"
        )
      )
    }
    problems += tuningProblems() + collidingFileProblems(reading: nil, writing: nil)
    if let error = BatchError.invalidJob(problems, file: nil) { throw error }
  }
}
