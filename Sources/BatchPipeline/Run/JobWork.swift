import BatchRuns
import BatchIdentifiers
import BatchJobs
import BatchSQLite
import SystemPackage

struct JobWork: RunWork {
  let job: Job
  let options: BatchRun.Options
  let handlers: [String: TransformHandler]

  var cause: any RunCause { job }

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
    let parameters = try options.parameters(of: job, for: run)
    if let plan = try await job.serverPlan(parameters, of: run, stoppedBy: stop) { return plan }
    if case .load(let load) = job.action {
      return try await loadPlan(load, parameters, of: run, stoppedBy: stop, in: store)
    }
    let plan: JobPlan
    do throws(BatchError) {
      plan = try await JobPlan(
        job,
        parameters: parameters,
        handlers: handlers,
        of: run,
        store: store,
        expecting: run.expected,
        stoppedBy: stop
      )
    } catch {
      throw await job.refusal(error)
    }
    if job.action.writes {
      try await plan.store.refuseDuringUndo(ofJob: job.name, fresh: options.fresh)
    }
    return plan
  }

  private func loadPlan(
    _ load: Job.Load,
    _ parameters: ParameterValues,
    of run: RunIdentity,
    stoppedBy stop: StopSwitch?,
    in store: Store?
  ) async throws(BatchError) -> LoadPlan {
    let isStopped = Lock(false)
    let extent: LoadedFiles.Extent =
      if let files = run.loaded { .recorded(files) } else if stop == nil { .names } else {
        .whole { isStopped.withLock(\.self) }
      }
    let plan = { () async throws(BatchError) in
      try await LoadPlan(
        job,
        load,
        parameters: parameters,
        store: store,
        reading: extent,
        expecting: run.expected
      )
    }
    guard let stop else { return try await plan() }
    let stopsScan: @Sendable () -> Void = { isStopped.withLock { $0 = true } }
    let resolved = try await stop.interruptible(at: load.files.string, by: stopsScan, plan)
    try await resolved.store.refuseDuringUndo(ofJob: job.name, fresh: options.fresh)
    return resolved
  }

  func hooks(after checkpoint: Checkpoint) throws(BatchError) -> RunHooks {
    let parameters = try options.parameters(of: job, for: RunIdentity(checkpoint.metadata))
    try checkpoint.refuse(unless: job, parameters)
    return try RunHooks(job, parameters: parameters)
  }

  func foreseeablePlan(of run: RunIdentity) async throws(BatchError) -> (any RunPlan)? {
    if case .transform(let transform) = job.action, case .handler(let name) = transform.program,
      handlers[name] == nil
    {
      return nil
    }
    guard let parameters = try? options.parameters(of: job, for: run) else { return nil }
    if let plan = try await job.serverPlan(parameters, of: run, stoppedBy: nil) { return plan }
    if case .load(let load) = job.action {
      return try await loadPlan(load, parameters, of: run, stoppedBy: nil, in: nil)
    }
    return try await JobPlan(
      job,
      parameters: parameters,
      handlers: handlers,
      of: run,
      store: nil,
      expecting: run.expected
    )
  }

  func refuse(unlessFor checkpoint: Checkpoint) throws(BatchError) {
    // A parameter that is not given is not compared.
    let parameters = try? options.parameters(of: job, for: RunIdentity(checkpoint.metadata))
    try checkpoint.refuse(unless: job, parameters)
  }
}

extension JobPlan: StoreRunPlan {
  package var cause: any RunCause { job }
  /// While the programs of a command compute, an extra worker prepares the next rows for them.
  package var spareWorkers: Int { children == nil ? 0 : 1 }

  package func describeOutput(
    in metadata: inout RunMetadata,
    after previous: Checkpoint?
  ) throws(BatchError) {
    guard case .export(_, let export) = work else { return }
    try export.describe(in: &metadata, after: previous)
  }

  package func select(
    _ identity: StoreIdentity,
    readers: Int,
    stoppedBy stop: StopSwitch
  ) async throws(BatchError) -> RunSelection {
    if let given = try await givenIdentifiers() {
      return RunSelection(list: given.list, isGiven: true, hash: given.hash)
    }
    let query = try await inDeletionOrder(within: nil).query
    return RunSelection(list: try await fetch(query, identity, readers: readers, stoppedBy: stop))
  }

  package func undo(of run: RunIdentity) throws(BatchError) -> StoredUndo? {
    guard let undo = job.undo, let change else { return nil }
    return StoredUndo(
      run: run.run,
      job: job.name,
      startedAt: run.startedAt,
      keptUntil: undo.keep.flatMap { run.time(after: $0) },
      // The entity of the written table.
      entity: change.entity.name,
      shape: change.undoShape,
      types: change.recordedTypes,
      schema: expected.recorded
    )
  }

  package var plannedSchema: [String] { expected.planned }

  package func describeWork(in metadata: inout RunMetadata, _ selection: RunSelection) {
    metadata.fingerprint = fingerprint(identifiersHash: selection.hash).text
    metadata.schema = expected.recorded
    metadata.parameters = parameters.recorded
  }

  package func refuse(unlessFor checkpoint: Checkpoint) async throws(BatchError) {
    try await store.refuse(undone: checkpoint)
    try checkpoint.refuse(
      unless: job,
      parameters,
      in: store,
      expecting: expected,
      identifiersHash: identifierFile()?.contentHash
    )
  }

  package func start(run: String, atMost workers: Int, hasRows: Bool) throws(BatchError) {
    try startChildren(run: run, atMost: workers, hasRows: hasRows)
  }

  package func takeMessages() -> [String] { children?.takeMessages() ?? [] }

  package func wait(of least: Duration) -> String? { children?.silence(of: least) }

  package var statement: String? {
    if case .change(let change, _) = work { change.statements.last } else { ownStatements.last }
  }

  package func stop() throws(BatchError) { try children?.close() }

  package func processor(
    for part: FilePart
  ) async throws(BatchError) -> (any ChunkProcessor, any RunLedger) {
    if !job.isRehearsal {
      for trap in traps { part.onEvent(.message("warning: \(trap)")) }
    }
    switch work {
    case .change(var change, let isRowByRow):
      let lane = requireLane(part)
      if job.undo != nil { change = change.recorded(forRun: part.session.run) }
      try await Backoff(job.retry).repeating { [change] () throws(BatchError) in
        try await lane.makeArchive(
          of: change,
          isFirst: part.session.done.outcomes.succeeded == 0
        )
        try await lane.expect(expected, for: change)
      }
      let processor = ChangeProcessor(
        list: part.list,
        change: change.expecting(expected),
        isRowByRow: isRowByRow,
        inOrder: isInOrder,
        store: store,
        lane: lane,
        onFailure: part.onFailure
      )
      return (processor, lane)
    case .transform(var transform, let action, _):
      let lane = requireLane(part)
      if job.undo != nil { transform = transform.recorded(forRun: part.session.run) }
      try await lane.expect(expected)
      let processor = TransformProcessor(
        list: part.list,
        transform: transform.expecting(expected),
        run: part.session.run,
        store: store,
        lane: lane,
        onFailure: part.onFailure,
        handlerTimeLimit: action.timeout,
        inOrder: isInOrder
      )
      return (processor, lane)
    case .export(let export, let action):
      let list = part.list
      if action.columns == nil { tellNewColumns(part) }
      for warning in incrementWarnings { part.onEvent(.message("warning: \(warning)")) }
      if let increment { part.onEvent(.message(increment.announcement)) }
      let export = try await Backoff(job.retry).repeating { () throws(BatchError) in
        try await store.connection(label: "batch.plan").perform {
          [expected] connection throws(BatchError) in
          try expected.verify(in: connection)
          let probed = 0..<min(RowExport.probedRows, list.count)
          return try export.suited(to: ChunkKeys(list, probed, key: query.key), in: connection)
        }
      }
      let writer = try part.session.openOutput(
        header: export.header,
        export.format,
        overwriting: action.overwrite,
        inParts: action.files(ofJob: job.name, header: export.header),
        permissions: job.files.permissions
      )
      let processor = ExportProcessor(
        of: store,
        list: list,
        key: query.key,
        export: export.expecting(expected),
        writer: writer,
        onFailure: part.onFailure
      )
      return (processor, writer)
    }
  }

  /// Reports columns that an export of all columns omits, since the run began without them.
  private func tellNewColumns(_ part: FilePart) {
    guard let now = try? store.schema.entity(named: entity.name) else { return }
    let new = expected.newAttributes(of: now)
    if new.isEmpty { return }
    part.onEvent(
      .message(
        "\(entity.name.quotedForMessage) has got \(new.joined(separator: ", ")) since the run began;"
          + " its file has the columns of the beginning. A new run exports all of them"
      )
    )
  }

  private func requireLane(_ part: FilePart) -> WriterLane {
    guard let lane = part.lane else {
      preconditionFailure("rows are changed without a writer lane")
    }
    return lane
  }
}
