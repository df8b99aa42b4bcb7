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

/// What a session asks of its store: the chunks themselves go another way.
struct SimulatedProcessor: ChunkProcessor {
  struct Worker: ChunkWorker {
    func interrupt() {}
    func close() async {}
  }

  // One task drives a whole simulation.
  nonisolated(unsafe) let simulation: Simulation
  nonisolated(unsafe) let process: SimulatedProcess

  var inOrder: Bool { simulation.scenario.inOrder }
  var patience: Duration? { nil }

  func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Void>,
    in context: Worker
  ) async throws(BatchError) -> PreparedChunk<Void> {
    preconditionFailure("a chunk is prepared beside the simulation")
  }

  func commit(_ prepared: Void, at positions: Range<Int>) async throws(BatchError) -> Commit {
    preconditionFailure("a chunk is committed beside the simulation")
  }

  func synchronize(
    _ progress: inout RunProgress,
    done: DoneRanges,
    failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]? {
    try simulation.synchronize(process, &progress, failedCount: failedCount)
  }

  func finish(_ progress: inout RunProgress) async throws(BatchError) {
    try simulation.finish(process)
  }
}
