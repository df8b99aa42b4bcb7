#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchPostgres
import BatchSQLite
import SystemPackage

/// An export from PostgreSQL to one file, which is a run of one host: its record is a checkpoint beside the file, and nothing
/// is written to the database.
struct PostgresExportPlan: RunPlan {
  /// How long a statement of a chunk may take; then it is done in halves.
  private static let statementLimit = Duration.seconds(120)

  let plan: PostgresPlan
  let export: PostgresExport
  let action: Job.Export
  let hooks: RunHooks

  var cause: any RunCause { plan.job }
  private var job: Job { plan.job }
  var identity: StoreIdentity { StoreIdentity(ofServer: plan.database.derivedIdentity) }
  var spareWorkers: Int { 0 }

  /// Resolves a job against its server, for a run if that is to begin or go on.
  init(
    _ job: Job,
    parameters: ParameterValues,
    expecting schema: [String],
    stoppedBy stop: StopSwitch?
  ) async throws(BatchError) {
    let plan = try await job.inSession(stoppedBy: stop) { session throws(BatchError) in
      try PostgresPlan(job, parameters: parameters, expecting: schema, in: session)
    }
    guard case .export(let export, let action) = plan.work else {
      preconditionFailure("an export that is none")
    }
    try job.refuseMissingFolders()
    if let report = job.report {
      do throws(BatchError) {
        try RunReport.check(report)
      } catch {
        throw error.located(at: job.place(of: .report))
      }
    }
    self.plan = plan
    self.export = export
    self.action = action
    hooks = try RunHooks(job, parameters: parameters)
  }

  func describeOutput(
    in metadata: inout RunMetadata,
    after previous: Checkpoint?
  ) throws(BatchError) {
    metadata.database = plan.address.description
    try action.describe(in: &metadata, after: previous)
  }

  func select(
    _ identity: StoreIdentity,
    readers: Int,
    stoppedBy stop: StopSwitch
  ) async throws(BatchError) -> RunSelection {
    let plan = plan
    if plan.identifiers != nil {
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
    metadata.fingerprint = plan.fingerprint.text
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

  func makeLane() -> WriterLane? { nil }
  func start(run: String, atMost workers: Int, hasRows: Bool) {}
  func takeMessages() -> [String] { [] }
  func stop() {}
  func close() async {}

  func processor(
    for part: FilePart
  ) async throws(BatchError) -> (any ChunkProcessor, any RunLedger) {
    for note in plan.notes { part.onEvent(.message("warning: \(note)")) }
    let writer = try part.session.openOutput(
      header: export.header,
      overwriting: action.overwrite,
      permissions: job.files.permissions
    )
    let (address, table) = (plan.address, plan.table)
    let waits = ServerWaits(at: address, lockLimit: job.database.busyTimeout) {
      [onEvent = part.onEvent] words in onEvent(.message(words))
    }
    let group = PostgresInterrupter(telling: waits)
    // Unlike a shared run, it is not watched: it starts with what is left.
    let room = try? await job.inSession(stoppedBy: part.stop) { session throws(BatchError) in
      try ServerHealth(of: table.oid, in: session).room()
    }
    let processor = PostgresExportProcessor(
      list: part.list,
      export: export,
      writer: writer,
      onFailure: part.onFailure,
      statementLimit: Self.statementLimit,
      reconnectingFor: job.database.lease,
      workerLimit: room
    ) { label in
      PostgresConnection(label: label, address: address, within: group)
    }
    return (processor, writer)
  }
}

extension Job {
  /// Runs `body` with a session of the job's server before the chunks of a run, which a request to stop interrupts.
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
#endif
