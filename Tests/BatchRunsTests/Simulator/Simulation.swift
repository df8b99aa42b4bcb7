@testable import BatchRuns
import BatchIdentifiers
import BatchTestSupport

/// A run from its beginning to its acknowledged end, with all the processes that it takes, on a clock,
/// a disk and a store in memory.
///
/// The engine's own code does it: a `RunDriver` for each process, with its `RunLoop`, `RunSession`
/// and `StopGrace`. The choices of a schedule make up the events. After every step, everything is
/// compared with a naive model that knows the fate of each identifier. Nothing waits for time, and
/// all tasks run one after another on the thread that runs the simulation.
final class Simulation: Simulating, @unchecked Sendable {
  /// What happens at a time.
  enum Happening {
    /// A process begins; a blind one sees nobody else, as if it were on another machine.
    case boot(isBlind: Bool)
    /// The wait of a task ends.
    case wake(Sleeper)
    /// The lane of a process commits.
    case transaction(SimulatedProcess)
    /// An operator ends every hold of the run.
    case ease
  }

  struct Scheduled {
    let time: Int
    let order: Int
    let happening: Happening
  }

  /// A store or a process that is broken on purpose, so that a test can see it caught.
  enum Flaw: CaseIterable {
    /// The store commits the rows and not the ledger.
    case losesLedger
    /// A failed transaction has changed rows nevertheless.
    case changesUndoneRows
    /// What is said to be durable is not.
    case liesAboutDisk
    /// A process resumes from its file, which may lag behind.
    case resumesFromFile
    /// A lane does not look whether its run was taken over.
    case ignoresOwner
    /// An answer of the lane is lost once.
    case losesAnswer
    /// A process does not begin with the canary.
    case skipsCanary
  }

  /// What a schedule may have in it, for a test that sees that schedules have it.
  enum Occurrence: Int, CaseIterable {
    case crash, powerFailure, lostCommit, lostRecord, refusal, takeover, restoredBackup
    case stop, cancellation, endOfTime, interrupt, hold, pace, longLog, changedSetting
    case retry, postponement, failure, earlyEnd, sharedTransaction, skippedIdentifier
    case canaryWait, canaryFailure, canaryEnd
    case tooManyFailures, resumption, secondEnd, completion, secondTry
  }

  /// How many steps are enough for any schedule.
  private static let stepLimit = 20_000
  private static let lists = (0...40).map { count in
    var builder = IdentifierListBuilder(storeIdentifier: "store", entityName: "rows")
    for key in 0..<count { builder.append(Int64(key)) }
    return builder.finish()
  }
  private static let beginning = ContinuousClock.now
  let executor = SimulatedExecutor()
  let scenario: Scenario
  let metadata: RunMetadata
  let flaw: Flaw?
  var choices: Choices
  var store: SimulatedStore
  var file = SimulatedFile()
  var processes: [SimulatedProcess] = []
  /// The time since the beginning, in microseconds.
  private(set) var now = 0
  var queue: [Scheduled] = []
  private var order = 0
  private(set) var steps = 0
  var faultsLeft: Int
  /// What operators ask for.
  var control = RunControl()
  /// Whether they have asked for another pace at any time: a debt by the pace before is dropped.
  var paceWasChanged = false
  var conditions = RunThrottle.Conditions(freeDisk: 1 << 30)
  var canary: CanaryModel
  /// Whether the end was reported and acknowledged, or can never come.
  var isOver = false
  var hasLostAnswer = false
  /// Whether somebody knows of the end.
  var isDelivered = false
  /// The identifiers for which the action fails now.
  var poison: Set<Int>
  /// Whether somebody requests a retry of the failed identifiers.
  var isRetryAsked = false
  /// What has occurred, a bit each.
  private(set) var occurrences = 0
  private var versionChecked = -1
  private(set) var violation: String?
  /// The events in words; nil if nobody reads them.
  private var lines: [String]?

  init(_ choices: Choices, flaw: Flaw? = nil, isTraced: Bool = false) {
    var choices = choices
    let scenario = Scenario(&choices)
    self.scenario = scenario
    self.choices = choices
    self.flaw = flaw
    var metadata = RunMetadata(
      run: "run",
      job: "job",
      startedAt: "",
      fingerprint: "",
      schema: [],
      ledger: .store
    )
    metadata.runID = "work"
    metadata.canary = scenario.policy.canary.map { .init($0, isInOrder: scenario.inOrder) }
    self.metadata = metadata
    canary = CanaryModel(scenario)
    store = SimulatedStore(count: scenario.count)
    faultsLeft = scenario.faults
    poison = scenario.poison
    lines = isTraced ? [] : nil
  }

  var list: IdentifierList { Self.lists[scenario.count] }

  var trace: [String] { lines ?? [] }
  var processCount: Int { processes.count }

  /// The simulated machine of a process.
  func host() -> RunEnvironment {
    RunEnvironment(
      now: { [unowned self] in Self.beginning + .microseconds(now) },
      date: { [unowned self] in Double(now) / 1e6 },
      sleep: { [unowned self] in await sleep(Self.microseconds($0)) },
      generator: SeededGenerator(seed: UInt64(choices.below(100))),
      executor: executor,
      peakBytes: { 0 }
    )
  }

  // MARK: The course of things

  /// Runs all events.
  func run() async {
    proceed()
    // No task outlives the simulation.
    isOver = true
    for process in processes where process.isAlive { close(process) }
    executor.drain()
  }

  private func proceed() {
    note("\(scenario)")
    schedule(.boot(isBlind: false), after: 0)
    while violation == nil, let next = takeNext() {
      steps += 1
      guard steps < Self.stepLimit else {
        fail("it does not end")
        return
      }
      now = max(now, next.time)
      happen(next)
      executor.drain()
      if faultsLeft > 0, choices.once(in: 12) {
        fault()
        executor.drain()
      }
      check()
    }
    if violation == nil, !isOver { fail("nothing goes on, and the run has not ended") }
  }

  func schedule(_ happening: Happening, after delay: Int) {
    order += 1
    queue.append(Scheduled(time: now + delay, order: order, happening: happening))
  }

  private func takeNext() -> Scheduled? {
    queue.removeAll { if case .wake(let sleeper) = $0.happening { sleeper.isOver } else { false } }
    guard !queue.isEmpty else { return nil }
    var first = 0
    for index in queue.indices.dropFirst()
    where (queue[index].time, queue[index].order) < (queue[first].time, queue[first].order) {
      first = index
    }
    let next = queue[first]
    queue.swapAt(first, queue.count - 1)
    queue.removeLast()
    return next
  }

  private func happen(_ next: Scheduled) {
    switch next.happening {
    case .boot(let isBlind): boot(isBlind: isBlind)
    case .wake(let sleeper): sleeper.end()
    case .transaction(let process): process.commitWaiting()
    case .ease: ease()
    }
  }

  /// Lets a task wait for a time, unless it is cancelled.
  func sleep(_ time: Int, _ sleeper: Sleeper = Sleeper()) async {
    if Task.isCancelled { return }
    schedule(.wake(sleeper), after: time)
    await sleeper.sleep()
  }

  /// A time in whole microseconds, and not before it is over.
  static func microseconds(_ duration: Duration) -> Int {
    Int((duration / .microseconds(1)).rounded(.up))
  }

  /// A time of at most this many milliseconds, in microseconds.
  func moment(upTo milliseconds: Int) -> Int { 1 + 1000 * choices.below(milliseconds) }

  /// Whether one more thing goes wrong.
  func goesWrong(oncePer count: Int) -> Bool {
    guard faultsLeft > 0, choices.once(in: count) else { return false }
    faultsLeft -= 1
    return true
  }

  func occur(_ occurrence: Occurrence) { occurrences |= 1 << occurrence.rawValue }

  // MARK: The naive model

  private func check() {
    guard violation == nil, store.version != versionChecked else { return }
    versionChecked = store.version
    if let contradiction = store.contradiction() { fail(contradiction) }
    demand(
      store.content.failed.count <= scenario.policy.skip.failurePolicy(of: scenario.count).limit,
      "more have failed than may"
    )
  }

  func fail(_ words: @autoclosure () -> String) {
    guard violation == nil else { return }
    let words = words()
    note("VIOLATION: \(words)")
    violation = words
  }

  /// Fails the simulation unless something is as it must be.
  @discardableResult
  func demand(_ isTrue: Bool, _ words: @autoclosure () -> String) -> Bool {
    if !isTrue { fail(words()) }
    return isTrue
  }

  func note(_ line: @autoclosure () -> String, _ process: SimulatedProcess? = nil) {
    guard lines != nil, violation == nil else { return }
    let time = String("\(now / 1000)".reversed() + "      ").prefix(6).reversed()
    lines?.append("\(String(time)) ms  \(process.map { "process \($0.id): " } ?? "")\(line())")
  }
}
