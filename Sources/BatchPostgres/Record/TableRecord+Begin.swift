#if PostgreSQL
import BatchJobs
package import BatchRuns
package import BatchIdentifiers

extension TableRecord {
  /// Begins a run, unless another host does; if a connection breaks, everything is repeated with
  /// the same UUID, so that a run whose beginning was committed without an answer is found.
  package func begin(
    _ request: RunRequest,
    replacing runs: [FoundRun<TableRun>]
  ) async throws(BatchError) -> RunEntry<TablePart> {
    let (job, tables, isFresh) = (work.job, requireTables(), options.fresh)
    let (identity, newest) = try await opening.persistently(within: lease) {
      session throws(BatchError) in
      let runs =
        !job.source.isIncremental ? [] : try tables.runs(ofJobIfThere: job.name, in: session)
      let now = try session.execute(
        """
        SELECT to_char(t, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), to_char(t, 'US')
        FROM (SELECT now() AT TIME ZONE 'UTC' AS t) AS now
        """
      )
      let identity = RunIdentity(
        startedAt: now.text(0, 0) ?? "",
        microseconds: now.text(0, 1).flatMap { Int($0) } ?? 0,
        after: try runs.last.flatMap { run throws(BatchError) in
          try LastIncrement(run, startingOver: isFresh)
        }
      )
      return (identity, runs.last?.run)
    }
    let plan = try await plan(of: identity)
    try await opening.persistently(within: lease) { session throws(BatchError) in
      try plan.enterIncrement(in: session)
    }
    // A host that cannot write its files or start its programs is refused before there is a run.
    try work.job.refuseMissingFolders()
    try plan.refuseOccupiedFolder()
    _ = try RunHooks(cause, parameters: plan.parameters)
    // Known before the COMMIT, which may succeed without an answer.
    var replaced: [TableRun] = []
    let begun = try await PostgresConnection.persistently(within: lease) {
      () async throws(BatchError) in
      try await begin(identity, plan, request, after: newest, replacing: &replaced)
    }
    guard let begun else { return .again }
    for other in replaced {
      onEvent(.setAside("run \(other.run)"))
      // Nobody resumes it, and whoever reads all files of the folder would have its rows twice.
      plan.exportFolder?.removeParts(ofRun: other.run, but: [])
    }
    let ownPlan = plan.newArchive == nil ? plan : try await self.plan(of: begun)
    return try await takePart(in: begun, ownPlan, RunEvent.started)
  }

  /// Tries once to begin a run.
  ///
  /// One host at a time decides: it holds a lock on the job while it selects the identifiers. The
  /// lock belongs to a transaction that holds no other locks and does not prevent vacuuming.
  private func begin(
    _ identity: RunIdentity,
    _ plan: PostgresPlan,
    _ request: RunRequest,
    after newest: String?,
    replacing replaced: inout [TableRun]
  ) async throws(BatchError) -> TableRun? {
    let (tables, place) = (requireTables(), address.description)
    let fetch = PostgresFetch(
      plan.query,
      from: plan.address,
      readers: terms.workerCount,
      within: stop.opening
    )
    let (name, lease) = (cause.name, lease)
    let (undone, undoable) = (plan.undone, work.undoableJob)
    let isIncrement = work.job.source.isIncremental
    let (unfinished, own) = try await opening.perform {
      session throws(BatchError) -> ([TableRun]?, TableRun?) in
      // Before the tables are created, which a refusal would leave behind.
      try plan.refuseRunsElsewhere(besides: tables, in: session)
      try session.transaction { () throws(BatchError) in try tables.create(in: session) }
      try session.begin(TransactionOptions(idleTimeout: lease))
      do throws(BatchError) {
        if let undone { try tables.lock(job: undone.request.cause.name, in: session) }
        try tables.lock(job: name, in: session)
        let runs = try tables.runs(ofJob: name, in: session)
        let undo = try undoable.flatMap { name throws(BatchError) in
          try tables.undoInTheWay(after: runs, ofJob: name, in: session)
        }
        let own = runs.first { $0.run == identity.run }
        // Another host has exported an increment meanwhile: this one would begin where that one did.
        if own == nil, isIncrement, newest != runs.last?.run {
          session.rollBack()
          return (nil, nil)
        }
        if own == nil,
          case .begin(let replaced) = try RunDecision(
            FoundRuns(runs, during: undo),
            request,
            job: name
          )
        {
          let unfinished = replaced.map(\.record)
          try tables.lock(job: name, over: plan.table, in: session)
          try plan.refuseRunsElsewhere(besides: tables, in: session)
          var others = unfinished + (undone.map { [$0.recorded.run] } ?? [])
          if undo != nil {
            others += try tables.runs(ofJob: ProgramWork.jobName(undoing: name), in: session)
              .filter { $0.state == .running }
          }
          try tables.refuseIfAlive(others, within: lease, in: session)
          return (unfinished, nil)
        }
        session.rollBack()
        return (nil, own)
      } catch {
        session.rollBack()
        throw error
      }
    }
    guard let unfinished else { return own }
    replaced = unfinished
    let staying = Task { [opening] in await opening.stayInTransaction(endingAfter: lease) }
    defer { staying.cancel() }
    do throws(BatchError) {
      let given = try await opening.perform { session throws(BatchError) in
        try plan.givenIdentifiers(in: session)
      }
      let list: PackedIdentifiers
      if let given {
        list = given
      } else {
        list = try await fetch.run(store: plan.database.derivedIdentity)
      }
      let run = identity.run
      var noted = try metadata(of: identity, plan)
      noted.schema = plan.expected.recorded
      try noted.notePlan(
        of: cause,
        options,
        options.policy(of: cause),
        plan.statements,
        over: list,
        plan.expected.planned
      )
      let metadata = noted
      // A host that cannot start its programs is refused before there is a run.
      try plan.start(run: run, atMost: terms.workerCount, hasRows: list.count > 0)
      let begun = try await opening.perform { session throws(BatchError) -> TableRun? in
        guard session.isInTransaction else {
          let error = PostgresError("the connection broke", state: .connectionFailure)
          throw BatchError(error, server: place)
        }
        for other in unfinished {
          try tables.setAside(other.run, in: session)
          try tables.note([OperatorAction(.setAside)], of: other.run, in: session)
        }
        // Ensures that the rows were selected under the same schema.
        try plan.expected.verify(in: session)
        var expected = plan.expected
        if let archive = plan.newArchive {
          try archive.create(in: session)
          try expected.add(archive: archive.name, in: session)
        }
        if let undo = plan.undo {
          if undoable != nil { try tables.removeExpiredUndos(ofJob: name, in: session) }
          try tables.keep(undo, for: plan.job.undo?.keep, in: session)
        }
        try plan.beginUndo(in: tables, session)
        let description = try TableRun.Description(metadata, expecting: expected)
        let canary = metadata.canaryPositions(of: list.count)
        try tables.begin(run, description, over: list, canary: canary, in: session)
        try session.commit()
        return try tables.runs(ofJob: name, in: session).first { $0.run == run }
      }
      guard let begun else {
        try plan.stop()
        return nil
      }
      return begun
    } catch {
      try? await opening.perform { session throws(BatchError) in session.rollBack() }
      try? plan.stop()
      throw error
    }
  }

  private func metadata(
    of identity: RunIdentity,
    _ plan: PostgresPlan
  ) throws(BatchError) -> RunMetadata {
    var metadata = RunMetadata(
      run: identity.run,
      job: cause.name,
      startedAt: identity.startedAt,
      fingerprint: try plan.fingerprint.text,
      schema: [],
      ledger: .store
    )
    metadata.startedMicroseconds = identity.startedMicroseconds
    metadata.increment = plan.increment
    metadata.table = plan.tableIdentity
    metadata.database = plan.address.description
    metadata.runID = options.runID
    metadata.canary = cause.canaryRows
    metadata.invocation = cause.invocation(commandLine: options.commandLine)
    metadata.undone = plan.undone?.recorded.run.run
    metadata.undoableRows = plan.undone?.recorded.undoable.rows
    metadata.parameters = plan.parameters.recorded
    metadata.loaded = plan.loaded
    return metadata
  }
}

extension TableRun.Description {
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
  /// Sends a statement in an open transaction at intervals, until the task is cancelled, so that
  /// the server ends the transaction only if this process is gone.
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
  func refuseIfAlive(
    _ runs: [TableRun],
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
