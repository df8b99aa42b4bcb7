import BatchIdentifiers
import BatchJobs
import BatchRuns
import BatchSQLite

/// The facts about a run of a job that determine which differences it explains.
struct VerifiedRun {
  let job: Job
  let store: Store
  let description: Verification.Run
  /// What it made of the rows that it has done; nil if it writes nothing.
  let changes: ExpectedChanges?
  /// What triggers and foreign keys may have written beside it.
  let unchecked: [UncheckedPart]
  /// Whether the undo records have what a program gave, which cannot be computed again.
  let hasAnswers: Bool

  /// The chosen runs of some jobs, in the order in which they ran.
  static func all(
    of jobs: [Job],
    _ choices: Verification.Choices
  ) async throws(BatchError) -> [VerifiedRun] {
    var chosen: [(job: Job, checkpoint: Checkpoint)] = []
    if choices.runs.isEmpty {
      for job in jobs { chosen.append((job, try Checkpoint.ofRun(nil, of: job))) }
    }
    for name in choices.runs { chosen.append(try run(name, of: jobs)) }
    let names = choices.parameters.map { String($0.prefix { $0 != "=" }) }
    if let name = names.first(where: { name in !jobs.contains { $0.parameters[name] != nil } }) {
      throw BatchError(
        .invalidParameter,
        "no job declares the parameter \(name.quotedForMessage)",
        remedy: "name one of the job's"
      )
    }
    var runs: [VerifiedRun] = []
    for (job, checkpoint) in chosen {
      runs.append(try await VerifiedRun(checkpoint, of: job, choices.parameters))
    }
    if let other = runs.first(where: { $0.store.path != runs[0].store.path }) {
      throw BatchError(
        .otherStore,
        "the job \(other.job.name.quotedForMessage) is for another database",
        at: other.store.path,
        remedy: "verify jobs of one database together"
      )
    }
    return runs
  }

  private static func run(
    _ name: String,
    of jobs: [Job]
  ) throws(BatchError) -> (job: Job, checkpoint: Checkpoint) {
    var unknown: BatchError?
    for job in jobs {
      do throws(BatchError) {
        return (job, try Checkpoint.ofRun(name, of: job))
      } catch {
        guard error.isAboutMissingRun else { throw error }
        unknown = error
      }
    }
    throw unknown ?? .unknownRun(name, count: 0, at: "")
  }

  private init(
    _ checkpoint: Checkpoint,
    of job: Job,
    _ texts: [String]
  ) async throws(BatchError) {
    let parameters = try checkpoint.metadata.parameters(of: job, given: texts)
    try checkpoint.refuse(unless: job, parameters)
    if !job.action.selectsRows {
      throw .notForLoads("batch verify --against", at: job.place(of: JobPath("action")))
    }
    if let process = RunLock.holder(ofCheckpoint: job.checkpointPath) {
      throw BatchError(
        .alreadyRunning,
        "a run of this job is alive (process \(process)), and changes rows meanwhile",
        at: job.checkpointPath.string,
        remedy: "wait for its end"
      )
    }
    do throws(BatchError) {
      store = try await job.storeToRead()
    } catch {
      throw job.located(openingStore: error)
    }
    let identifier = checkpoint.list.header.storeIdentifier
    guard store.identity.admits(identifier, atPath: store.path) else {
      throw BatchError(
        .otherRun,
        "the checkpoint belongs to store \(identifier), the database is \(store.identity.uuid)",
        at: job.checkpointPath.string,
        remedy: "restore the run's database"
      )
    }
    self.job = job
    let outcomes = try await checkpoint.rowOutcomes(of: job)
    description = Verification.Run(
      job: job.name,
      run: checkpoint.metadata.run,
      outcomes: outcomes.done.outcomes
    )
    let answers = try await store.answers(of: checkpoint, job)
    hasAnswers = answers != nil
    let rows = try SelectedRows(outcomes, of: checkpoint.list, recorded: answers)
    let found = try await store.connection(label: "batch.verify").perform {
      [store] connection throws(BatchError) in
      try ExpectedChanges.changes(of: job, parameters, rows: rows, in: store, connection)
    }
    changes = found?.changes
    unchecked = found?.unchecked ?? []
  }
}

extension SelectedRows {
  fileprivate convenience init(
    _ outcomes: RowOutcomes,
    of list: PackedIdentifiers,
    recorded: PackedIdentifiers?
  ) throws(BatchError) {
    var others: [(outcome: RowOutcome, rows: PackedIdentifiers)] = []
    for outcome in RowOutcome.allCases where outcome != .succeeded {
      let positions = try outcomes.positions(outcome)
      others.append((outcome, try list.slice(positions.ranges).packed))
    }
    try self.init(list.slice(outcomes.all.ranges).packed, recorded: recorded, but: others)
  }
}

extension Store {
  /// The rows to which a transform gave new values, by its undo records; nil if it has none.
  fileprivate func answers(
    of checkpoint: Checkpoint,
    _ job: Job
  ) async throws(BatchError) -> PackedIdentifiers? {
    guard job.action.kind == .transform else { return nil }
    let all = try await undoableRuns(ofJob: job.name)
    guard let undo = all.first(where: { $0.run == checkpoint.metadata.run }) else { return nil }
    let header = checkpoint.list.header
    return try UndoLog<UndoRecord>(of: undo, in: self, reversed: false)
      .identifiers(identity, ofEntity: header.entityName, header.keyKind).packed
  }
}
