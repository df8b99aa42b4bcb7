#if PostgreSQL
package import BatchJobs
package import BatchRuns
package import BatchIdentifiers
import BatchPlatform

/// The record of a job's runs, or of their undos, in tables of its database, shared by any number of
/// hosts.
///
/// One connection does what precedes the chunks. It is closed afterwards, because servers have few
/// connections.
package final class TableRecord: RunRecord {
  let work: TableWork
  package let options: RunOptions
  package let address: ServerAddress
  package let stopSwitch: StopSwitch
  package let stop: TableRunStop
  let opening: PostgresConnection
  package let onEvent: @Sendable (RunEvent) -> Void
  package let terms: RunTerms
  private var tables: RunTables?

  package init(
    of work: TableWork,
    on server: Job.DatabaseOptions.Server,
    _ options: RunOptions,
    _ terms: RunTerms,
    stop stopSwitch: StopSwitch,
    onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) {
    (self.work, self.options) = (work, options)
    (self.terms, self.stopSwitch) = (terms, stopSwitch)
    self.onEvent = onEvent
    address = try work.job.address(of: server)
    let waits = ServerWaits(at: address, lockLimit: work.job.database.busyTimeout) { words in
      onEvent(.message(words))
    }
    stop = TableRunStop(waits)
    opening = PostgresConnection(label: work.cause.beginner, address: address, within: stop.opening)
  }

  var cause: any RunCause { work.cause }
  package var lease: Duration { cause.database.lease }

  package func find(_ request: RunRequest) async throws(BatchError) -> FoundRuns<TableRun> {
    stopSwitch.onStop { [stop] in stop.request() }
    let (name, undoable) = (cause.name, work.undoableJob)
    try await opening.reach(within: lease)
    let (tables, found) = try await opening.persistently(within: lease) {
      session throws(BatchError) in
      let tables = try RunTables(of: session)
      let runs = try tables.runs(ofJobIfThere: name, in: session)
      let retried = request.retriesFailures ? runs.last : nil
      let isRetry = try retried.map { run throws(BatchError) in
        try tables.isRetry(run.run, in: session)
      }
      let undo = try undoable.flatMap { name throws(BatchError) in
        try tables.undoInTheWay(after: runs, ofJob: name, in: session)
      }
      var found = FoundRuns(runs, isRetry: isRetry ?? false, during: undo)
      if let retried, undoable != nil, try tables.isUndone(retried.run, in: session) {
        found.obstacle = tables.wasUndone(retried.run, in: session)
      } else if let retried, retried.state == .setAside {
        found.obstacle = tables.isSetAside(retried.run, in: session)
      }
      return (tables, found)
    }
    self.tables = tables
    return found
  }

  func requireTables() -> RunTables {
    guard let tables else { preconditionFailure("a run that nobody has found") }
    return tables
  }

  package func explained(_ error: BatchError) -> BatchError {
    error.afterStop(at: address.description)
  }

  /// Only a lock is transient here, since a lost connection was already retried.
  package func isTransient(_ error: BatchError) -> Bool { error.code == .busy }

  package func wait(_ time: Duration) async throws(BatchError) {
    try await stopSwitch.wait(for: time, at: address.description)
  }

  package func close() async { await opening.close() }

  package func result(of run: FoundRun<TableRun>) async throws(BatchError) -> RunSummary {
    do throws(BatchError) {
      _ = try work.hooks(after: run.record.described(), options)
    } catch {
      if let words = error.wordsOfOtherWork { onEvent(.message(words)) }
    }
    return try await summary(of: run.record)
  }

  package func end(of run: FoundRun<TableRun>) async throws(BatchError) -> TableEnd {
    let run = run.record
    // The hooks of another job must not be notified of this end.
    let hooks = try work.hooks(after: run.described(), options)
    onEvent(.message("the run was finished before; this concludes it"))
    return TableEnd(
      summary: try await summary(of: run),
      cause: cause,
      notifier: hooks,
      isDeliveredHere: true,
      run: run,
      tables: requireTables(),
      address: address,
      lease: lease,
      stop: stop
    )
  }

  // MARK: Taking part

  package func join(
    _ run: FoundRun<TableRun>,
    retryingFailures: Bool
  ) async throws(BatchError) -> RunEntry<TablePart> {
    retryingFailures
      ? try await reopen(run.record)
      : try await takePart(in: run.record) { $1 ? .joined($0) : .resumed($0) }
  }

  private func reopen(_ run: TableRun) async throws(BatchError) -> RunEntry<TablePart> {
    guard cause.writes else {
      throw BatchError(
        .invalidJob,
        "this job has no failed identifiers that can be retried",
        at: "run \(run.run)",
        remedy: "correct what is wrong and run it again: an export only reads"
      )
    }
    // Before anything is written, so that another job is refused.
    _ = try await plan(of: run)
    let (tables, name, action) = (requireTables(), cause.name, OperatorAction(.retried))
    try await settleHosts(of: run)
    let lease = lease
    let isOpen = try await opening.persistently(within: lease) { session throws(BatchError) in
      try session.transaction { () throws(BatchError) in
        try tables.lock(job: name, in: session)
        return try tables.reopen(run.run, retrying: action, within: lease, in: session)
      }
    }
    guard isOpen else {
      onEvent(.message("nothing has failed; nothing to retry"))
      return .result(try await summary(of: run))
    }
    return try await takePart(in: run) { summary, _ in
      var summary = summary
      let reopened = summary.failedAttempts.last?.failed ?? 0
      summary.outcomes.failed = min(reopened, summary.total - summary.done)
      return .retryingFailures(summary)
    }
  }

  /// `begins` gets the state of the run, and whether others are working on it.
  private func takePart(
    in run: TableRun,
    _ begins: (RunSummary, Bool) -> RunEvent
  ) async throws(BatchError) -> RunEntry<TablePart> {
    let plan = try await plan(of: run)
    let hasOthers = try await prepare(toTakePartIn: run)
    try plan.start(run: run.run, atMost: terms.workerCount, hasRows: true)
    return try await takePart(in: run, plan) { begins($0, hasOthers) }
  }

  func takePart(
    in run: TableRun,
    _ plan: PostgresPlan,
    _ begins: (RunSummary) -> RunEvent
  ) async throws(BatchError) -> RunEntry<TablePart> {
    let hooks = try RunHooks(cause, parameters: plan.parameters)
    await opening.close()
    return .part(
      try await TablePart(
        of: run,
        plan,
        in: requireTables(),
        terms,
        notifying: hooks,
        stop: stop,
        begins: begins,
        onEvent: onEvent
      )
    )
  }

  /// Resolves the work for a new run.
  package func plan(of run: RunIdentity) async throws(BatchError) -> PostgresPlan {
    let (work, options) = (work, options)
    return try await opening.persistently(within: lease) { session throws(BatchError) in
      try work.plan(of: run, nil, options, in: session)
    }
  }

  /// Resolves the work for a shared run, and refuses it if it differs from the run's.
  package func plan(of run: TableRun) async throws(BatchError) -> PostgresPlan {
    let (work, options) = (work, options)
    let metadata = try run.described()
    let plan = try await opening.persistently(within: lease) { session throws(BatchError) in
      let plan = try work.plan(of: RunIdentity(metadata), metadata, options, in: session)
      try plan.undo?.requireUse(in: session)
      try plan.refuseChangedFiles()
      return plan
    }
    try run.refuse(unless: plan)
    try metadata.refuse(
      unlessPlanned: cause,
      options,
      options.policy(of: cause),
      plan.statements,
      at: "run \(run.run)"
    )
    return plan
  }

  /// Waits until a process of this machine that was killed just now is known to be gone: what it
  /// holds, and what was asked of it, would otherwise count until its lease is over.
  private func settleHosts(of run: TableRun) async throws(BatchError) {
    let (tables, lease) = (requireTables(), lease)
    while true {
      let isSettled = try await opening.persistently(within: lease) { session throws(BatchError) in
        // Somebody may have dropped a table.
        if try !tables.exist(in: session) {
          try session.transaction { () throws(BatchError) in try tables.create(in: session) }
        }
        return try !tables.hosts(ofRun: run.run, in: session)
          .contains { $0.isMissing && $0.isAlive(within: lease) }
      }
      if isSettled { return }
      try? await Task.sleep(for: .milliseconds(250))
    }
  }

  /// Removes requests to processes that no longer exist.
  ///
  /// - Returns: Whether other processes send heartbeats; those of this machine must exist.
  private func prepare(toTakePartIn run: TableRun) async throws(BatchError) -> Bool {
    let (tables, lease) = (requireTables(), lease)
    try await settleHosts(of: run)
    return try await opening.persistently(within: lease) { session throws(BatchError) in
      let hosts = try tables.hosts(ofRun: run.run, in: session)
      if !hosts.contains(where: { $0.isAlive(within: lease) }) {
        try tables.request(nil, of: run.run, in: session)
      }
      let hasOthers = hosts.contains { $0.isHeard(within: lease) }
      if !hasOthers { try tables.noteResumption(of: run.run, in: session) }
      return hasOthers
    }
  }

  private func summary(of run: TableRun) async throws(BatchError) -> RunSummary {
    let tables = requireTables()
    let snapshot = try await opening.persistently(within: lease) { session throws(BatchError) in
      try tables.snapshot(ofRun: run.run, in: session)
    }
    guard let snapshot else {
      throw BatchError(
        .otherRun,
        "run \(run.run) is no longer in the database",
        remedy: "run again"
      )
    }
    return RunSummary(snapshot)
  }
}

extension PostgresConnection {
  /// Opens the first connection.
  ///
  /// Fails at once if no server listens at the address, which may be wrong; waits for a server that
  /// is starting or has no connection left.
  fileprivate nonisolated func reach(within reconnectTimeout: Duration) async throws(BatchError) {
    do {
      try await perform { _ throws(BatchError) in }
    } catch {
      guard error.code == .connectionLost, error.postgres?.state?.isTemporaryRefusal == true
      else {
        throw error
      }
      try await persistently(within: reconnectTimeout) { _ throws(BatchError) in }
    }
  }
}
#endif
