import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// A process's part of a run that is recorded in a file: all of it that is left.
final class FilePart: RunPart {
  let cause: any RunCause
  let plan: any RunPlan
  /// The identifiers that chunks refer to, by position.
  let list: PackedIdentifiers
  /// The writer of the store; nil if nothing is written there.
  let lane: WriterLane?
  let session: RunSession
  let stop: StopSwitch
  let onEvent: @Sendable (RunEvent) -> Void

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
  }

  /// How to treat failing identifiers of the run.
  var onFailure: FailurePolicy { session.failurePolicy(cause.policy.skip) }

  var positions: RunPositions { .all(session.remaining) }
  var meanChunkSize: Int? { session.meanChunkSize }
  var spareWorkers: Int { plan.spareWorkers }
  var start: ContinuousClock.Instant { session.start }
  var followsKill: Bool { session.followsKill }
  var requests: any RunRequests { ControlFile(of: cause.files) }
  var writer: (any ChunkWriter)? { lane }
  var workersCommit: Bool { false }
  var addStoreConditions: (@Sendable (inout RunThrottle.Conditions) -> Void)? { nil }
  var notifier: any RunNotifier { plan.hooks }

  var chunkBytes: ChunkBytes {
    ChunkBytes(
      ofRows: session.remaining.reduce(0) { $0 + $1.count },
      in: cause.database.path
    )
  }

  func summary() -> RunSummary { session.summary() }

  func makeProcessor() async throws(BatchError) -> any ChunkProcessor {
    let processor: any ChunkProcessor
    (processor, session.ledger) = try await plan.processor(for: self)
    return processor
  }

  func attend() async {}

  func settle() async throws(BatchError) { try plan.stop() }

  func committed(_ chunk: Range<Int>, _ commit: Commit) async throws(BatchError) {
    try await session.committed(chunk, commit, recordingEvery: cause.policy.checkpoint.interval)
  }

  func hold(_ hold: RunThrottle.Hold) throws(BatchError) -> Bool { try session.hold(hold) }

  func release() throws(BatchError) { try session.release() }

  func pass() throws(BatchError) -> Bool {
    let wait =
      plan.wait(of: RunSession.untoldWait) ?? lane?.lockWait.wait(of: RunSession.untoldWait)
    return try session.pass(
      waitingFor: wait,
      recordingEvery: cause.policy.checkpoint.interval
    )
  }

  func shouldTell(every interval: Duration) -> Bool { session.shouldTell(every: interval) }

  func takeMessages() -> [String] { plan.takeMessages() }

  func record(
    _ ending: RunStateMachine.Ending,
    _ failure: BatchError?,
    because reason: String?
  ) async throws(BatchError) {
    try await session.record(
      ending,
      failure,
      because: reason,
      trying: Backoff(cause.policy.retry)
    )
  }

  func fail(_ error: BatchError) { session.fail(error) }

  func end() async -> FileEnd {
    let summary = session.summary()
    if summary.state.isFinished {
      for message in await plan.leftBehind() { onEvent(.message(message)) }
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
struct FileEnd: RunEnd {
  let summary: RunSummary
  let notifier: (any RunNotifier)?
  let cause: any RunCause
  /// The run's file; nil if only its store knows it.
  let checkpoint: Checkpoint?
  let lane: WriterLane?

  var isToldHere: Bool { true }

  func report() throws(BatchError) {
    guard let report = cause.report, let checkpoint else { return }
    try RunReport(summary, of: cause, checkpoint).write(
      to: report,
      permissions: cause.files.permissions
    )
  }

  func verify() async throws(BatchError) { try await lane?.verifyStore() }

  func leave(isTold: Bool) async {
    if isTold {
      // The acknowledgement of the only record is the last write.
      guard let checkpoint else { return }
      // That of the file counts; the store's serves if the file is lost.
      if checkpoint.metadata.ledger == .store { try? await lane?.acknowledge(summary.run) }
    }
    try? await lane?.release()
    _ = try? await lane?.emptyLog()
    await lane?.close()
  }

  func acknowledge() async throws(BatchError) {
    if let checkpoint { return try checkpoint.acknowledge() }
    try await lane?.acknowledge(summary.run)
    await lane?.close()
  }
}
