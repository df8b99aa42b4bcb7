#if PostgreSQL
import BatchJobs
package import BatchRuns
package import BatchIdentifiers
import BatchPlatform
import SystemPackage

/// A process's part of a run that is recorded in tables: the spans that it gets, until nothing is
/// left or a stop is requested.
package final class TablePart: RunPart {
  private let plan: PostgresPlan
  private let tables: RunTables
  private let run: TableRun
  private let terms: RunTerms
  private let hooks: RunHooks
  private let stop: TableRunStop
  private let onEvent: @Sendable (RunEvent) -> Void
  private let own: PostgresConnection
  private let session: TableProgress
  private let presence: HostPresence
  private let spans: LeasedSpans
  /// How this process came to work on a run that had begun before; nil if it began it, or if that is
  /// noted.
  private let entry: OperatorAction?
  private let recordedParts = Lock<[ExportPart]>([])
  private let workers = Lock<[PostgresConnection]>([])
  private let watching: Task<Void, Never>
  private var health: ServerWatch?
  private var looking: Task<Void, Never>?
  /// How the chunks have ended; nil if they failed with ``failure``.
  private var ending: RunStateMachine.Ending?
  private var failure: BatchError?
  private var reason: String?
  /// The trial of the run; nil once it is over.
  private var trial: CanaryTrial?
  /// How often the run had been asked to continue when its canary was done.
  private var resumptionsBefore: Int?
  /// Whether this process ended the run, and therefore reports the end.
  private var hasEndedRun = false

  private var cause: any RunCause { plan.cause }
  private var lease: Duration { cause.database.lease }

  /// - Throws: `BatchError` if nothing was done, for example because the server does not answer.
  init(
    of run: TableRun,
    _ plan: PostgresPlan,
    in tables: RunTables,
    _ terms: RunTerms,
    notifying hooks: RunHooks,
    stop: TableRunStop,
    begins: (RunSummary) -> RunEvent,
    onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async throws(BatchError) {
    let (address, lease) = (plan.address, plan.cause.database.lease)
    let connection = { label in
      PostgresConnection(label: label, address: address, within: stop.closing)
    }
    let own = connection("batch")
    let heartbeat = HostHeartbeat(tables, run: run.run, host: UUID().uuidString.lowercased())
    let presence = HostPresence(
      heartbeat,
      name: ProcessInfo.processInfo.hostName,
      process: ProcessInfo.processInfo.processIdentifier,
      lease: lease,
      by: own
    )
    try plan.exportFolder?.make()
    let session = TableProgress(
      try await tables.snapshot(ofRun: run.run, at: address, within: lease, by: own),
      stop.waits
    )
    var trial = CanaryTrial(of: try run.described(), terms.policy, total: run.total)
    if trial != nil {
      let isOver = try await own.persistently(within: lease) { session throws(BatchError) in
        try tables.isCanaryOver(ofRun: run.run, in: session)
      }
      if isOver { trial = nil }
    }
    try await presence.join(within: lease)
    watching = Task { await session.watch(run.run, in: tables, by: own, as: presence) }
    spans = LeasedSpans(
      SpanClaims(heartbeat, lease: lease, inOrder: plan.isInOrder),
      of: plan.table,
      key: plan.key,
      by: connection("batch.spans")
    )
    self.trial = trial
    spans.claimOnly(trial?.positions)
    (self.run, self.plan, self.tables, self.terms) = (run, plan, tables, terms)
    (self.hooks, self.stop, self.onEvent) = (hooks, stop, onEvent)
    (self.own, self.session, self.presence) = (own, session, presence)
    let event = begins(session.summary())
    entry =
      switch event {
      case .joined: OperatorAction(.joined)
      case .resumed: OperatorAction(.resumed)
      default: nil
      }
    onEvent(event)
  }

  package var positions: RunPositions { .granted(spans) }
  package var meanChunkSize: Int? { nil }
  package var chunkBytes: ChunkBytes { ChunkBytes() }
  package var spareWorkers: Int { plan.spareWorkers }
  package var start: ContinuousClock.Instant { session.start }
  /// Other processes may still be working, even if one was killed.
  package var followsKill: Bool { false }
  package var requests: any RunRequests { TableRequests(presence) }
  package var writer: (any ChunkWriter)? { nil }
  package var workersCommit: Bool { true }
  package var notifier: any RunNotifier { hooks }

  package var addStoreConditions: (@Sendable (inout RunThrottle.Conditions) -> Void)? {
    { [health] conditions in health?.add(to: &conditions) }
  }

  package func summary() -> RunSummary { session.summary() }

  package func unapprovedPlan() async throws(BatchError) -> PlannedRun? {
    let (tables, run) = (tables, run)
    guard try run.described().planned?.approvals ?? 0 > 0 else { return nil }
    return try await own.persistently(within: lease) { session throws(BatchError) in
      try tables.unapprovedPlan(of: run, in: session)
    }
  }

  package var isTrying: Bool { trial != nil }

  package func canaryGate(_ asked: RunControl) async throws(BatchError) -> RunGate? {
    guard let trial else { return nil }
    let resumptions = asked.resumptions ?? 0
    resumptionsBefore = resumptionsBefore ?? resumptions
    let (tables, run) = (tables, run.run)
    let done = try await own.persistently(within: lease) { session throws(BatchError) in
      try tables.canary(ofRun: run, in: session)
    }
    if let done {
      let gate = try await trial.gate(
        failed: done.failed,
        waited: done.waited,
        isResumed: resumptions > resumptionsBefore ?? 0,
        difference: differenceFromRecords
      )
      if let gate { return gate }
      try await own.persistently(within: lease) { session throws(BatchError) in
        try tables.endCanary(ofRun: run, in: session)
      }
    }
    self.trial = nil
    spans.claimOnly(nil)
    return nil
  }

  /// The first difference between the changed rows and what the undo records say of them.
  private func differenceFromRecords() async throws(BatchError) -> String? {
    let (job, run) = (plan.job, run.run)
    return try await job.inSession { session throws(BatchError) in
      let request = UndoRequest(of: job, run: run, fresh: true)
      let plan = try PostgresPlan(undoing: request, of: job, in: session)
      let (outcomes, left) = try plan.foreseenUndo(telling: 1, in: session)
      if outcomes.succeeded == outcomes.total { return nil }
      return left.first ?? "rows are gone, or as before"
    }
  }

  package func makeProcessor() -> any ChunkProcessor {
    for note in plan.notes { onEvent(.message("warning: \(note)")) }
    if let increment = plan.increment { onEvent(.message(increment.announcement)) }
    let connect = { @Sendable [address = plan.address, stop, workers] label in
      let worker = PostgresConnection(label: label, address: address, within: stop.closing)
      workers.withLock { $0.append(worker) }
      return worker
    }
    let policy = cause.policy.skip.failurePolicy(of: run.total)
    if case .export(let export, let action) = plan.work {
      guard let folder = plan.exportFolder,
        let settings = action.files(ofJob: cause.name, header: export.header)
      else {
        preconditionFailure("an export to one file is a run of one host")
      }
      return ExportPartsProcessor(
        export: export,
        folder: folder,
        settings: settings,
        parts: parts,
        recorded: recordedParts,
        spans: spans,
        key: plan.key,
        host: ProcessInfo.processInfo.hostName,
        size: terms.policy.chunk.size,
        onFailure: policy,
        statementLimit: PostgresPlan.statementLimit,
        reconnection: lease,
        connect: connect
      )
    }
    if let undone = plan.undone?.recorded.run {
      onEvent(.message("undoing run \(undone.run), which began at \(undone.startedAt)"))
    }
    let fence = SpanFence(tables, run: run.run)
    return plan.processor(of: spans, .entered(fence), run: run.run, onFailure: policy, by: connect)
  }

  private var parts: ExportParts { ExportParts(SpanFence(tables, run: run.run)) }

  /// Checks the server before the first chunk, which might make others wait longer for a lock, and
  /// regularly afterwards.
  package func attend() async {
    if let entry {
      let (tables, run) = (tables, run.run)
      // The rows do not depend on it.
      try? await own.persistently(within: lease) { session throws(BatchError) in
        try session.transaction(.bookkeeping) { () throws(BatchError) in
          try tables.note([entry], of: run, in: session)
        }
      }
    }
    let health = ServerWatch(
      over: plan.table,
      at: plan.address,
      limits: .init(yieldsToVacuum: cause.policy.throttle.yieldsToVacuum),
      workers: workers.withLock { $0 },
      within: stop.closing
    )
    await health.look()
    self.health = health
    looking = Task { await health.run() }
  }

  package func settle() async throws(BatchError) {
    looking?.cancel()
    await looking?.value
    try plan.stop()
  }

  package func committed(_ chunk: Range<Int>, _ commit: Commit) { session.committed(commit) }

  package func hold(_ hold: RunThrottle.Hold) -> Bool { session.hold(hold) }

  package func release() { _ = session.hold(nil) }

  package func tune(_ throttle: RunPolicy.Throttle) { session.tune(throttle) }

  package func pass(_ stalled: StalledChunk?) -> Bool {
    session.note(hasSpan: spans.hasAny)
    return session.note(
      wait: plan.wait(of: RunSession.untoldWait) ?? stalled?.words(try? plan.statementText())
    )
  }

  package func shouldTell(every interval: Duration) -> Bool { session.shouldTell(every: interval) }

  package func takeMessages() -> [String] { plan.takeMessages() }

  // MARK: The end

  /// Each process does so; the server lets one at a time.
  package func makeSpaceReturn() async -> (any SpaceReturn)? {
    guard cause.afterwards == .vacuum, plan.undone == nil,
      session.summary().outcomes.succeeded > 0
    else { return nil }
    // It waits for another VACUUM as long as that takes.
    let waits = ServerWaits(at: plan.address, lockLimit: .seconds(31_536_000)) { [onEvent] words in
      onEvent(.message(words))
    }
    let connection = PostgresConnection(
      label: "batch.vacuum",
      address: plan.address,
      within: PostgresInterrupter(within: stop.closing, telling: waits)
    )
    return TableVacuum(of: plan.table, after: run.run, recordedIn: tables, by: connection) {
      [presence] in
      var requests = TableRequests(presence)
      return requests.look()?.isCancelled ?? false
    }
  }

  /// What the process recorded that was done first stays.
  package func note(_ space: ReturnedSpace) async {
    let (tables, run) = (tables, run.run)
    try? await own.persistently(within: lease) { session throws(BatchError) in
      try tables.changeCourse(ofRun: run, in: session) { course in
        if course.afterwards?.bytesAfter == nil { course.afterwards = space }
      }
    }
  }

  package func record(
    _ ending: RunStateMachine.Ending,
    _ failure: BatchError?,
    because reason: String?
  ) async throws(BatchError) {
    (self.ending, self.failure, self.reason) = (ending, failure, reason)
    if ending == .stopped { stop.hasStopped() }
    guard ending == .completed, failure == nil else { return }
    do throws(BatchError) {
      try await publishParts()
      let plan = plan
      for message in try await DetachedThread.run({ () throws(BatchError) in plan.additions }) {
        onEvent(.message(message))
      }
      // A finished run counts no more time.
      await presence.beat(session.report)
      let (tables, run, host) = (tables, run.run, presence.host)
      hasEndedRun = try await own.persistently(within: lease) { session throws(BatchError) in
        try tables.finish(run, by: host, in: session)
      }
      guard hasEndedRun, let leftovers = try? await leftovers() else { return }
      for message in leftovers { onEvent(.message(message)) }
    } catch {
      guard error.code == .interrupted else { throw error }
      // The next run does the rest.
      self.ending = .stopped
    }
  }

  /// A problem here must not fail an undo that is complete.
  private func leftovers() async throws(BatchError) -> [String] {
    guard plan.undone != nil else { return [] }
    return try await own.persistently(within: lease) { [plan] session throws(BatchError) in
      try plan.leftovers(in: session)
    }
  }

  package func fail(_ error: BatchError) { failure = failure ?? error }

  package func end() async -> TableEnd {
    looking?.cancel()
    await presence.beat(session.report)
    do throws(BatchError) {
      let snapshot = try await tables.snapshot(
        ofRun: run.run,
        at: plan.address,
        within: lease,
        by: own
      )
      session.update(snapshot)
      let (tables, run) = (tables, run.run)
      try? await own.perform { session throws(BatchError) in
        try tables.changeCourse(ofRun: run, in: session) { $0.pace.add(snapshot) }
      }
    } catch {
      if error.code == .interrupted {
        if ending == .completed { ending = .stopped }
      } else if failure == nil || error.code == .otherRun {
        // If the run was removed, report that rather than what followed from it.
        failure = terms.phrase(error)
      }
    }
    let summary = endSummary
    watching.cancel()
    await watching.value
    // If releasing spans fails, they are taken over when their leases expire.
    try? await presence.leave(HostExit(summary))
    await spans.end()
    await own.close()
    return TableEnd(
      summary: summary,
      cause: cause,
      notifier: hooks,
      // The process that ended a finished run reports the end.
      isDeliveredHere: !summary.state.isFinished || hasEndedRun,
      run: run,
      tables: tables,
      address: plan.address,
      lease: lease,
      stop: stop
    )
  }

  private var endSummary: RunSummary {
    var summary = session.summary()
    if let failure {
      summary.state = .failed
      summary.failure = failure
    } else if ending == .stopped, !summary.state.isFinished {
      summary.state = .stopped
      summary.stopReason = reason
    } else if !summary.state.isFinished {
      summary.state = .failed
      summary.failure = BatchError(
        .alreadyRunning,
        "another run of this job replaces this one",
        at: "run \(run.run)",
        remedy: "see batch status"
      )
    }
    summary.throttle = nil
    summary.waiting = nil
    summary.etaSeconds = nil
    return summary
  }

  /// Publishes the manifest of an export to parts; each host does so, before the run counts as
  /// finished.
  private func publishParts() async throws(BatchError) {
    guard case .export(let export, _) = plan.work, let folder = plan.exportFolder else { return }
    let (parts, total) = (parts, run.total)
    let recorded = try await own.persistently(within: lease) { session throws(BatchError) in
      try parts.recorded(ofPositions: total, in: session)
    }
    // Hosts may have a folder each, so that files of others need not be here.
    let own = recordedParts.withLock { $0 }
    let host = ProcessInfo.processInfo.hostName
    try folder.require(
      recorded.filter { $0.host == host }.map { part in own.first { $0.file == part.file } ?? part }
    )
    try plan.refuseOccupiedFolder()
    try folder.publish(recorded, ofRun: run.run, export.format.form(ofJob: cause.name))
  }
}

extension HostExit {
  /// The end of a process's part, by its summary.
  init(_ summary: RunSummary) {
    switch summary.state {
    case .failed: self.init(.failed, because: summary.error)
    case .stopped: self.init(.stopped, because: summary.stopReason)
    default: self.init(.finished, because: nil)
    }
  }
}

extension RunTables {
  /// The state of a run; if it was removed, the error says so.
  fileprivate func snapshot(
    ofRun run: String,
    at address: ServerAddress,
    within reconnectTimeout: Duration,
    by connection: PostgresConnection
  ) async throws(BatchError) -> TableRunSnapshot {
    let snapshot = try await connection.persistently(within: reconnectTimeout) {
      session throws(BatchError) in
      do throws(BatchError) {
        return try self.snapshot(ofRun: run, in: session)
      } catch {
        guard error.postgres?.state == .undefinedTable else { throw error }
        return nil
      }
    }
    if let snapshot { return snapshot }
    throw BatchError(
      .otherRun,
      "run \(run) is no longer in the database",
      at: address.description,
      remedy: """
        find out who removed it (batch cleanup does), or whether another server that lacks it has taken over; \
        batch run starts a new run
        """
    )
  }
}
#endif
