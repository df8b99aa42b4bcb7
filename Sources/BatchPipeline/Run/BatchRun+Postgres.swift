#if PostgreSQL
import BatchEngine
import BatchIdentifiers
import BatchPostgres

extension BatchRun {
  /// Runs the job on PostgreSQL: joins the unfinished run, or begins one that others may join.
  func share(
    _ server: Job.DatabaseOptions.Server,
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
      let opening = PostgresConnection(label: "batch.open", address: try server.address())
      let result: Result<RunSummary, BatchError>
      do throws(BatchError) {
        result = .success(try await share(server, opening, onEvent, answer))
      } catch {
        result = .failure(job.words(of: error))
      }
      await opening.close()
      return try result.get()
    } catch {
      await tellRefusal(error, onEvent)
      throw error
    }
  }

  private func share(
    _ server: Job.DatabaseOptions.Server,
    _ opening: PostgresConnection,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    let address = try server.address()
    let (name, request) = (job.name, options.request)
    let found = try await interruptible(at: address.description, by: { opening.interrupt() }) {
      () throws(BatchError) in
      try await opening.perform { session throws(BatchError) in
        let tables = try RunTables(of: session)
        return (tables, try tables.runs(ofJobIfThere: name, in: session))
      }
    }
    let tables = found.0
    switch try SharedRunDecision(found.1, request, job: name) {
    case .takePart(let run):
      let plan = try await plan(of: run, by: opening)
      try await clearRequests(of: run, tables, by: opening)
      return try await takePart(in: run, plan, tables, isNew: false, opening, onEvent, answer)
    case .begin:
      let begun = try await begin(tables, address, opening, onEvent)
      guard let (run, plan) = begun else {
        // Another host was faster.
        return try await share(server, opening, onEvent, answer)
      }
      return try await takePart(in: run, plan, tables, isNew: true, opening, onEvent, answer)
    case .conclude(let run):
      return try await conclude(run, tables, opening, onEvent, answer)
    case .concludeFirst(let run):
      let last = try await conclude(run, tables, opening, onEvent, answer)
      if let problem = last.unacknowledged {
        throw BatchError(
          .unfinishedRun,
          "the end of the last run could not be reported, so nothing was started: \(problem.message)",
          at: "run \(run.run)",
          remedy: "repeat the command where its output can be written",
          underlying: problem
        )
      }
      return try await share(server, opening, onEvent, answer)
    case .repeatSummary(let run):
      return tell(try await summary(of: run, tables, opening), answer).summary
    }
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
    by connection: PostgresConnection
  ) async throws(BatchError) -> PostgresPlan {
    let (job, parameters) = (job, try jobWork.parameters(of: run))
    return try await connection.perform { session throws(BatchError) in
      try PostgresPlan(job, parameters: parameters, in: session)
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

  /// Removes requests to processes that are gone.
  private func clearRequests(
    of run: SharedRun,
    _ tables: RunTables,
    by connection: PostgresConnection
  ) async throws(BatchError) {
    let lease = job.database.lease
    try await connection.perform { session throws(BatchError) in
      let hosts = try tables.hosts(ofRun: run.run, in: session)
      guard !hosts.contains(where: { $0.silence < lease }) else { return }
      try tables.request(nil, of: run.run, in: session)
    }
  }

  // MARK: Beginning

  /// Begins a run, if no other host does.
  ///
  /// One host at a time decides: it locks the job while it selects the identifiers. The lock
  /// belongs to a transaction that has nothing else locked and delays no vacuum meanwhile.
  ///
  /// - Returns: The run; nil if another host has begun one.
  private func begin(
    _ tables: RunTables,
    _ address: ServerAddress,
    _ opening: PostgresConnection,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async throws(BatchError) -> (SharedRun, PostgresPlan)? {
    let place = address.description
    let identity = RunIdentity(
      startedAt: try await opening.perform { session throws(BatchError) in
        try session.text(
          "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
        ) ?? ""
      }
    )
    let plan = try await plan(of: identity, by: opening)
    // If its programs cannot be started, it must not begin a run.
    _ = try RunHooks(job, parameters: plan.parameters)
    let fetch = PostgresFetch(plan.query, from: address, readers: workerCount)
    let interrupt: @Sendable () -> Void = {
      opening.interrupt()
      fetch.interrupt()
    }
    return try await interruptible(at: place, by: interrupt) {
      () throws(BatchError) -> (SharedRun, PostgresPlan)? in
      let (name, request, lease) = (job.name, options.request, job.database.lease)
      let replaced = try await opening.perform {
        session throws(BatchError) -> [SharedRun]? in
        try session.transaction { () throws(BatchError) in try tables.create(in: session) }
        try session.begin(TransactionOptions(idleTimeout: .seconds(86_400)))
        do throws(BatchError) {
          try tables.lock(job: name, in: session)
          let runs = try tables.runs(ofJob: name, in: session)
          if case .begin(let unfinished) = try SharedRunDecision(runs, request, job: name) {
            try tables.refuseIfAlive(unfinished, within: lease, in: session)
            return unfinished
          }
          session.rollBack()
          return nil
        } catch {
          session.rollBack()
          throw error
        }
      }
      guard let replaced else { return nil }
      do throws(BatchError) {
        let list = try await fetch.run(store: plan.database.derivedIdentity)
        let description = try description(of: identity, plan)
        let run = identity.run
        let begun = try await opening.perform { session throws(BatchError) -> SharedRun? in
          guard session.isInTransaction else {
            let error = PostgresError("the connection broke", state: .connectionFailure)
            throw BatchError(error, server: place)
          }
          for other in replaced { try tables.setAside(other.run, in: session) }
          try tables.begin(run, description, over: list, in: session)
          try session.commit()
          return try tables.runs(ofJob: name, in: session).first { $0.run == run }
        }
        guard let begun else { return nil }
        for other in replaced { onEvent(.setAside("run \(other.run)")) }
        return (begun, plan)
      } catch {
        try? await opening.perform { session throws(BatchError) in session.rollBack() }
        throw error
      }
    }
  }

  private func description(
    of identity: RunIdentity,
    _ plan: PostgresPlan
  ) throws(BatchError) -> SharedRun.Description {
    var metadata = RunMetadata(
      run: identity.run,
      job: job.name,
      startedAt: identity.startedAt,
      fingerprint: plan.fingerprint.text,
      schema: plan.shape,
      ledger: .store
    )
    metadata.database = plan.address.description
    metadata.runID = options.runID
    metadata.invocation = job.invocation(commandLine: options.commandLine)
    metadata.parameters = plan.parameters.entries.mapValues { entry in
      entry.isSecret ? "(secret)" : entry.value.words
    }
    return SharedRun.Description(
      job: job.name,
      runID: options.runID,
      fingerprint: metadata.fingerprint,
      metadata: try Checkpoint.encode(metadata)
    )
  }

  // MARK: Taking part

  private func takePart(
    in run: SharedRun,
    _ plan: PostgresPlan,
    _ tables: RunTables,
    isNew: Bool,
    _ opening: PostgresConnection,
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
      onEvent: onEvent
    )
    // It is not needed while chunks run, and servers have few connections.
    await opening.close()
    let ended = try await execution.perform(isNew: isNew)
    // The process that ended a finished run reports the end.
    if !ended.summary.state.isFinished || ended.hasEndedRun {
      await hooks.runAtEnd(of: ended.summary)
    }
    await hooks.settle()
    for message in hooks.takeMessages() { onEvent(.message(message)) }
    let told = tell(ended.summary, answer).summary
    guard ended.hasEndedRun, told.unacknowledged == nil else { return told }
    return await acknowledge(run, told, tables, plan.address)
  }

  /// Reports the end of a finished run, without touching rows.
  private func conclude(
    _ run: SharedRun,
    _ tables: RunTables,
    _ opening: PostgresConnection,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    let parameters = try jobWork.parameters(of: RunIdentity(run.described()))
    let hooks = try RunHooks(job, parameters: parameters)
    onEvent(.message("the run was finished before; this concludes it"))
    let summary = try await summary(of: run, tables, opening)
    await hooks.runAtEnd(of: summary)
    await hooks.settle()
    for message in hooks.takeMessages() { onEvent(.message(message)) }
    let told = tell(summary, answer).summary
    guard told.unacknowledged == nil, let server = job.database.server else { return told }
    return await acknowledge(run, told, tables, try server.address())
  }

  private func summary(
    of run: SharedRun,
    _ tables: RunTables,
    _ connection: PostgresConnection
  ) async throws(BatchError) -> RunSummary {
    let standing = try await connection.perform { session throws(BatchError) in
      try tables.standing(ofRun: run.run, in: session)
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
    _ address: ServerAddress
  ) async -> RunSummary {
    // The connection that opened the run may have been interrupted since.
    let connection = PostgresConnection(label: "batch.end", address: address)
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

extension BatchRun.Options {
  /// The requests for a run on PostgreSQL.
  var request: BatchRunRequest {
    BatchRunRequest(runID: runID, fresh: fresh, joinOnly: joinOnly)
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
      let host = try hosts(ofRun: run.run, in: session).first { $0.silence < lease }
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
