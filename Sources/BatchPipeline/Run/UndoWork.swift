import BatchEngine
public import BatchIdentifiers
import BatchStore
import SystemPackage

extension BatchRun {
  /// Undoes a run of a job, or resumes that.
  ///
  /// It is a run as any other, with a checkpoint of its own beside the job's. Rows get back what the run
  /// has replaced or deleted, the last chunk first. A row that somebody has changed since fails, with both
  /// values in its error, and so does one that was inserted anew; what was undone before is left as it is.
  /// What triggers, cascades and inserted rows have changed in other tables is not undone.
  ///
  /// - Parameters:
  ///   - job: The job, which has said ``Job/undo-swift.property``.
  ///   - run: The UUID of the run; nil for the last one that can be undone.
  ///   - identifiers: The rows that are wanted; nil for all.
  ///   - overwrites: Whether rows that somebody has changed since are undone too.
  ///   - options: What may differ from one run to the next.
  public convenience init(
    undoing job: Job,
    run: String? = nil,
    only identifiers: IdentifierList? = nil,
    overwriting overwrites: Bool = false,
    options: Options = Options()
  ) {
    let work = UndoWork(
      job: job.undoing,
      name: job.name,
      run: run,
      identifiers: identifiers,
      overwrites: overwrites
    )
    self.init(work.job, options: options, work: work)
  }
}

extension Job {
  /// The job whose runs undo those of this one.
  package var undoing: Job {
    var job = self
    // No job file can have such a name.
    job.name = "\(name)/undo"
    job.action = .undo
    job.source = Source(entity: source.entity, everything: true)
    job.parameters = [:]
    job.undo = nil
    job.hooks = Hooks()
    job.report = nil
    if job.skip.limit == 0 { job.skip = Skip(limit: RunPolicy.skipLimit) }
    let path = checkpointPath
    let folder = path.removingLastComponent()
    job.checkpoint.path = folder.appending("\(path.stem ?? name).undo.batch")
    return job
  }
}

/// The work of a run that undoes another one.
private struct UndoWork: RunWork {
  let job: Job
  /// The name of the job whose run is undone.
  let name: String
  let run: String?
  let identifiers: IdentifierList?
  let overwrites: Bool

  func plan(of run: RunIdentity, in store: Store?) async throws(BatchError) -> any RunPlan {
    try await UndoPlan(self, in: store)
  }

  func hooks(after checkpoint: Checkpoint) throws(BatchError) -> RunHooks {
    try refuse(unlessFor: checkpoint)
    return try RunHooks(job, parameters: ParameterValues())
  }

  func foreseeablePlan(of run: RunIdentity) async throws(BatchError) -> (any RunPlan)? {
    try await UndoPlan(self, in: nil)
  }

  func refuse(unlessFor checkpoint: Checkpoint) throws(BatchError) {
    guard checkpoint.metadata.job == job.name else {
      throw checkpoint.refusal("the checkpoint is of job \(checkpoint.metadata.job)")
    }
    let known = JobFingerprint(text: checkpoint.metadata.fingerprint)
    if let run, run != checkpoint.metadata.undone {
      throw checkpoint.refusal(
        "the checkpoint is of undoing run \(checkpoint.metadata.undone ?? known.text)"
      )
    }
  }
}

/// A run to be undone, with its records.
private struct UndoPlan: RunPlan {
  let store: Store
  let hooks: RunHooks
  private let work: UndoWork
  private let log: UndoLog
  private let entity: Entity

  var job: Job { work.job }
  var spareWorkers: Int { 0 }

  init(_ work: UndoWork, in open: Store?) async throws(BatchError) {
    let job = work.job
    store =
      if let open { open } else {
        try await Store(
          keepingOpen: job.database.path.string,
          isReadOnly: job.database.readOnly,
          busyTimeout: job.database.busyTimeout
        )
      }
    guard !store.isReadOnly else {
      throw BatchError(
        .readOnly,
        "the database is read-only",
        at: store.path,
        remedy: "make the file and its folder writable"
      )
    }
    try store.refuseIfLinked()
    let runs = try await store.undoableRuns(ofJob: work.name)
    guard let undo = work.run == nil ? runs.first : runs.first(where: { $0.run == work.run }) else {
      throw BatchError(
        .noUndo,
        work.run.map { "there is no record by which run \($0) could be undone" }
          ?? "there is no run of the job that can be undone",
        at: store.path,
        remedy: runs.isEmpty
          ? "give the job \"undo\": true before it runs"
          : "these can be: \(runs.prefix(5).map(\.run).joined(separator: ", "))"
      )
    }
    let past = try await store.runs(ofJob: work.name)
    if let alive = past.first(where: { $0.process != nil }) { throw alive.isAlive }
    let entity = try store.schema.entity(named: undo.entity)
    try undo.refuse(unlessOf: entity)
    self.work = work
    self.entity = entity
    log = try UndoLog(of: undo, in: store, only: work.identifiers)
    hooks = try RunHooks(job, parameters: ParameterValues())
  }

  func describeOutput(
    in metadata: inout RunMetadata,
    after previous: Checkpoint?
  ) throws(BatchError) {}

  func select(
    for run: BatchRun,
    _ identity: StoreIdentity
  ) async throws(BatchError) -> RunSelection {
    RunSelection(list: try log.identifiers(identity, entity).packed)
  }

  func describeWork(in metadata: inout RunMetadata, _ selection: RunSelection) {
    metadata.undone = log.undo.run
    metadata.fingerprint = JobFingerprint(job: job, parameters: ParameterValues(), store: "").text
    metadata.schema = entity.fingerprint
  }

  func refuse(unlessFor checkpoint: Checkpoint) async throws(BatchError) {
    try work.refuse(unlessFor: checkpoint)
    guard checkpoint.metadata.undone == log.undo.run else {
      throw checkpoint.refusal(
        "the checkpoint is of undoing run \(checkpoint.metadata.undone ?? "unknown")"
      )
    }
    let list = checkpoint.list
    guard store.identity.admits(list.header.storeIdentifier, atPath: store.path) else {
      throw checkpoint.refusal(
        "the checkpoint belongs to store \(list.header.storeIdentifier), the database is"
          + " \(store.identity.uuid)"
      )
    }
    guard list.count == log.count else {
      throw checkpoint.refusal("the checkpoint is of \(list.count) rows, and not of \(log.count)")
    }
  }

  func makeLane() throws(BatchError) -> WriterLane? {
    try job.makeLane(in: store)
  }

  func start(run: String, atMost workers: Int, hasRows: Bool) throws(BatchError) {}

  func carryOut(_ execution: RunExecution) async throws(BatchError) -> RunSummary {
    guard let lane = execution.lane else { preconditionFailure("rows are changed without a lane") }
    if log.undo.shape.isDeletion {
      return try await execution.loop(
        DeletionUndoProcessor(
          DeletionUndo(log, of: entity, overwriting: work.overwrites),
          lane: lane,
          ledger: ledger,
          onFailure: execution.onFailure
        )
      )
    }
    let attributes = try log.undo.shape.columns.map { column throws(BatchError) in
      try entity.requireAttribute(named: column)
    }
    let handler = UndoHandler(log, overwriting: work.overwrites)
    let context = store.connection(label: "batch.plan")
    let transform = try await context.perform { [entity, job] connection throws(BatchError) in
      try RowTransform(
        entity: entity,
        key: entity.requireKey(),
        reads: attributes,
        writes: attributes,
        handler: handler,
        predicate: nil,
        recheck: .off,
        parameters: [:],
        enforcesForeignKeys: job.database.foreignKeys,
        connection: connection
      )
    }
    return try await execution.loop(
      TransformProcessor(
        list: execution.list,
        transform: transform,
        run: execution.session.run,
        lane: lane,
        ledger: ledger,
        onFailure: execution.onFailure,
        patience: nil
      )
    )
  }

  func takeMessages() -> [String] { [] }

  func stop() throws(BatchError) {}
}

extension StoredUndo {
  /// Refuses an entity that has changed so that its rows cannot be given back what they had.
  fileprivate func refuse(unlessOf entity: Entity) throws(BatchError) {
    let key = try entity.requireKey().columns
    let gone = shape.columns.filter { entity.attribute(named: $0)?.isGenerated ?? true }
    if key == shape.key, gone.isEmpty { return }
    throw BatchError(
      .noUndo,
      "\"\(entity.name)\" has changed since the run: "
        + (gone.isEmpty
          ? "its key was \(shape.key.joined(separator: ", "))"
          : "it has no column \(gone.joined(separator: ", ")) that could be set"),
      remedy: "give the table its columns back, and undo then"
    )
  }
}

extension BatchError.Code {
  /// There is nothing by which a run could be undone.
  public static let noUndo = Self(rawValue: "noUndo")
}
