@testable import BatchRuns
import BatchIdentifiers

/// A process of a simulation: its part of the machine, and what the naive model knows of it.
///
/// It is the record, the processor and whatever else its driver asks for; each step of them is compared with
/// the model.
final class SimulatedProcess: @unchecked Sendable {
  unowned let simulation: Simulation
  let id: Int
  let policy: RunPolicy
  let host: RunEnvironment
  let stop = StopSwitch()
  /// Drives its run.
  var task: Task<Void, Never>?
  var isAlive = true
  /// The failed identifiers to retry, if it is a retry.
  var retried: RetriedIdentifiers?
  /// What its lane knows of the ledger, and the version of the store that it knows it of.
  var ledger = DoneRanges()
  var versionSeen = 0
  /// How often a backup had been restored when it last saw the ledger.
  var restores = 0
  /// The same when it began with its chunks.
  var restoresAtStart = 0
  var workerCount = 0
  /// Commits that wait for the lane, and whether it is working.
  var waiting: [LaneCall] = []
  var isCommitting = false
  /// The waits of its other calls to the lane.
  var laneCalls: [Sleeper] = []

  // What the naive model knows of it.

  /// When it began with its chunks, in microseconds.
  var start = 0
  /// Chunks between handed out and answered.
  var outstanding: [Range<Int>] = []
  /// The number of calls of workers and writer that will return.
  var callCount = 0
  /// When a call last returned.
  var lastReturn = 0
  /// Since when it is held; nil if it is not.
  var heldSince: Int?
  /// Whether it is recording something, so that it is not told of a hold yet.
  var isRecording = false
  /// The number of committed identifiers, and the maximum per commit.
  var committedCount = 0
  var largestChunk = 0
  /// Whether anything was done to it that excuses a failure.
  var mayFail = false
  /// When it was told to stop.
  var stoppedAt: Int?
  /// Whether it waits after its canary for an operator.
  var isAtGate = false
  /// Whether more identifiers failed than may.
  var isPoisoned = false
  /// How often chunks have failed transiently, by their first positions.
  var tries: [Int: Int] = [:]

  init(_ id: Int, _ policy: RunPolicy, of simulation: Simulation) {
    self.id = id
    self.policy = policy
    self.simulation = simulation
    host = simulation.host()
  }

  /// Crashes, if it does so here.
  func mayCrash() throws(BatchError) {
    if isAlive, simulation.goesWrong(oncePer: 32) { simulation.crash(self) }
    if !isAlive { throw .crashed }
  }

  /// Waits for at most this many milliseconds, in which others go on and it may crash.
  func pass(upTo milliseconds: Int, _ call: Sleeper = Sleeper()) async throws(BatchError) {
    try mayCrash()
    await simulation.sleep(simulation.moment(upTo: milliseconds), call)
    try mayCrash()
  }

  func note(_ line: @autoclosure () -> String) { simulation.note(line(), self) }

  @discardableResult
  func demand(_ isTrue: Bool, _ words: @autoclosure () -> String) -> Bool {
    simulation.demand(isTrue, words())
  }
}

/// The requests of an operator.
struct SimulatedRequests: RunRequests {
  let simulation: Simulation
  var seen = RunControl()

  mutating func look() -> RunControl? {
    guard simulation.control != seen else { return nil }
    seen = simulation.control
    return seen
  }

  mutating func takeComplaint() -> String? { nil }
}

extension SimulatedProcess: RunNotifier {
  func begin(_ summary: RunSummary, afterKill isAfterKill: Bool) async { try? await pass(upTo: 5) }

  func hold(_ summary: RunSummary) {}

  func end(_ summary: RunSummary) async { try? await pass(upTo: 20) }

  func settle() {}

  func takeMessages() -> [String] { [] }
}
