@testable import BatchRuns
import BatchIdentifiers

/// The part of a process, as `FilePart` has it.
struct SimulatedPart: RunPart {
  let process: SimulatedProcess
  let session: RunSession

  private var simulation: Simulation { process.simulation }
  private var interval: Duration { process.policy.checkpoint.interval }

  var positions: RunPositions { .all(session.positions) }
  var meanChunkSize: Int? { session.meanChunkSize }
  var chunkBytes: ChunkBytes { ChunkBytes() }
  var spareWorkers: Int { 0 }
  var start: ContinuousClock.Instant { session.start }
  var followsKill: Bool { session.followsKill }
  var requests: any RunRequests { SimulatedRequests(simulation: simulation) }
  var writer: (any ChunkWriter)? { process }
  var workersCommit: Bool { false }
  var notifier: any RunNotifier { process }

  var addStoreConditions: (@Sendable (inout RunThrottle.Conditions) -> Void)? {
    { [simulation] conditions in
      let isPaused = conditions.isPaused
      conditions = simulation.conditions
      conditions.isPaused = isPaused
    }
  }

  func unapprovedPlan() -> PlannedRun? { nil }

  var isTrying: Bool { session.isTrying }

  func canaryGate(_ asked: RunControl) async throws(BatchError) -> RunGate? {
    try process.mayCrash()
    do throws(BatchError) {
      let gate = try await session.canaryGate(asked) { process.differenceInCanary() }
      process.waits(at: gate)
      return gate
    } catch {
      process.failedAfterCanary(error)
      throw error
    }
  }

  func summary() -> RunSummary { session.summary() }

  func makeProcessor() throws(BatchError) -> any ChunkProcessor {
    try process.mayCrash()
    return process
  }

  func attend() {}

  func settle() throws(BatchError) { try process.mayCrash() }

  func committed(_ chunk: Range<Int>, _ commit: Commit) async throws(BatchError) {
    process.note("hears that \(chunk) is committed")
    process.demand(
      process.retried != nil || !session.done.overlaps(chunk),
      "\(chunk) is committed twice"
    )
    process.demandPace(chunk)
    process.isRecording = true
    defer { process.isRecording = false }
    try await session.committed(chunk, commit, recordingEvery: interval)
  }

  func hold(_ hold: RunThrottle.Hold) throws(BatchError) -> Bool {
    process.note("is held: \(hold.reason)")
    simulation.occur(hold.isPace ? .pace : hold.cause == .maximumWAL ? .longLog : .hold)
    process.heldSince = process.heldSince ?? simulation.now
    return try session.hold(hold)
  }

  func tune(_ throttle: RunPolicy.Throttle) {}

  func release() throws(BatchError) {
    process.note("is released")
    process.heldSince = nil
    process.lastReturn = simulation.now
    try session.release()
  }

  func pass(_ stalled: StalledChunk?) throws(BatchError) -> Bool {
    process.demandProgress()
    let waits = process.callCount > 0 && simulation.now > process.lastReturn + 2_000_000
    return try session.pass(waitingFor: waits ? "a lock" : nil, recordingEvery: interval)
  }

  func shouldTell(every interval: Duration) -> Bool { session.shouldTell(every: interval) }

  func takeMessages() -> [String] { [] }

  func record(
    _ ending: RunStateMachine.Ending,
    _ failure: BatchError?,
    because reason: String?
  ) async throws(BatchError) {
    try process.mayCrash()
    process.note("has ended: \(ending)")
    simulation.demand(process.callCount == 0, "it has ended, and a call is going on")
    simulation.demand(session.done == process.ledger, "what is committed was not told")
    switch ending {
    case .completed:
      simulation.demand(session.isComplete, "it is completed, and \(session.remaining) is left")
      process.demandAllTried()
    case .stopped: process.demandStop()
    case .failed:
      simulation.demand(process.mayFail && failure != nil, "it has failed for no reason")
    }
    let backoff = Backoff(process.policy.retry)
    try await session.record(ending, failure, because: reason, trying: backoff)
  }

  func fail(_ error: BatchError) { session.fail(error) }

  func end() -> SimulatedEnd {
    SimulatedEnd(process: process, checkpoint: session.checkpoint, summary: session.summary())
  }
}

/// The end of a simulation's run.
struct SimulatedEnd: RunEnd {
  let process: SimulatedProcess
  let checkpoint: Checkpoint
  let summary: RunSummary

  var notifier: (any RunNotifier)? { process }
  var isDeliveredHere: Bool { true }

  func report() throws(BatchError) { try process.mayCrash() }

  func verify() throws(BatchError) { try process.verify() }

  func leave(isDelivered: Bool) { try? process.mayCrash() }

  func acknowledge() throws(BatchError) { try checkpoint.acknowledge() }
}
