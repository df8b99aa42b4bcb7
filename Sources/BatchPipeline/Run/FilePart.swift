import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// A process's part of a run that is recorded in a file: all of the rest.
package final class FilePart: RunPart {
  let cause: any RunCause
  let plan: any RunPlan
  /// The identifiers that chunks refer to, by position.
  package let list: PackedIdentifiers
  /// The writer of the store; nil if the run does not write to it.
  package let lane: WriterLane?
  package let session: RunSession
  let stop: StopSwitch
  package let onEvent: @Sendable (RunEvent) -> Void

  init(
    _ cause: any RunCause,
    _ plan: any RunPlan,
    over list: PackedIdentifiers,
    by lane: WriterLane?,
    _ session: RunSession,
    stop: StopSwitch,
    onEvent: @escaping @Sendable (RunEvent) -> Void
  ) {
    self.cause = cause
    self.plan = plan
    self.list = list
    self.lane = lane
    self.session = session
    self.stop = stop
    self.onEvent = onEvent
    session.beginTrial(by: cause.policy)
  }

  package var onFailure: FailurePolicy { session.failurePolicy(cause.policy.skip) }

  package var positions: RunPositions { .all(plan.parts(of: session.positions)) }
  package var meanChunkSize: Int? { session.meanChunkSize }
  package var spareWorkers: Int { plan.spareWorkers }
  package var start: ContinuousClock.Instant { session.start }
  package var followsKill: Bool { session.followsKill }
  package var requests: any RunRequests { ControlFile(of: cause.files) }
  package var writer: (any ChunkWriter)? { lane }
  package var workersCommit: Bool { false }
  package var addStoreConditions: (@Sendable (inout RunThrottle.Conditions) -> Void)? { nil }
  package var notifier: any RunNotifier { plan.hooks }

  package var chunkBytes: ChunkBytes {
    ChunkBytes(
      ofRows: session.remaining.reduce(0) { $0 + $1.count },
      in: cause.database.path
    )
  }

  package func summary() -> RunSummary { session.summary() }

  /// A run that has begun with its rows was approved.
  package func unapprovedPlan() -> PlannedRun? {
    session.done.count > 0 ? nil : session.checkpoint.unapprovedPlan(of: cause)
  }

  package var isTrying: Bool { session.isTrying }

  package func canaryGate(_ asked: RunControl) async throws(BatchError) -> RunGate? {
    try await session.canaryGate(asked) { () throws(BatchError) in
      try await plan.differenceFromRecords(ofRun: session.run)
    }
  }

  package func makeProcessor() async throws(BatchError) -> any ChunkProcessor {
    let processor: any ChunkProcessor
    (processor, session.ledger) = try await plan.processor(for: self)
    return processor
  }

  package func attend() async {
    let approvals = session.checkpoint.approvals(of: cause).map { OperatorAction($0) }
    session.note(approvals + (session.entry.map { [$0] } ?? []))
  }

  package func note(_ actions: [OperatorAction]) { session.note(actions) }

  /// A run gives space back once, and only if it has changed rows.
  package func makeSpaceReturn() -> (any SpaceReturn)? {
    guard let kind = cause.afterwards, let lane, session.done.outcomes.succeeded > 0,
      session.progress.afterwards?.bytesAfter == nil
    else { return nil }
    return StoreVacuum(kind, by: lane, retrying: cause.policy.retry)
  }

  package func note(_ space: ReturnedSpace) { session.note(space) }

  package func settle() async throws(BatchError) { try plan.stop() }

  package func committed(_ chunk: Range<Int>, _ commit: Commit) async throws(BatchError) {
    try await session.committed(chunk, commit, recordingEvery: cause.policy.checkpoint.interval)
  }

  package func end(at position: Int) { session.end(at: position) }

  package func hold(_ hold: RunThrottle.Hold) throws(BatchError) -> Bool { try session.hold(hold) }

  package func release() throws(BatchError) { try session.release() }

  package func tune(_ throttle: RunPolicy.Throttle) { session.tune(throttle) }

  package func pass(_ stalled: StalledChunk?) throws(BatchError) -> Bool {
    let lock = lane?.lockWait.wait(of: RunSession.untoldWait)
    return try session.pass(
      waitingFor: plan.wait(of: RunSession.untoldWait) ?? lock ?? stalled?.words(plan.statement),
      isLocked: lock != nil,
      recordingEvery: cause.policy.checkpoint.interval
    )
  }

  package func shouldTell(every interval: Duration) -> Bool { session.shouldTell(every: interval) }

  package func takeMessages() -> [String] { plan.takeMessages() }

  package func record(
    _ ending: RunStateMachine.Ending,
    _ failure: BatchError?,
    because reason: String?
  ) async throws(BatchError) {
    // It may have been cancelled while it waited for approval.
    if ending == .stopped, let asked = RunControl(of: cause.files), asked.isCancelled {
      session.note(asked.actions ?? [])
    }
    try await session.record(
      ending,
      failure,
      because: reason,
      trying: Backoff(cause.policy.retry)
    )
  }

  package func fail(_ error: BatchError) { session.fail(error) }

  package func end() async -> FileEnd {
    let summary = session.summary()
    if summary.state.isFinished {
      for message in await plan.leftovers() { onEvent(.message(message)) }
    }
    await plan.close()
    return FileEnd(
      summary: summary,
      notifier: plan.hooks,
      cause: cause,
      checkpoint: session.checkpoint,
      lane: lane
    )
  }
}

/// The end of a run that is recorded in a file and, if it writes, in its store.
package struct FileEnd: RunEnd {
  package let summary: RunSummary
  package let notifier: (any RunNotifier)?
  let cause: any RunCause
  /// The run's file; nil if only its store knows the run.
  let checkpoint: Checkpoint?
  let lane: WriterLane?

  package var isDeliveredHere: Bool { true }

  package func report() throws(BatchError) {
    guard let report = cause.report, let checkpoint else { return }
    try RunReport(
      summary,
      of: cause,
      checkpoint.metadata,
      checkpoint.reportedFailures(),
      checkpoint.pace(),
      checkpoint.actions(of: cause),
      warnings: cause.risks
    ).write(to: report, permissions: cause.files.permissions)
  }

  package func verify() async throws(BatchError) { try await lane?.verifyStore() }

  package func leave(isDelivered: Bool) async {
    if isDelivered {
      // The acknowledgement in the only record must be the last write.
      guard let checkpoint else { return }
      // The acknowledgement in the file is authoritative; the store's is for a file that is lost.
      if checkpoint.metadata.ledger == .store { try? await lane?.acknowledge(summary.run) }
    }
    try? await lane?.release()
    _ = try? await lane?.emptyLog()
    await lane?.close()
  }

  package func acknowledge() async throws(BatchError) {
    if let checkpoint { return try checkpoint.acknowledge() }
    try await lane?.acknowledge(summary.run)
    await lane?.close()
  }
}
