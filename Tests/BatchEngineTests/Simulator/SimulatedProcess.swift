@testable import BatchEngine
import BatchIdentifiers

/// A process of a simulation: the engine's own logic and session, and what performs its effects.
final class SimulatedProcess {
  let id: Int
  let workers: Int
  /// When it began with its chunks, in microseconds.
  var start = 0
  var logic: RunLogic?
  var session: RunSession?
  /// The failed identifiers to retry, if it is a retry.
  var retried: RetriedIdentifiers?
  /// What its lane knows of the ledger, and the version of the store that it knows it of.
  var ledger = DoneRanges()
  var versionSeen = 0
  /// How often a backup had been restored when it last saw the ledger.
  var restores = 0
  /// The same when it began with its chunks.
  var restoresAtStart = 0
  /// Chunks that wait for the lane, and whether it is working.
  var waiting: [Range<Int>] = []
  var isCommitting = false
  var busyWorkers: Set<Int> = []
  /// Chunks that were prepared.
  var ready: Set<Range<Int>> = []
  /// Chunks between handed out and answered.
  var outstanding: [Range<Int>] = []
  var events: [RunLogic.Event] = []
  var ending: RunStateMachine.Ending?
  var isAlive = true
  /// When its statements are interrupted, in microseconds.
  var graceEnd: Int?

  // What the naive model knows of it.

  /// The number of committed identifiers, and the maximum per commit.
  var committedCount = 0
  var largestChunk = 0
  /// Whether anything was done to it that excuses a failure.
  var mayFail = false
  /// Whether it was told to stop.
  var mayStop = false
  /// Whether more identifiers failed than may.
  var isPoisoned = false
  /// How often chunks have failed transiently, by their first positions.
  var tries: [Int: Int] = [:]

  init(_ id: Int, workers: Int) {
    self.id = id
    self.workers = workers
  }

  /// The most chunks that may be anywhere between worker and committed.
  var mostInFlight: Int { 2 * workers + 8 }
}

/// What a session asks of its store.
struct SimulatedLedger: RunLedger {
  // One task drives a whole simulation.
  nonisolated(unsafe) let simulation: Simulation
  nonisolated(unsafe) let process: SimulatedProcess

  func makeDurable(
    _ progress: inout RunProgress,
    seen done: DoneRanges,
    knowing failedCount: Int?
  ) throws(BatchError) -> [FailedIdentifier]? {
    try simulation.synchronize(process, &progress, failedCount: failedCount)
  }

  func finish(_ progress: inout RunProgress) throws(BatchError) {
    try simulation.finish(process)
  }
}
