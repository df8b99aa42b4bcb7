import BatchRuns
import BatchIdentifiers
import BatchJobs
import BatchSQLite
import SystemPackage

struct UndoWork: RunWork {
  let request: UndoRequest
  let program: ProgramWork

  init(_ request: UndoRequest) {
    self.request = request
    program = request.program
  }

  /// The next undo of a job's run, by the last one.
  init(after program: ProgramWork) {
    let name = String(program.name.dropLast(ProgramWork.jobName(undoing: "").count))
    let path = program.checkpointPath
    var policy = program.policy
    policy.checkpoint.path =
      path.removingLastComponent().appending("\(path.stem ?? name).batch")
    let cause = ProgramWork(
      .undo,
      name: name,
      entity: program.entity,
      database: program.database,
      policy: policy
    )
    self.init(UndoRequest(of: cause))
  }

  var cause: any RunCause { program }
  /// The name of the work whose run is undone.
  var name: String { request.cause.name }
  /// The archive of the job's deleted rows.
  var archive: String? { request.cause.archive }

  func record(
    of run: BatchRun,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) -> any RunRecord {
    if let record = try tableRecord(of: run, onEvent) { return record }
    return try fileRecord(of: run, onEvent)
  }

  func plan(of run: RunIdentity, stoppedBy stop: StopSwitch, in store: Store?)
    async throws(BatchError)
    -> any RunPlan
  {
    try await UndoPlan(self, in: store)
  }

  func hooks(after checkpoint: Checkpoint) throws(BatchError) -> RunHooks {
    try refuse(unlessFor: checkpoint)
    return try RunHooks(program, parameters: ParameterValues())
  }

  func foreseeablePlan(of run: RunIdentity) async throws(BatchError) -> (any RunPlan)? {
    try await UndoPlan(self, in: nil)
  }

  func refuse(unlessFor checkpoint: Checkpoint) throws(BatchError) {
    try request.refuse(unlessFor: checkpoint.metadata, at: checkpoint.path.string)
  }
}

struct UndoPlan: StoreRunPlan {
  let store: Store
  let hooks: RunHooks
  let work: UndoWork
  let undo: StoredUndo
  let log: Log
  /// The schema that the records of a table depend on; for a run by objects, each record has its
  /// own.
  let expected: ExpectedSchema?
  /// Whether the run was completely undone before.
  let wasUndone: Bool
  /// Whether the undone run could still be resumed.
  let isUnfinished: Bool

  enum Log {
    /// The records of a job's run: rows of one entity, identified by one key.
    case rows(UndoLog<UndoRecord>, of: Entity, by: EntityKey)
    /// The records of a run by objects.
    case objects(UndoLog<ChangeRecord>)

    var count: Int {
      switch self {
      case .rows(let log, _, _): log.count
      case .objects(let log): log.count
      }
    }
  }

  var cause: any RunCause { work.program }
  var spareWorkers: Int { 0 }

  init(_ work: UndoWork, in open: Store?) async throws(BatchError) {
    let program = work.program
    store =
      if let open { open } else {
        try await program.openStore()
      }
    try program.refuseCoreData(store)
    guard !store.isReadOnly else {
      throw BatchError(
        .readOnly,
        "the database is read-only",
        at: store.path,
        remedy: "make the file and its folder writable"
      )
    }
    try store.refuseIfLinked()
    undo = try await store.undo(of: work)
    try store.refuseOther(undo)
    self.work = work
    let undone = try await store.runs(ofJob: work.name).first { [undo] in $0.run == undo.run }
    // One whose rows are all done, but not its end, can be resumed too.
    isUnfinished =
      switch undone?.state {
      case .unfinished, .finished: !undo.isUndone
      default: false
      }
    wasUndone = CompletedUndo(of: undo.run, by: program) != nil
    log =
      undo.shape.kind == .objects
      ? .objects(try Self.objects(of: undo, in: store, work))
      : try await Self.rows(of: undo, in: store, work)
    expected =
      if case .rows(_, let entity, _) = log { undo.expectedSchema(of: entity.table) } else { nil }
    try await store.connection(label: "batch.plan").perform {
      [expected] connection throws(BatchError) in
      try expected?.verify(in: connection)
    }
    hooks = try RunHooks(program, parameters: ParameterValues())
  }

  private static func rows(
    of undo: StoredUndo,
    in store: Store,
    _ work: UndoWork
  ) async throws(BatchError) -> Log {
    let entity = try store.schema.entity(named: undo.entity)
    let key = try await store.key(of: entity, for: undo)
    if let header = work.request.identifiers?.header {
      // Rows of an entity of a Core Data model are rows of its table.
      let table = store.coreData?.entity(named: header.entityName)?.table
      guard header.entityName == entity.name || table == entity.table,
        store.identity.admits(header.storeIdentifier, atPath: store.path)
      else {
        throw BatchError(
          .foreignIdentifier,
          "the identifiers belong to entity \(header.entityName.quotedForMessage) of store"
            + " \(header.storeIdentifier)",
          remedy: "give identifiers of \(entity.name.quotedForMessage) in this database"
        )
      }
    }
    // A row may get a unique value that another row still has.
    let isOrdered = try await store.connection(label: "batch.plan").perform {
      connection throws(BatchError) in
      try entity.hasUniqueIndex(over: undo.shape.columns, in: connection)
    }
    let log = try UndoLog<UndoRecord>(
      of: undo,
      in: store,
      reversed: undo.shape.isDeletion || isOrdered,
      only: work.request.identifiers
    )
    return .rows(log, of: entity, by: key)
  }

  private static func objects(
    of undo: StoredUndo,
    in store: Store,
    _ work: UndoWork
  ) throws(BatchError) -> UndoLog<ChangeRecord> {
    guard work.request.identifiers == nil else {
      throw BatchError(
        .invalidJob,
        "the records of this run are of several tables, and it is undone as a whole",
        at: store.path,
        remedy: "leave --ids and --part out"
      )
    }
    return try UndoLog<ChangeRecord>(of: undo, in: store, reversed: false)
  }

  func describeOutput(
    in metadata: inout RunMetadata,
    after previous: Checkpoint?
  ) throws(BatchError) {}

  func select(
    _ identity: StoreIdentity,
    readers: Int,
    stoppedBy stop: StopSwitch
  ) async throws(BatchError) -> RunSelection {
    RunSelection(list: try identifiers(identity))
  }

  func describeWork(in metadata: inout RunMetadata, _ selection: RunSelection) {
    metadata.undone = undo.run
    metadata.undoableRows = undo.rows
    metadata.fingerprint = (try? work.request.fingerprint.text) ?? ""
  }

  func refuse(unlessFor checkpoint: Checkpoint) async throws(BatchError) {
    try work.refuse(unlessFor: checkpoint)
    guard checkpoint.metadata.undone == undo.run else {
      throw checkpoint.refusal(
        "the unfinished undo is that of run \(checkpoint.metadata.undone ?? "unknown"); a later run can be"
          + " undone as well: give --run \(checkpoint.metadata.undone ?? "") to resume the undo"
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
      throw checkpoint.refusal(
        "the checkpoint is of \(list.count.grouped) rows, not \(log.count.grouped)"
      )
    }
  }

  func makeLane() throws(BatchError) -> WriterLane? {
    guard undo.shape.kind == .objects else { return try work.program.makeLane(in: store) }
    var program = work.program
    // The effects of foreign keys are among the records, and would occur twice.
    program.database.foreignKeys = false
    return try program.makeLane(in: store, runningTriggers: false)
  }

  func start(run: String, atMost workers: Int, hasRows: Bool) throws(BatchError) {}

  func processor(
    for part: FilePart
  ) async throws(BatchError) -> (any ChunkProcessor, any RunLedger) {
    guard let lane = part.lane else { preconditionFailure("rows are changed without a lane") }
    part.onEvent(.message("undoing run \(undo.run), which began at \(undo.startedAt)"))
    if let unknownIdentifiers { part.onEvent(.message(unknownIdentifiers)) }
    if let loss { part.onEvent(.message(loss)) }
    if let expected { try await lane.expect(expected) }
    let processor: any ChunkProcessor
    switch log {
    case .objects(let log):
      processor = RestorationProcessor(
        ChangeUndo(log, overwriting: work.request.overwrites, again: wasUndone),
        store: store,
        lane: lane,
        onFailure: part.onFailure
      )
    case .rows(let log, let entity, _) where undo.shape.isDeletion:
      processor = RestorationProcessor(
        DeletionUndo(
          try log.inOrder(of: part.list),
          of: entity,
          overwriting: work.request.overwrites
        ),
        store: store,
        lane: lane,
        onFailure: part.onFailure
      )
    case .rows(let log, let entity, let key):
      processor = TransformProcessor(
        list: part.list,
        transform: try await transform(log.inOrder(of: part.list), of: entity, by: key),
        run: part.session.run,
        store: store,
        lane: lane,
        onFailure: part.onFailure,
        handlerTimeLimit: nil,
        inOrder: true
      )
    }
    return (processor, lane)
  }

  func identifiers(_ identity: StoreIdentity) throws(BatchError) -> PackedIdentifiers {
    switch log {
    case .rows(let log, let entity, let key):
      let kind: IdentifierList.KeyKind = key.isRowID ? .integer : .encoded
      return try log.identifiers(identity, ofEntity: entity.name, kind).packed
    case .objects(let log):
      // The keys are from several tables, and so of no single entity.
      return try log.identifiers(identity, ofEntity: Self.entity, .encoded).packed
    }
  }

  /// Stands for the rows of several tables: the name of the records' table.
  private static let entity = "_batch_undo"

  func transform(
    _ log: UndoLog<UndoRecord>,
    of entity: Entity,
    by key: EntityKey
  ) async throws(BatchError) -> RowTransform {
    let attributes = try undo.shape.columns.map { column throws(BatchError) in
      try entity.requireAttribute(named: column)
    }
    let handler = UpdateUndo(log, overwriting: work.request.overwrites)
    let context = store.connection(label: "batch.plan")
    return try await context.perform { [work, expected] connection throws(BatchError) in
      let transform = try RowTransform(
        entity: entity,
        key: key,
        reads: attributes,
        writes: attributes,
        handler: handler,
        predicate: nil,
        recheck: .off,
        parameters: [:],
        enforcesForeignKeys: work.program.database.foreignKeys,
        connection: connection
      ).abortingOnConflict().exactly()
      return expected.map(transform.expecting) ?? transform
    }
  }

  func takeMessages() -> [String] { [] }

  func stop() throws(BatchError) {}
}

extension Store {
  /// The records of the run to undo; throws `noUndo` if there are none.
  ///
  /// If the job has a checkpoint, the last run must be that of this job file: other files with the
  /// same job name have checkpoints of their own, and their runs are undone only by UUID.
  fileprivate func undo(of work: UndoWork) async throws(BatchError) -> StoredUndo {
    let name = work.name
    let undos = try await undoableRuns(ofJob: name)
    let runs = try await runs(ofJob: name)
    if !work.request.mayBeAlive, let alive = runs.first(where: { $0.process != nil }) {
      throw alive.isAlive
    }
    let undoable = undos.map { UndoableRun($0) }
    let unrecorded = runs.filter { run in
      run.done.outcomes.succeeded > 0 && !undos.contains { $0.run == run.run }
    }
    let chosen = try work.request.chosen(
      among: undoable,
      besides: unrecorded.map { ($0.run, $0.startedAt) },
      at: path
    ) { CompletedUndo(of: $0.run, by: work.program) }
    guard let undo = undos.first(where: { $0.run == chosen.run }) else {
      preconditionFailure("a run that is none of those to choose from")
    }
    // A job file without a run of its own may belong to a copy of the database, and one whose
    // folder was moved still has the run's checkpoint.
    let checkpoint = work.request.cause.checkpointPath
    if work.request.run == nil,
      let own = try? Checkpoint(reading: checkpoint), own.metadata.run != undo.run,
      let other = runs.first(where: { $0.run == undo.run })?.checkpoint,
      FilePath(other) != FileSystem.absolute(checkpoint)
    {
      throw BatchError(
        .noUndo,
        "the last run of a job \(name.quotedForMessage), \(undo.run) of \(undo.startedAt), was not run by this"
          + " job file: its checkpoint is \(other)",
        at: path,
        remedy: "name the run to undo with --run: \(undoable.list)"
      )
    }
    return undo
  }

  fileprivate func refuseOther(_ undo: StoredUndo) throws(BatchError) {
    guard let recorded = undo.store, recorded != identity.uuid else { return }
    throw BatchError(
      .noUndo,
      "run \(undo.run) has changed another database, store \(recorded), and its records were copied to"
        + " this one",
      at: path,
      remedy: "undo it in that one"
    )
  }

  /// The key that identified the rows of a run.
  ///
  /// - Throws: `BatchError` of code `noUndo` if the entity has changed so that its rows cannot be
  ///   restored.
  fileprivate func key(
    of entity: Entity,
    for undo: StoredUndo
  ) async throws(BatchError) -> EntityKey {
    let gone = undo.shape.columns.filter { entity.attribute(named: $0)?.isGenerated ?? true }
    guard gone.isEmpty else {
      throw BatchError(
        .noUndo,
        "\(entity.name.quotedForMessage) has changed since the run: it has no column"
          + " \(gone.joined(separator: ", ")) that could be set",
        remedy: "restore the table's columns, then undo"
      )
    }
    let recorded = zip(undo.shape.columns, undo.types ?? [])
    let converted = recorded.compactMap { column, type -> String? in
      guard let attribute = entity.attribute(named: column),
        attribute.keptClasses(declared: type) != attribute.keptClasses
      else { return nil }
      return "\(column) was \(type.shownType) and is \(attribute.type.shownType)"
    }
    guard converted.isEmpty else {
      throw BatchError(
        .noUndo,
        "\(entity.name.quotedForMessage) has changed since the run, and may convert restored values:"
          + " \(converted.joined(separator: ", "))",
        remedy: "restore the columns' types, then undo"
      )
    }
    if let key = entity.key, key.columns == undo.shape.key { return key }
    // The job has specified another key.
    let schema = schema
    let request = FetchRequest(entity: undo.entity, predicate: nil, key: undo.shape.key)
    return try await connection(label: "batch.plan").perform { connection throws(BatchError) in
      do throws(BatchError) {
        return try IdentifierQuery(request, schema: schema, connection: connection).key
      } catch {
        throw BatchError(
          .noUndo,
          "\(entity.name.quotedForMessage) has changed since the run, whose rows had the key"
            + " \(undo.shape.key.joined(separator: ", ")): \(error.message)",
          remedy: "restore the table's key, then undo"
        )
      }
    }
  }
}

extension String {
  fileprivate var shownType: String { isEmpty ? "of no type" : self }
}
