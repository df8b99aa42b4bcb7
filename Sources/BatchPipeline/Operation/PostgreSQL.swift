// What depends on the trait `PostgreSQL`.

package import BatchIdentifiers
package import BatchJobs
import BatchRuns
import BatchSQLite
import SystemPackage

#if PostgreSQL
import BatchPostgres

extension Job {
  var store: any JobPlanner { database.server == nil ? SQLiteJob(self) : PostgresJob(self) }

  package var records: any RunRecords {
    sharedServer == nil ? FileRecords(of: self) : TableRecords(of: .job(self, [:]))
  }

  /// The records of the undos of the job's runs.
  package var undoRecords: any RunRecords {
    guard sharedServer != nil else { return FileRecords(of: undoing) }
    return TableRecords(of: .undo(UndoRequest(of: self), of: self))
  }

  /// The plan of a run on a server that a single host records; nil for a job on a file.
  func serverPlan(
    _ parameters: ParameterValues,
    of run: RunIdentity,
    stoppedBy stop: StopSwitch?
  ) async throws(BatchError) -> (any RunPlan)? {
    guard database.server != nil else { return nil }
    return try await PostgresFilePlan(
      self,
      parameters: parameters,
      of: run,
      stoppedBy: stop
    )
  }
}

extension JobWork {
  /// The record of the job's runs in tables of its server; nil if they are recorded in a file.
  func tableRecord(
    of run: BatchRun,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) -> TableRecord? {
    guard let server = job.sharedServer else { return nil }
    try job.validate()
    try options.check()
    return try TableRecord(
      of: .job(job, handlers),
      on: server,
      options,
      run.terms,
      stop: run.stopSwitch,
      onEvent: onEvent
    )
  }
}

extension Tracking {
  /// Does it on the job's server; nil for a job on a file.
  func onServer(of job: Job) async throws(BatchError) -> ChangeLog?? {
    guard job.database.server != nil else { return nil }
    return try await job.inSession { session throws(BatchError) in
      let options = TransactionOptions(
        isReadOnly: self == .status,
        lockTimeout: job.database.busyTimeout
      )
      return try session.transaction(options) { () throws(BatchError) -> ChangeLog? in
        let table = try PostgresTrackedTable(PostgresTable(named: job.source.entity, in: session))
        switch self {
        case .start: return try table.start(in: session)
        case .status: return try table.log(in: session)
        case .forget(let reader): return try table.forget(reader, in: session)
        case .stop:
          try table.stop(in: session)
          return nil
        }
      }
    }
  }
}

extension UndoWork {
  /// The record of the undo in tables of the job's server; nil if it is recorded in a file.
  func tableRecord(
    of run: BatchRun,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) -> TableRecord? {
    try request.refuseUnsupported()
    guard let job = request.cause as? Job, let server = job.sharedServer else { return nil }
    try run.options.check()
    return try TableRecord(
      of: .undo(request, of: job),
      on: server,
      run.options,
      run.terms,
      stop: run.stopSwitch,
      onEvent: onEvent
    )
  }
}

extension Verification {
  /// Compares the table of a job on a server with a copy of it; nil if the jobs are for files.
  init?(
    onServerOf jobs: [Job],
    against table: String,
    _ choices: Choices
  ) async throws(BatchError) {
    guard let job = jobs.first(where: { $0.database.server != nil }) else { return nil }
    guard jobs.count == 1, choices.runs.count <= 1 else {
      throw BatchError(
        .invalidJob,
        "on PostgreSQL, one run is verified at a time",
        at: job.name,
        remedy: "name one job, and one run"
      )
    }
    self = try await job.inSession { session throws(BatchError) in
      try Verification(
        of: job,
        againstTable: table,
        run: choices.runs.first,
        choices.parameters,
        allowing: choices.allowed,
        limit: choices.limit,
        in: session
      )
    }
  }
}

extension UndoRequest {
  /// Refuses a load into a server, and an export from one to a file, which is recorded beside that file.
  fileprivate func refuseUnsupported() throws(BatchError) {
    if let job = cause as? Job, job.database.server != nil, job.action.kind == .load {
      throw BatchError(
        .noUndo,
        "the undo of a load does not work on PostgreSQL yet",
        at: job.place(of: JobPath("action")),
        remedy: "delete the rows that it has inserted, by a job with their keys or a condition"
      )
    }
    guard let job = cause as? Job, job.database.server != nil, job.sharedServer == nil else {
      return
    }
    throw BatchError(.noUndo, "an export changes no row that could be undone", at: job.name)
  }
}

extension UndoReport {
  /// The effect of undoing a run on a server; nil if the run is recorded in a file.
  init?(onServer request: UndoRequest, showing limit: Int) async throws(BatchError) {
    try request.refuseUnsupported()
    guard let job = request.cause as? Job, job.sharedServer != nil else { return nil }
    self = try await job.inSession { session throws(BatchError) in
      let plan = try PostgresPlan(undoing: request, of: job, in: session)
      guard case .undo(let undo, let undone) = plan.work else {
        preconditionFailure("an undo that is none")
      }
      let run = undone.recorded.run
      if !request.mayBeAlive { try RunTables(of: session).refuseIfAlive(run, of: job, in: session) }
      let (outcomes, left) = try plan.foreseenUndo(telling: limit, in: session)
      let runs = try TableWork.job(job, [:]).undoableRuns(RunTables(of: session), in: session)
      let wanted = try request.identifiers?.sortedUnique().count ?? 0
      let unknown = request.wordsOfUnknown(wanted - undone.list.count)
      let loss = run.state == .running ? UndoRequest.wordsOfLoss(of: run.run) : nil
      return UndoReport(
        entity: plan.table.title,
        run: runs.first { $0.run == run.run } ?? undone.recorded.undoable,
        others: runs.filter { $0.run != run.run },
        outcomes: outcomes,
        comparedColumns: undo.records.isDeletion ? [] : undo.records.columns.map(\.name),
        changedSince: left,
        warnings: plan.notes + [unknown, loss].compactMap(\.self)
      )
    }
  }
}

/// A run on PostgreSQL of a single host: an export to one file, or a rehearsal.
///
/// The record of an export is a checkpoint beside the file, and nothing is written to the database.
struct PostgresFilePlan: RunPlan {
  let plan: PostgresPlan
  let hooks: RunHooks
  private let rehearsal: PostgresRehearsal?

  var cause: any RunCause { plan.job }
  private var job: Job { plan.job }
  var identity: StoreIdentity { StoreIdentity(ofServer: plan.database.derivedIdentity) }
  var spareWorkers: Int { plan.spareWorkers }

  /// Resolves a job against its server; `run` may be one that is resumed.
  init(
    _ job: Job,
    parameters: ParameterValues,
    handlers: [String: TransformHandler] = [:],
    of run: RunIdentity,
    rehearsing rehearsal: PostgresRehearsal? = nil,
    stoppedBy stop: StopSwitch?
  ) async throws(BatchError) {
    let plan = try await job.inSession(stoppedBy: stop) { session throws(BatchError) in
      try PostgresPlan(
        job,
        parameters: parameters,
        handlers: handlers,
        creatingArchive: true,
        reading: job.action.selectsRows
          ? .names : .whole { [interrupter = session.interrupter] in interrupter.isInterrupted },
        expecting: run.schema,
        recordingIn: run.run,
        of: run,
        in: session
      )
    }
    try job.refuseMissingFolders()
    if let report = job.report {
      do throws(BatchError) {
        try report.check()
      } catch {
        throw error.located(at: job.place(of: .report))
      }
    }
    self.plan = plan
    self.rehearsal = rehearsal
    hooks = try RunHooks(job, parameters: parameters)
  }

  func describeOutput(
    in metadata: inout RunMetadata,
    after previous: Checkpoint?
  ) throws(BatchError) {
    metadata.database = plan.address.description
    guard case .export(_, let action) = plan.work else { return }
    try action.describe(in: &metadata, after: previous)
  }

  func select(
    _ identity: StoreIdentity,
    readers: Int,
    stoppedBy stop: StopSwitch
  ) async throws(BatchError) -> RunSelection {
    let start = ContinuousClock.now
    let all = try await selectAll(identity, readers: readers, stoppedBy: stop)
    guard let rehearsal else { return all }
    let sample = try rehearsal.take(from: all.list, selectedIn: start.duration(to: .now))
    return RunSelection(list: sample, isGiven: all.isGiven)
  }

  func parts(of remaining: [Range<Int>]) -> [Range<Int>] { rehearsal?.parts ?? remaining }

  private func selectAll(
    _ identity: StoreIdentity,
    readers: Int,
    stoppedBy stop: StopSwitch
  ) async throws(BatchError) -> RunSelection {
    let plan = plan
    if plan.identifiers != nil || !job.action.selectsRows {
      let given = try await job.inSession(stoppedBy: stop) { session throws(BatchError) in
        try session.transaction(TransactionOptions(isReadOnly: true, searchPath: plan.query.path)) {
          () throws(BatchError) in
          try plan.givenIdentifiers(in: session)
        }
      }
      if let given { return RunSelection(list: given, isGiven: true) }
    }
    let fetch = PostgresFetch(plan.query, from: plan.address, readers: readers)
    let list = try await stop.interruptible(
      at: plan.address.description,
      by: { fetch.interrupt() }
    ) { () throws(BatchError) in try await fetch.run(store: identity.uuid) }
    return RunSelection(list: list)
  }

  func describeWork(in metadata: inout RunMetadata, _ selection: RunSelection) {
    metadata.fingerprint = (try? plan.fingerprint.text) ?? ""
    metadata.schema = plan.expected.recorded
    metadata.parameters = plan.parameters.recorded
  }

  func refuse(unlessFor checkpoint: Checkpoint) throws(BatchError) {
    try checkpoint.refuse(unless: job, plan.parameters)
    let store = checkpoint.list.header.storeIdentifier
    guard store == identity.uuid else {
      throw checkpoint.refusal(
        "the checkpoint belongs to database \(store), this is database \(identity.uuid)"
      )
    }
    try plan.refuse(unlessExpecting: checkpoint.metadata.schema, at: checkpoint.path.string)
  }

  var statements: [String] { plan.statements }
  var plannedSchema: [String] { plan.expected.planned }
  var increment: Increment? { plan.increment }

  func enterIncrement() async throws(BatchError) {
    guard !job.isRehearsal else { return }
    try await job.inSession { [plan] session throws(BatchError) in
      try plan.enterIncrement(in: session)
    }
  }

  func makeLane() -> WriterLane? { nil }
  func close() async {}

  func start(run: String, atMost workers: Int, hasRows: Bool) throws(BatchError) {
    try plan.start(run: run, atMost: workers, hasRows: hasRows)
  }

  func takeMessages() -> [String] { plan.takeMessages() }
  func wait(of least: Duration) -> String? { plan.wait(of: least) }
  var statement: String? { try? plan.statementText() }
  func stop() throws(BatchError) { try plan.stop() }

  func processor(
    for part: FilePart
  ) async throws(BatchError) -> (any ChunkProcessor, any RunLedger) {
    if rehearsal == nil {
      for note in plan.notes { part.onEvent(.message("warning: \(note)")) }
      if let increment = plan.increment { part.onEvent(.message(increment.announcement)) }
    }
    let (plan, address, table) = (plan, plan.address, plan.table)
    let waits = ServerWaits(at: address, lockLimit: job.database.busyTimeout) {
      [onEvent = part.onEvent] words in onEvent(.message(words))
    }
    let group = PostgresInterrupter(telling: waits)
    // Unlike a shared run, the server is not monitored: the run starts with the connections that
    // are left.
    let room = try? await job.inSession(stoppedBy: part.stop) { session throws(BatchError) in
      try ServerHealth(of: table.oid, in: session).room()
    }
    let connect = { @Sendable label in
      PostgresConnection(label: label, address: address, within: group)
    }
    if let rehearsal {
      try await job.inSession(stoppedBy: part.stop) { session throws(BatchError) in
        try rehearsal.begin(plan, in: session)
      }
    }
    guard case .export(let export, let action) = plan.work else {
      guard let rehearsal else { preconditionFailure("a change without a record in tables") }
      let (run, policy) = (part.session.run, part.onFailure)
      let processor = try await job.inSession(stoppedBy: part.stop) { session throws(BatchError) in
        try rehearsal.processor(of: plan, run: run, onFailure: policy, in: session, by: connect)
      }
      return (processor, UnrecordedLedger())
    }
    let writer = try part.session.openOutput(
      header: export.header,
      export.groups,
      overwriting: action.overwrite,
      inParts: action.files(ofJob: job.name, header: export.header),
      permissions: job.files.permissions
    )
    let processor = PostgresExportProcessor(
      list: part.list,
      export: export,
      writer: writer,
      onFailure: part.onFailure,
      statementLimit: PostgresPlan.statementLimit,
      reconnectingFor: job.database.lease,
      workerLimit: room,
      by: connect
    )
    return (processor, writer)
  }
}

extension Job {
  /// Runs `body` with a session of the job's server before the chunks; a stop interrupts it.
  fileprivate func inSession<Result: Sendable>(
    stoppedBy stop: StopSwitch?,
    _ body: @Sendable (PostgresSession) throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    guard let stop, let server = database.server else { return try await inSession(body) }
    let interrupter = PostgresInterrupter()
    return try await stop.interruptible(
      at: address(of: server).description,
      by: { interrupter.interrupt() }
    ) { () throws(BatchError) in try await inSession(within: interrupter, body) }
  }
}

extension DatabaseSchema {
  /// Reads the catalog of a PostgreSQL database in one snapshot, but no rows.
  ///
  /// `url` must not contain a password. A program built without PostgreSQL throws
  /// `postgreSQLMissing`.
  package init(ofServerAt url: String) async throws(BatchError) {
    let server = Job.DatabaseOptions.Server.url(url)
    try server.refusePassword()
    self = try await server.inSession { session throws(BatchError) in
      let database = try PostgresDatabase(of: session)
      let tables = try session.transaction(TransactionOptions(.repeatableRead, isReadOnly: true)) {
        () throws(BatchError) in try PostgresTable.all(in: session)
      }
      return DatabaseSchema(database, tables)
    }
  }
}

extension ListedEntity {
  init(named name: String, onServerAt url: String) async throws(BatchError) {
    let server = Job.DatabaseOptions.Server.url(url)
    try server.refusePassword()
    self = try await server.inSession { session throws(BatchError) in
      let table = try session.transaction(TransactionOptions(isReadOnly: true)) {
        () throws(BatchError) in try PostgresTable(named: name, in: session)
      }
      return ListedEntity(
        name: table.title,
        store: try PostgresDatabase(of: session).derivedIdentity,
        keyKind: try table.requireKey().isInteger ? .integer : .encoded
      )
    }
  }
}

extension DatabaseSchema {
  private init(_ database: PostgresDatabase, _ tables: [PostgresTable]) {
    store = database.derivedIdentity
    storeIsDerived = true
    entities = tables.map(DescribedEntity.init)
    let version = database.version.prefix { $0 != " " }
    heading = [
      "store \(store), derived from the server",
      "PostgreSQL \(version), database \(database.name), role \(database.role)",
    ]
  }
}

extension DatabaseSchema.DescribedEntity {
  fileprivate init(_ table: PostgresTable) {
    name = table.written
    self.table = table.name
    schema = table.schema
    kind =
      switch table.kind {
      case .table: "table"
      case .partitionedTable: "partitioned"
      case .view: "view"
      case .materializedView: "materialized"
      case .foreignTable: "foreign"
      }
    superentity = nil
    relationships = nil
    count = nil
    estimatedCount = table.estimatedCount
    readable = table.rights.usesSchema && table.rights.selects
    problem = nil
    // A table without a key is shown without one.
    keys = ((try? table.requireKey())?.columns ?? []).map { .init(name: $0.name, type: $0.type) }
    attributes = table.columns.map {
      .init(
        name: $0.name,
        column: $0.name,
        type: $0.type,
        optional: $0.isOptional,
        generated: $0.isGenerated
      )
    }
    indexes = table.indexes.map { index in
      .init(
        name: index.name,
        unique: index.isUnique,
        partial: index.isPartial,
        origin: index.isPrimary ? "primaryKey" : index.isOfConstraint ? "unique" : "created",
        columns: zip(index.columns, index.isDescending).map { .init(name: $0, descending: $1) },
        sql: index.definition
      )
    }
    foreignKeys = table.references.map {
      .init(
        columns: $0.columns,
        table: $0.target,
        targets: $0.targetColumns,
        onDelete: $0.onDelete,
        onUpdate: $0.onUpdate
      )
    }
    triggers = table.triggers.map { trigger in
      let columns = trigger.columns.isEmpty ? "" : " OF \(trigger.columns.joined(separator: ", "))"
      let events = trigger.events.map { $0 == "UPDATE" ? $0 + columns : $0 }
      return .init(
        name: trigger.name,
        event: "\(trigger.time) \(events.joined(separator: " OR "))",
        enabled: trigger.isEnabled,
        sql: trigger.definition
      )
    }
  }
}

#else
extension Job {
  var store: any JobPlanner { SQLiteJob(self) }

  package var records: any RunRecords { FileRecords(of: self) }

  package var undoRecords: any RunRecords { FileRecords(of: undoing) }

  func serverPlan(
    _ parameters: ParameterValues,
    of run: RunIdentity,
    stoppedBy stop: StopSwitch?
  ) async throws(BatchError) -> (any RunPlan)? { nil }
}

extension JobWork {
  func tableRecord(
    of run: BatchRun,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) -> FileRecord? { nil }
}

extension Tracking {
  func onServer(of job: Job) async throws(BatchError) -> ChangeLog?? { nil }
}

extension UndoWork {
  func tableRecord(
    of run: BatchRun,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) -> FileRecord? { nil }
}

extension UndoReport {
  init?(onServer request: UndoRequest, showing limit: Int) async throws(BatchError) { return nil }
}

extension Verification {
  init?(
    onServerOf jobs: [Job],
    against table: String,
    _ choices: Choices
  ) async throws(BatchError) { return nil }
}

extension DatabaseSchema {
  package init(ofServerAt url: String) async throws(BatchError) {
    throw .postgreSQLMissing("the URL is for PostgreSQL")
  }
}

extension ListedEntity {
  init(named name: String, onServerAt url: String) async throws(BatchError) {
    throw .postgreSQLMissing("the URL is for PostgreSQL")
  }
}
#endif
