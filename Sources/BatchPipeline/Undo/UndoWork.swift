import BatchRuns
import BatchIdentifiers
import BatchJobs
import BatchSQLite
import SystemPackage

struct UndoWork: RunWork {
  let program: ProgramWork
  /// The name of the work whose run is undone.
  let name: String
  let checkpoint: FilePath
  let run: String?
  let identifiers: IdentifierList?
  let overwrites: Bool
  /// Whether a run that was undone is undone again.
  let isFresh: Bool
  /// The archive of the job's deleted rows.
  let archive: String?
  /// Whether the undone run changed objects, and so has no job file.
  let isByObjects: Bool

  init(
    undoing cause: any RunCause,
    run: String?,
    only identifiers: IdentifierList?,
    overwriting overwrites: Bool,
    fresh isFresh: Bool = false
  ) {
    program = cause.undoing
    name = cause.name
    checkpoint = cause.checkpointPath
    self.run = run
    self.identifiers = identifiers
    self.overwrites = overwrites
    self.isFresh = isFresh
    archive = cause.archive
    isByObjects = cause.actionName == ProgramWork.Kind.objects.rawValue
  }

  /// The next undo of a job's run, by the last one.
  init(after program: ProgramWork) {
    self.program = program
    name = String(program.name.dropLast(ProgramWork.jobName(undoing: "").count))
    let path = program.checkpointPath
    checkpoint = path.removingLastComponent().appending("\(path.stem ?? name).batch")
    (run, identifiers, overwrites, isFresh) = (nil, nil, false, false)
    (archive, isByObjects) = (nil, false)
  }

  var cause: any RunCause { program }

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
    guard checkpoint.metadata.job == program.name else {
      throw checkpoint.refusal("the checkpoint is of job \(checkpoint.metadata.job)")
    }
    guard let undone = checkpoint.metadata.undone else {
      throw checkpoint.refusal("the checkpoint does not say which run is undone")
    }
    if let run, !undone.uppercased().hasPrefix(run.uppercased()) {
      throw checkpoint.refusal("the unfinished undo is that of run \(undone): give --run \(undone)")
    }
    guard try fingerprint.text == checkpoint.metadata.fingerprint else {
      throw checkpoint.refusal("the unfinished undo was begun with other --ids")
    }
  }

  /// Identifies the undone rows, together with the run.
  var fingerprint: JobFingerprint {
    get throws(BatchError) {
      JobFingerprint(of: program, identifiersHash: try identifiers?.packed.hashOfKeys)
    }
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
    isUnfinished = if case .unfinished? = undone?.state { !undo.isUndone } else { false }
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
    if let header = work.identifiers?.header {
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
      only: work.identifiers
    )
    return .rows(log, of: entity, by: key)
  }

  private static func objects(
    of undo: StoredUndo,
    in store: Store,
    _ work: UndoWork
  ) throws(BatchError) -> UndoLog<ChangeRecord> {
    guard work.identifiers == nil else {
      throw BatchError(
        .invalidJob,
        "a run by objects changes rows of several tables, and is undone as a whole",
        at: store.path,
        remedy: "leave --ids out"
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
    metadata.fingerprint = (try? work.fingerprint.text) ?? ""
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
        ChangeUndo(log, overwriting: work.overwrites, again: wasUndone),
        store: store,
        lane: lane,
        onFailure: part.onFailure
      )
    case .rows(let log, let entity, _) where undo.shape.isDeletion:
      processor = RestorationProcessor(
        DeletionUndo(
          try log.inOrder(of: part.list),
          of: entity,
          overwriting: work.overwrites
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
    let handler = UpdateUndo(log, overwriting: work.overwrites)
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
  /// The records of a run of a job, or of the last run; throws `noUndo` if there are none.
  ///
  /// If the job has a checkpoint, the last run must be that of this job file: other files with the
  /// same job name have checkpoints of their own, and their runs are undone only by UUID.
  fileprivate func undo(of work: UndoWork) async throws(BatchError) -> StoredUndo {
    let (name, checkpoint) = (work.name, work.checkpoint)
    let undos = try await undoableRuns(ofJob: name)
    let runs = try await runs(ofJob: name)
    if let alive = runs.first(where: { $0.process != nil }) { throw alive.isAlive }
    if let run = work.run {
      let found = undos.filter { $0.run.hasPrefix(run.uppercased()) }
      if let undo = found.first, found.count == 1 { return undo }
      throw BatchError(
        .noUndo,
        "there are no records to undo run \(run.quotedForMessage)",
        at: path,
        remedy: undos.isEmpty ? nil : "these can be: \(undos.list)"
      )
    }
    guard let last = undos.first(where: { $0.rows > 0 }) else {
      throw BatchError(
        .noUndo,
        "there is no run of the job that can be undone",
        at: path,
        remedy: !undos.isEmpty
          ? "the runs that have kept records have changed no value: there is nothing to undo"
          : work.isByObjects
            ? "pass undo: .init() to the BatchRun before it runs"
            : "give the job \"undo\": true before it runs"
      )
    }
    if work.identifiers == nil, !work.overwrites, !work.isFresh,
      let undo = CompletedUndo(of: last.run, by: work.program), !undo.isPartial
    {
      let others = undos.filter { $0.run != last.run && $0.rows > 0 }
      throw BatchError(
        .noUndo,
        "the last run of the job, \(last.run) of \(last.startedAt), was undone by run \(undo.run)",
        at: path,
        remedy: others.isEmpty
          ? "nothing is left to undo" : "to undo an earlier one, use --run: \(others.list)"
      )
    }
    let later = runs.last { run in
      run.done.outcomes.succeeded > 0 && run.startedAt > last.startedAt
        && !undos.contains { $0.run == run.run }
    }
    if let later {
      throw BatchError(
        .noUndo,
        "the last run of the job, \(later.run) of \(later.startedAt), has no undo records",
        at: path,
        remedy: "to undo an earlier one, use --run: \(undos.list)"
      )
    }
    // A job file without a run of its own may belong to a copy of the database, and one whose
    // folder was moved still has the run's checkpoint.
    if let own = try? Checkpoint(reading: checkpoint), own.metadata.run != last.run,
      let other = runs.first(where: { $0.run == last.run })?.checkpoint,
      FilePath(other) != FileSystem.absolute(checkpoint)
    {
      throw BatchError(
        .noUndo,
        "the last run of a job \(name.quotedForMessage), \(last.run) of \(last.startedAt), was not run by this"
          + " job file: its checkpoint is \(other)",
        at: path,
        remedy: "name the run to undo with --run: \(undos.list)"
      )
    }
    return last
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

extension [StoredUndo] {
  fileprivate var list: String {
    prefix(5).map { "\($0.run) of \($0.startedAt), \($0.rows.grouped) rows" }.joined(
      separator: "; "
    )
  }
}

extension String {
  fileprivate var shownType: String { isEmpty ? "of no type" : self }
}

extension PackedIdentifiers {
  fileprivate var hashOfKeys: String {
    get throws(BatchError) {
      var hash: UInt64 = 0
      for start in stride(from: 0, to: count, by: 65_536) {
        var bytes: [UInt8] = []
        bytes.appendInteger(hash)
        let range = start..<Swift.min(start + 65_536, count)
        switch header.keyKind {
        case .integer: for key in try integers(in: range) { bytes.appendInteger(key) }
        case .encoded: for key in try encodedKeys(in: range) { bytes += key.bytes + [0] }
        }
        hash = XXHash64.hash(bytes)
      }
      return String(hash, radix: 16)
    }
  }
}
