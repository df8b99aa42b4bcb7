#if PostgreSQL
import BatchEngine
import BatchIdentifiers
import BatchPostgres

extension BatchRun {
  /// Runs the job on PostgreSQL: takes part in the unfinished run, or begins one in which others may take part.
  ///
  /// - Parameters:
  ///   - server: Where the database is.
  ///   - retries: Whether what failed in the last run is done again, and no run begun.
  ///   - onEvent: Called with each event.
  ///   - answer: Called with the summary at the end.
  /// - Returns: How it ended.
  /// - Throws: What keeps it from anything.
  func share(
    _ server: Job.DatabaseOptions.Server,
    retryingFailures retries: Bool = false,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    defer {
      forgetStop()
      endEvents()
    }
    do throws(BatchError) {
      try job.validate()
      try options.check()
      let address = try server.address()
      let waits = ServerWaits(at: address, lockLimit: job.database.busyTimeout) { words in
        onEvent(.message(words))
      }
      let stop = SharedRunStop(waits)
      onStop { stop.request() }
      let opening = PostgresConnection(label: job.beginner, address: address, within: stop.opening)
      let result: Result<RunSummary, BatchError>
      do throws(BatchError) {
        result = .success(
          try await patiently(stop, onEvent) { () throws(BatchError) in
            retries
              ? try await retry(opening, stop, onEvent, answer)
              : try await share(server, opening, stop, onEvent, answer)
          }
        )
      } catch {
        result = .failure(job.words(of: error.afterStop(at: address.description)))
      }
      await opening.close()
      return try result.get()
    } catch {
      await tellRefusal(error, onEvent)
      throw error
    }
  }

  /// Does what comes before the chunks again while somebody has a lock, as `retry` says.
  private func patiently(
    _ stop: SharedRunStop,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ body: () async throws(BatchError) -> RunSummary
  ) async throws(BatchError) -> RunSummary {
    let backoff = Backoff(job.policy.retry)
    var generator = SystemRandomNumberGenerator()
    var attempt = 0
    while true {
      do throws(BatchError) {
        return try await body()
      } catch {
        attempt += 1
        guard error.code == .busy, attempt <= backoff.limit else { throw error }
        onEvent(.message("\(error.message); retry \(attempt) of \(backoff.limit)"))
        await stop.rest(backoff.delay(before: attempt, using: &generator))
      }
    }
  }

  private func share(
    _ server: Job.DatabaseOptions.Server,
    _ opening: PostgresConnection,
    _ stop: SharedRunStop,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    let address = try server.address()
    let (name, request) = (job.name, options.request)
    let lease = job.database.lease
    try await opening.reach(within: lease)
    let (tables, runs) = try await opening.persistently(within: lease) {
      session throws(BatchError) in
      let tables = try RunTables(of: session)
      return (tables, try tables.runs(ofJobIfThere: name, in: session))
    }
    switch try RunDecision(FoundRuns(runs), request, job: name) {
    case .join(let run):
      return try await takePart(
        in: run.record,
        tables,
        opening,
        stop,
        RunEvent.resumed,
        onEvent,
        answer
      )
    case .begin:
      let begun = try await begin(tables, address, opening, stop, onEvent)
      guard let (run, begunPlan) = begun else {
        // Another host was faster.
        return try await share(server, opening, stop, onEvent, answer)
      }
      let plan =
        begunPlan.newArchive == nil ? begunPlan : try await plan(of: run, by: opening)
      return try await takePart(
        in: run,
        plan,
        tables,
        opening,
        stop,
        RunEvent.started,
        onEvent,
        answer
      )
    case .conclude(let run):
      return try await conclude(run.record, tables, opening, stop, onEvent, answer)
    case .concludeFirst(let run):
      let last = try await conclude(run.record, tables, opening, stop, onEvent, answer)
      if let problem = last.unacknowledged { throw run.isNotTold(problem) }
      return try await share(server, opening, stop, onEvent, answer)
    case .nothing(let run):
      return tell(try await summary(of: run.record, tables, opening), answer).summary
    }
  }

  /// Reopens the last run for what has failed in it, and takes part in that, as where another host has reopened it.
  private func retry(
    _ opening: PostgresConnection,
    _ stop: SharedRunStop,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    let job = job
    let (tables, run, found) = try await opening.perform { session throws(BatchError) in
      let tables = try RunTables(of: session)
      let run = try job.sharedRun(nil, tables, in: session)
      let runs = try tables.runs(ofJob: job.name, in: session)
      return (tables, run, FoundRuns(runs, isRetry: try tables.isRetry(run.run, in: session)))
    }
    let request = RunRequest(retriesFailures: true)
    if run.state != .setAside,
      case .conclude(let run) = try RunDecision(found, request, job: job.name)
    {
      return try await conclude(run.record, tables, opening, stop, onEvent, answer)
    }
    if run.state == .running {
      guard found.runs.last?.isRetry == true else {
        throw BatchError(
          .unfinishedRun,
          "the run is unfinished, and what fails in it is retried when it is finished",
          at: "run \(run.run)",
          remedy: "finish it first: batch run"
        )
      }
      return try await takePart(in: run, tables, opening, stop, RunEvent.resumed, onEvent, answer)
    }
    guard job.action.writes else {
      throw BatchError(
        .invalidJob,
        "this job has no failed identifiers that can be retried",
        at: "run \(run.run)",
        remedy: "correct what is wrong and run it again: an export only reads"
      )
    }
    // Before anything is written: another job is refused.
    _ = try await plan(of: run, by: opening)
    let isOpen = try await opening.persistently(within: job.database.lease) {
      session throws(BatchError) in
      try session.transaction { () throws(BatchError) in
        try tables.lock(job: job.name, in: session)
        return try tables.reopen(run.run, in: session)
      }
    }
    guard isOpen else {
      onEvent(.message("nothing has failed; nothing to retry"))
      return tell(try await summary(of: run, tables, opening), answer).summary
    }
    let begins = { (summary: RunSummary) in
      // Whatever is open again has failed before.
      var summary = summary
      summary.outcomes.failed = summary.total - summary.done
      return RunEvent.retryingFailures(summary)
    }
    return try await takePart(in: run, tables, opening, stop, begins, onEvent, answer)
  }

  /// The work of this job.
  private var jobWork: JobWork {
    guard let work = work as? JobWork else {
      preconditionFailure("work on PostgreSQL that is not that of a job")
    }
    return work
  }

  private func plan(
    of run: RunIdentity,
    creatingArchive createsArchive: Bool = false,
    by connection: PostgresConnection
  ) async throws(BatchError) -> PostgresPlan {
    let (job, handlers) = (job, jobWork.handlers)
    let parameters = try jobWork.parameters(of: run)
    return try await connection.persistently(within: job.database.lease) {
      session throws(BatchError) in
      try PostgresPlan(
        job,
        parameters: parameters,
        handlers: handlers,
        creatingArchive: createsArchive,
        expecting: run.schema,
        in: session
      )
    }
  }

  /// Resolves the job for a shared run, and refuses it if it differs from the run's.
  private func plan(
    of run: SharedRun,
    by connection: PostgresConnection
  ) async throws(BatchError) -> PostgresPlan {
    let plan = try await plan(of: RunIdentity(run.described()), by: connection)
    try run.refuse(unless: plan)
    return plan
  }

  /// Creates a table that the version which began the run lacks, and removes requests to processes that are gone.
  private func prepare(
    toTakePartIn run: SharedRun,
    _ tables: RunTables,
    by connection: PostgresConnection
  ) async throws(BatchError) {
    let lease = job.database.lease
    try await connection.persistently(within: lease) { session throws(BatchError) in
      try session.transaction { () throws(BatchError) in try tables.createExits(in: session) }
      let hosts = try tables.hosts(ofRun: run.run, in: session)
      guard !hosts.contains(where: { $0.isAlive(within: lease) }) else { return }
      try tables.request(nil, of: run.run, in: session)
    }
  }

  // MARK: Beginning

  /// Begins a run, if no other host does.
  ///
  /// Where a connection breaks, all is done again: the run has the same UUID then, so that one whose beginning was committed
  /// without an answer is found.
  ///
  /// - Returns: The run; nil if there is another one by now.
  private func begin(
    _ tables: RunTables,
    _ address: ServerAddress,
    _ opening: PostgresConnection,
    _ stop: SharedRunStop,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async throws(BatchError) -> (SharedRun, PostgresPlan)? {
    let lease = job.database.lease
    let identity = RunIdentity(
      startedAt: try await opening.persistently(within: lease) { session throws(BatchError) in
        try session.text(
          "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
        ) ?? ""
      }
    )
    let plan = try await plan(of: identity, creatingArchive: true, by: opening)
    // Whoever cannot write its files or start its programs is refused before there is a run.
    try job.refuseMissingFolders()
    try plan.refuseOccupiedFolder()
    _ = try RunHooks(job, parameters: plan.parameters)
    // Known before the COMMIT, which may be done without an answer.
    var replaced: [SharedRun] = []
    let begun = try await PostgresConnection.persistently(within: lease) {
      () async throws(BatchError) in
      try await begin(identity, plan, tables, address, opening, stop, replacing: &replaced)
    }
    guard let begun else { return nil }
    for other in replaced { onEvent(.setAside("run \(other.run)")) }
    return begun
  }

  /// Tries once to begin a run.
  ///
  /// One host at a time decides: it has the job locked while it selects the identifiers. The lock is a transaction's, which
  /// has nothing else locked and keeps no row from being vacuumed meanwhile.
  private func begin(
    _ identity: RunIdentity,
    _ plan: PostgresPlan,
    _ tables: RunTables,
    _ address: ServerAddress,
    _ opening: PostgresConnection,
    _ stop: SharedRunStop,
    replacing replaced: inout [SharedRun]
  ) async throws(BatchError) -> (SharedRun, PostgresPlan)? {
    let place = address.description
    let fetch = PostgresFetch(
      plan.query,
      from: plan.address,
      readers: workerCount,
      within: stop.opening
    )
    let (name, request, lease) = (job.name, options.request, job.database.lease)
    let (unfinished, own) = try await opening.perform {
      session throws(BatchError) -> ([SharedRun]?, SharedRun?) in
      // Before it has tables of its own, which a refusal would leave.
      try plan.refuseRunsElsewhere(besides: tables, in: session)
      try session.transaction { () throws(BatchError) in try tables.create(in: session) }
      try session.begin(TransactionOptions(idleTimeout: lease))
      do throws(BatchError) {
        try tables.lock(job: name, in: session)
        let runs = try tables.runs(ofJob: name, in: session)
        let own = runs.first { $0.run == identity.run }
        if own == nil,
          case .begin(let replaced) = try RunDecision(FoundRuns(runs), request, job: name)
        {
          let unfinished = replaced.map(\.record)
          try tables.lock(job: name, over: plan.table, in: session)
          try plan.refuseRunsElsewhere(besides: tables, in: session)
          try tables.refuseIfAlive(unfinished, within: lease, in: session)
          return (unfinished, nil)
        }
        session.rollBack()
        return (nil, own)
      } catch {
        session.rollBack()
        throw error
      }
    }
    guard let unfinished else { return own.map { ($0, plan) } }
    replaced = unfinished
    let staying = Task { await opening.stayInTransaction(endingAfter: lease) }
    defer { staying.cancel() }
    do throws(BatchError) {
      let given = try await opening.perform { session throws(BatchError) in
        try plan.givenIdentifiers(in: session)
      }
      let list: PackedIdentifiers
      if let given {
        list = given.packed
      } else {
        list = try await fetch.run(store: plan.database.derivedIdentity)
      }
      let run = identity.run
      let metadata = metadata(of: identity, plan)
      // Whoever cannot start its programs is refused before there is a run.
      try plan.start(run: run, atMost: workerCount, hasRows: list.count > 0)
      let begun = try await opening.perform { session throws(BatchError) -> SharedRun? in
        guard session.isInTransaction else {
          let error = PostgresError("the connection broke", state: .connectionFailure)
          throw BatchError(error, server: place)
        }
        for other in unfinished { try tables.setAside(other.run, in: session) }
        // The rows were selected under the same schema.
        try plan.expected.verify(in: session)
        var expected = plan.expected
        if let archive = plan.newArchive {
          try archive.create(in: session)
          try expected.add(archive: archive.name, in: session)
        }
        let description = try SharedRun.Description(metadata, expecting: expected)
        try tables.begin(run, description, over: list, in: session)
        try session.commit()
        return try tables.runs(ofJob: name, in: session).first { $0.run == run }
      }
      guard let begun else {
        try plan.stop()
        return nil
      }
      return (begun, plan)
    } catch {
      try? await opening.perform { session throws(BatchError) in session.rollBack() }
      try? plan.stop()
      throw error
    }
  }

  private func metadata(of identity: RunIdentity, _ plan: PostgresPlan) -> RunMetadata {
    var metadata = RunMetadata(
      run: identity.run,
      job: job.name,
      startedAt: identity.startedAt,
      fingerprint: plan.fingerprint.text,
      schema: [],
      ledger: .store
    )
    metadata.table = plan.tableIdentity
    metadata.database = plan.address.description
    metadata.runID = options.runID
    metadata.invocation = job.invocation(commandLine: options.commandLine)
    metadata.parameters = plan.parameters.recorded
    return metadata
  }

  // MARK: Taking part

  /// Resolves the job for a run that there is, and takes part in it.
  private func takePart(
    in run: SharedRun,
    _ tables: RunTables,
    _ opening: PostgresConnection,
    _ stop: SharedRunStop,
    _ begins: (RunSummary) -> RunEvent,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    let plan = try await plan(of: run, by: opening)
    try await prepare(toTakePartIn: run, tables, by: opening)
    try plan.start(run: run.run, atMost: workerCount, hasRows: true)
    return try await takePart(in: run, plan, tables, opening, stop, begins, onEvent, answer)
  }

  private func takePart(
    in run: SharedRun,
    _ plan: PostgresPlan,
    _ tables: RunTables,
    _ opening: PostgresConnection,
    _ stop: SharedRunStop,
    _ begins: (RunSummary) -> RunEvent,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    let hooks = try RunHooks(job, parameters: plan.parameters)
    let execution = SharedRunExecution(
      plan: plan,
      tables: tables,
      run: run,
      hooks: hooks,
      settings: .init(
        workers: workerCount,
        chunkSize: options.chunkSize,
        progressInterval: options.progressInterval,
        stopRequests: listenForStop()
      ),
      stop: stop,
      onEvent: onEvent
    )
    // It is not needed while chunks run, and servers have few connections.
    await opening.close()
    let ended = try await execution.perform(begins)
    // The process that ended a finished run reports the end.
    if !ended.summary.state.isFinished || ended.hasEndedRun {
      await hooks.runAtEnd(of: ended.summary)
    }
    await hooks.settle()
    for message in hooks.takeMessages() { onEvent(.message(message)) }
    let told = tell(ended.summary, answer).summary
    guard ended.hasEndedRun, told.unacknowledged == nil else { return told }
    return await acknowledge(run, told, tables, plan.address, stop)
  }

  /// Reports the end of a finished run, without touching rows.
  private func conclude(
    _ run: SharedRun,
    _ tables: RunTables,
    _ opening: PostgresConnection,
    _ stop: SharedRunStop,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    let metadata = try run.described()
    let parameters = try jobWork.parameters(of: RunIdentity(metadata))
    // The hooks of another job are not those of this end.
    try metadata.refuse(unless: job, parameters, at: "run \(run.run)")
    let hooks = try RunHooks(job, parameters: parameters)
    onEvent(.message("the run was finished before; this concludes it"))
    let summary = try await summary(of: run, tables, opening)
    await hooks.runAtEnd(of: summary)
    await hooks.settle()
    for message in hooks.takeMessages() { onEvent(.message(message)) }
    let told = tell(summary, answer).summary
    guard told.unacknowledged == nil, let server = job.database.server else { return told }
    return await acknowledge(run, told, tables, try server.address(), stop)
  }

  private func summary(
    of run: SharedRun,
    _ tables: RunTables,
    _ connection: PostgresConnection
  ) async throws(BatchError) -> RunSummary {
    let standing = try await connection.persistently(within: job.database.lease) {
      session throws(BatchError) in try tables.standing(ofRun: run.run, in: session)
    }
    guard let standing else {
      throw BatchError(
        .otherRun,
        "run \(run.run) is no longer in the database",
        remedy: "run again"
      )
    }
    return RunSummary(standing)
  }

  private func acknowledge(
    _ run: SharedRun,
    _ summary: RunSummary,
    _ tables: RunTables,
    _ address: ServerAddress,
    _ stop: SharedRunStop
  ) async -> RunSummary {
    // The connection that opened the run may have been interrupted since.
    let connection = PostgresConnection(label: "batch.end", address: address, within: stop.closing)
    var summary = summary
    do throws(BatchError) {
      try await connection.persistently(within: job.database.lease) { session throws(BatchError) in
        try tables.acknowledge(run.run, in: session)
      }
    } catch {
      summary.unacknowledged = error
    }
    await connection.close()
    return summary
  }
}

extension SharedRun.Description {
  /// The description of a run that depends on a schema.
  fileprivate init(
    _ metadata: RunMetadata,
    expecting expected: ExpectedTables
  ) throws(BatchError) {
    var metadata = metadata
    metadata.schema = expected.recorded
    self.init(
      job: metadata.job,
      runID: metadata.runID,
      fingerprint: metadata.fingerprint,
      metadata: try Checkpoint.encode(metadata)
    )
  }
}

extension PostgresConnection {
  /// Connects for the first time: where nobody is there it fails at once, since the address may be wrong; a server that
  /// starts or has no connection left is waited for.
  fileprivate nonisolated func reach(within patience: Duration) async throws(BatchError) {
    do {
      try await perform { _ throws(BatchError) in }
    } catch {
      guard error.code == .connectionLost, error.postgres?.state?.isTemporaryRefusal == true
      else {
        throw error
      }
      try await persistently(within: patience) { _ throws(BatchError) in }
    }
  }

  /// Says something in an open transaction now and then, until the task is cancelled, so that the server ends it only if
  /// this process is gone.
  fileprivate nonisolated func stayInTransaction(endingAfter silence: Duration) async {
    while !Task.isCancelled {
      try? await Task.sleep(for: silence / 4)
      if Task.isCancelled { return }
      try? await perform { session throws(BatchError) in
        if session.isInTransaction { try session.run("SELECT 1") }
      }
    }
  }
}

extension RunTables {
  /// Refuses to set aside a run on which a process is working.
  fileprivate func refuseIfAlive(
    _ runs: [SharedRun],
    within lease: Duration,
    in session: PostgresSession
  ) throws(BatchError) {
    for run in runs {
      let host = try hosts(ofRun: run.run, in: session).first { $0.isAlive(within: lease) }
      guard let host else { continue }
      throw BatchError(
        .alreadyRunning,
        "run \(run.run) of this job is alive (process \(host.process) on \(host.name))",
        at: session.address.description,
        remedy: "stop it first: batch cancel"
      )
    }
  }
}
#endif
