import BatchPipeline
import BatchRuns
import BatchIdentifiers
import BatchJobs
import BatchSQLite
import SystemPackage

struct ObjectWork: RunWork {
  let program: ProgramWork
  let selection: ContextSelection
  let container: ModelContainer
  let missingRows: MissingRows
  let timeLimit: Duration?
  let fresh: Bool
  let body: ChunkBody

  var cause: any RunCause { program }

  func plan(of run: RunIdentity, stoppedBy stop: StopSwitch, in store: Store?)
    async throws(BatchError)
    -> any RunPlan
  {
    let plan = try await ObjectPlan(self, for: run)
    if program.keepsRecord, plan.store.isWritable {
      try await plan.store.refuseDuringUndo(ofJob: program.name, fresh: fresh)
    }
    return plan
  }

  func hooks(after checkpoint: Checkpoint) throws(BatchError) -> RunHooks {
    try refuse(unlessFor: checkpoint)
    return try RunHooks(program, parameters: ParameterValues())
  }

  func foreseeablePlan(of run: RunIdentity) async throws(BatchError) -> (any RunPlan)? {
    try await ObjectPlan(self, for: run)
  }

  func refuse(unlessFor checkpoint: Checkpoint) throws(BatchError) {
    var program = program
    if selection.entity == nil { program.entity = checkpoint.list.header.entityName }
    // Without identifiers, a run is resumed whatever has selected them.
    if case .list(nil) = selection {
      program.fetch = JobFingerprint(text: checkpoint.metadata.fingerprint).fetch
    }
    try checkpoint.metadata.refuse(unless: program, at: checkpoint.path.string)
  }
}

struct ObjectPlan: StoreRunPlan {
  let store: Store
  let hooks: RunHooks
  private let run: ObjectWork
  private let place: Int
  private let query: IdentifierQuery?
  private let expected: ExpectedSchema
  /// The schema of the tables that may be recorded; nil without undo.
  private let recordable: ExpectedSchema?

  var cause: any RunCause { run.program }
  var spareWorkers: Int { 0 }

  init(_ run: ObjectWork, for identity: RunIdentity) async throws(BatchError) {
    let place = try run.selection.store(of: run.container)
    self.place = place
    store = run.container.stores[place]
    try store.refuseIfLinked()
    self.run = run
    hooks = try RunHooks(run.program, parameters: ParameterValues())
    (expected, query, recordable) = try await store.connection(label: "batch.plan").perform {
      connection throws(BatchError) in
      try connection.transaction(.deferred) { () throws(BatchError) in
        try identity.expected?.verify(in: connection)
        var query: IdentifierQuery?
        if identity.expected == nil, case .query(let selection) = run.selection {
          query = try selection.get().query.expectingSchema(in: connection)
        }
        let expected =
          if let recorded = identity.expected { recorded } else {
            try run.container.expectedSchema(
              ofStore: place,
              and: run.selection.entity,
              in: connection
            )
          }
        let recordable =
          run.program.undo == nil ? nil : try ExpectedSchema(ofRecordedTablesIn: connection)
        return (expected, query, recordable)
      }
    }
    if let report = run.program.report { try report.check() }
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
    switch run.selection {
    case .list(let list?): return try .given(list.packed)
    case .records:
      let most = IdentifierList.maximumCount
      return RunSelection(list: .records(most, inStore: identity.uuid))
    case .list(nil):
      throw BatchError(
        .invalidJob,
        "there is no unfinished run to resume, and no identifiers were given",
        at: run.program.checkpointPath.string,
        remedy: "give a list, a fetch, or a closure that selects"
      )
    case .query(let query):
      let query = if let expecting = self.query { expecting } else { try query.get().query }
      return RunSelection(list: try await fetch(query, identity, readers: readers, stoppedBy: stop))
    case .closure(let select):
      let list: IdentifierList
      do {
        list = run.container.named(try await select())
      } catch {
        throw error as? BatchError
          ?? BatchError(.handlerFailed, "the selection threw \(error)", underlying: error)
      }
      guard list.header.storeIdentifier == store.identity.uuid else {
        throw BatchError(
          .foreignIdentifier,
          "the identifiers do not belong to the container's first store",
          at: list.header.storeIdentifier,
          remedy: "give the list itself, or a fetch of an entity of that store"
        )
      }
      return try .given(list.packed)
    }
  }

  func describeWork(in metadata: inout RunMetadata, _ selection: RunSelection) {
    var program = run.program
    if run.selection.entity == nil { program.entity = selection.list.header.entityName }
    metadata.fingerprint = JobFingerprint(of: program).text
    metadata.schema = expected.recorded
    if case .records = run.selection { metadata.isOpenEnded = true }
  }

  func undo(of run: RunIdentity) throws(BatchError) -> StoredUndo? {
    guard let undo = self.run.program.undo else { return nil }
    return StoredUndo(
      run: run.run,
      job: self.run.program.name,
      startedAt: run.startedAt,
      keptUntil: undo.keep.flatMap { run.time(after: $0) },
      entity: self.run.selection.entity ?? "",
      shape: .objects,
      schema: recordable?.recorded
    )
  }

  func refuse(unlessFor checkpoint: Checkpoint) async throws(BatchError) {
    if ledger == .store { try await store.refuse(undone: checkpoint) }
    try run.refuse(unlessFor: checkpoint)
    let list = checkpoint.list
    guard store.identity.admits(list.header.storeIdentifier, atPath: store.path) else {
      throw checkpoint.refusal(
        "the checkpoint belongs to store \(list.header.storeIdentifier), the container has"
          + " \(store.identity.uuid)"
      )
    }
    if case .list(let given?) = run.selection, try !list.hasSameKeys(as: given.packed.distinct()) {
      throw checkpoint.refusal("the run has other identifiers than those given")
    }
  }

  /// Returns nil for a read-only store, where nothing is recorded either.
  func makeLane() throws(BatchError) -> WriterLane? {
    guard store.isWritable || ledger == .store else { return nil }
    if store.coreData != nil {
      throw BatchError(
        .readOnly,
        "this is a Core Data store, in which runs cannot be recorded",
        at: store.path,
        remedy: "leave the checkpoint's path out, or work on a copy"
      )
    }
    var configuration = WriterConfiguration()
    configuration.enforcesForeignKeys = true
    configuration.courtesyTarget = run.program.policy.chunk.target
    // A run that cannot be resumed may change nothing, and then leaves the journal mode unchanged.
    configuration.usesWriteAheadLog = ledger == .store
    configuration.limitCheckpoints(to: run.program.policy.throttle.maximumWAL)
    return try store.makeWriterLane(configuration)
  }

  func start(run: String, atMost workers: Int, hasRows: Bool) throws(BatchError) {}

  func processor(
    for part: FilePart
  ) async throws(BatchError) -> (any ChunkProcessor, any RunLedger) {
    try await part.lane?.expect(expected)
    if case .records(let source) = run.selection { return try processor(of: source, for: part) }
    let work = ContextWork(
      run.container,
      store: place,
      missingRows: run.missingRows,
      timeLimit: run.timeLimit,
      expecting: expected,
      body: run.body
    )
    let entity = part.list.header.entityName
    let table = store.schema.entities.first { $0.name == entity }?.table
    // Whether the closure deletes rows is unknown before it runs.
    for key in try await store.unindexedForeignKeys() where key.destination == table {
      part.onEvent(.message("\(key)"))
    }
    let processor = ContextProcessor(
      list: part.list,
      work: work,
      store: store,
      lane: part.lane,
      isRecorded: ledger == .store,
      onFailure: part.onFailure,
      // A run that is resumed without its selection knows only the list.
      inOrder: run.selection.isOrdered || !part.list.isSorted,
      recordingFor: run.program.undo.map { _ in part.session.run }
    )
    return (processor, part.lane ?? UnrecordedLedger())
  }

  private func processor(
    of source: RecordSource,
    for part: FilePart
  ) throws(BatchError) -> (any ChunkProcessor, any RunLedger) {
    let entity = try run.container.writableEntity(named: source.mapping.entityName)
    guard let lane = part.lane, entity.entity.kind == .table else {
      throw BatchError(.readOnly, "only rows of tables can be written", at: entity.entity.name)
    }
    // A retry has only the records that have failed.
    let list = part.list
    let wanted =
      list.count == IdentifierList.maximumCount ? nil : try list.integers(in: 0..<list.count)
    let processor = RecordProcessor(
      source: source,
      entity: entity,
      container: run.container,
      wanted: wanted?.map { Int($0) - 1 },
      readBefore: part.session.progress.read,
      lane: lane,
      onFailure: part.onFailure,
      recordedRun: run.program.undo.map { _ in part.session.run }
    )
    return (processor, lane)
  }

  func takeMessages() -> [String] { [] }

  func stop() throws(BatchError) {}
}
