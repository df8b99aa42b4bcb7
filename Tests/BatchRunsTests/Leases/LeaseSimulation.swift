@testable import BatchRuns
import BatchIdentifiers
import BatchTestSupport

/// A run that several hosts share, on a server in memory: messages are lost, hosts stand still or die,
/// their clocks disagree, and the server dies or is replaced by a standby that is behind.
///
/// ``RunLogic`` decides which chunk is done when, as in a real run. The server, and the hosts'
/// requests to it, behave as a store must; see `LeaseServer`.
final class LeaseSimulation: Simulating {
  /// What happens at a time.
  enum Happening {
    case boot
    /// A host hears an answer.
    case answer(RunLogic.Answer)
    case heartbeat
    /// The server hears of a claim, and the host what came of it.
    case claim(besides: [Range<Int>])
    case claimed(SpanClaim, token: Int)
    /// The server begins a transaction, receives its commit, and has committed it.
    case begin(transaction: Int, Range<Int>, token: Int)
    case requestCommit(transaction: Int, Range<Int>)
    case commit(transaction: Int, Range<Int>)
    /// A host whose connection was lost asks for the fate of a chunk.
    case ask(Range<Int>)
    case close(Range<Int>, token: Int)
    case release
    case replicate
  }

  struct Scheduled {
    let time: Int
    let order: Int
    let host: Int?
    let happening: Happening
  }

  /// What is broken on purpose, so that a test can see it caught.
  enum Flaw: CaseIterable {
    /// A chunk is written without a look at whose span it is.
    case ignoresFence
    /// A span is taken over while a transaction of the host before is open.
    case takesLockedSpans
    /// A process that takes over a span does not ask what of it is done.
    case forgetsLedger
    /// The ledger is not written with the chunk.
    case losesLedger
    /// A host whose connection was lost gets the fate of a chunk before it is decided.
    case answersTooEarly
    /// A host is granted a span that it says it has.
    case grantsTwice
    /// A span counts as done because its host says so.
    case closesUnseen
  }

  /// What a schedule may have in it, for a test that sees that schedules have it.
  enum Occurrence: Int, CaseIterable {
    case death, pause, restart, failover, takeover, fenced, idleTimeout, reclaim, refusedClose, wait
    case lostMessage, lostAnswer, doneUnheard, slowCommit, retry, postponement, secondTry
    case stop, failure, completion
  }

  private static let stepLimit = 3000

  let flaw: Flaw?
  var choices: Choices
  var server: LeaseServer
  var hosts: [LeaseHost] = []
  let count: Int
  let workers: Int
  let lease: Int
  var policy = RunPolicy()
  private let inOrder: Bool
  private(set) var now = 0
  private var queue: [Scheduled] = []
  private var order = 0
  private(set) var steps = 0
  private var faultsLeft: Int
  /// Whether nothing ever fails.
  let isCalm: Bool
  var nextTransaction = 0
  /// How often a standby has taken over.
  private(set) var failovers = 0
  /// Whether some host has seen that all is done.
  private var isOver = false
  private(set) var occurrences = 0
  private var versionChecked = -1
  private(set) var violation: String?
  private var lines: [String]?

  init(_ choices: Choices, flaw: Flaw? = nil, isTraced: Bool = false) {
    var choices = choices
    count = 1 + choices.below(60)
    workers = 1 + choices.below(3)
    lease = 100_000 * (1 + choices.below(4))
    inOrder = choices.once(in: 5)
    policy.chunk.size = 1 + choices.below(6)
    policy.retry = .init(
      limit: choices.below(6),
      backoff: .milliseconds(10),
      maximumBackoff: .milliseconds(80)
    )
    if choices.once(in: 5) { policy.throttle.identifiersPerSecond = 500 }
    faultsLeft = choices.below(12)
    isCalm = faultsLeft == 0
    var spans: [Range<Int>] = []
    let size = 1 + choices.below(20)
    for first in stride(from: 0, to: count, by: size) {
      spans.append(first..<min(first + size, count))
    }
    server = LeaseServer(count: count, spans: spans, flaw: flaw)
    self.choices = choices
    self.flaw = flaw
    lines = isTraced ? [] : nil
  }

  var trace: [String] { lines ?? [] }
  var processCount: Int { hosts.count }

  // MARK: The course of things

  func run() async {
    note("\(count) identifiers, \(server.content.spans.count) spans, lease \(lease / 1000) ms")
    for _ in 0...choices.below(3) { schedule(.boot, after: moment(upTo: 20)) }
    schedule(.replicate, after: 10_000)
    while violation == nil, !(isOver && !hosts.contains(where: \.isAlive)), let next = takeNext() {
      steps += 1
      guard steps < Self.stepLimit else { return fail("it does not end") }
      now = max(now, next.time)
      happen(next)
      if faultsLeft > 0, choices.once(in: 14) { fault() }
      check()
    }
    guard violation == nil else { return }
    demand(isOver, "nothing goes on, and the run has not ended")
    demand(server.content.changes.allSatisfy { $0 == 1 }, "an identifier was left out")
  }

  func schedule(_ happening: Happening, after delay: Int, for host: LeaseHost? = nil) {
    order += 1
    queue.append(Scheduled(time: now + delay, order: order, host: host?.id, happening: happening))
  }

  private func takeNext() -> Scheduled? {
    guard !queue.isEmpty else { return nil }
    var first = 0
    for index in queue.indices.dropFirst()
    where (queue[index].time, queue[index].order) < (queue[first].time, queue[first].order) {
      first = index
    }
    queue.swapAt(first, queue.count - 1)
    return queue.removeLast()
  }

  private func happen(_ next: Scheduled) {
    server.endIdle(longerThan: lease, at: now)
    guard let host = next.host.map({ hosts[$0] }) else {
      switch next.happening {
      case .boot: boot()
      default:
        server.replicate()
        schedule(.replicate, after: 5000 + moment(upTo: 60))
      }
      return
    }
    switch next.happening {
    // A message on its way arrives, whatever happens to the host.
    case .claim(let own): claim(besides: own, host)
    case .begin(let id, let chunk, let token): begin(id, chunk, token, host)
    case .commit(let id, let chunk): commit(id, chunk, host)
    case .close(let span, let token): close(span, token, host)
    case .release: server.release(host.id)
    default:
      guard host.isAlive else { return }
      guard host.pausedUntil <= now else {
        return schedule(next.happening, after: host.pausedUntil - now, for: host)
      }
      happen(next.happening, to: host)
    }
  }

  private func happen(_ happening: Happening, to host: LeaseHost) {
    switch happening {
    case .answer(let answer): hear(answer, host)
    case .heartbeat: heartbeat(host)
    case .claimed(let claim, let token): claimed(claim, token, host)
    case .requestCommit(let id, let chunk): requestCommit(id, chunk, host)
    case .ask(let chunk): ask(chunk, host)
    default: preconditionFailure("a host does what the server does")
    }
  }

  private func boot() {
    guard !isOver else { return }
    let host = LeaseHost(
      hosts.count,
      start: now,
      clockRate: choices.one(of: [1, 0.5, 3]),
      clockOffset: moment(upTo: 1000)
    )
    hosts.append(host)
    note("begins", host)
    var logic = RunLogic(
      remaining: [],
      sizing: ChunkSizing(policy),
      policy: policy,
      setting: .init(workers: workers, inOrder: inOrder, workersCommit: true, isGranted: true),
      generator: SeededGenerator(seed: UInt64(choices.below(100)))
    )
    server.see(host.id, at: now)
    schedule(.heartbeat, after: lease / 3, for: host)
    let effects = logic.begin(at: look(host))
    host.logic = logic
    perform(effects, host)
  }

  func look(_ host: LeaseHost) -> RunLogic.Moment {
    RunLogic.Moment(now: host.time(at: now), policy: policy)
  }

  private func heartbeat(_ host: LeaseHost) {
    if !goesWrong(oncePer: 6) { server.see(host.id, at: now) }
    schedule(.heartbeat, after: lease / 3, for: host)
  }

  // MARK: Ends

  func conclude(_ ending: RunStateMachine.Ending, _ host: LeaseHost) {
    note("has ended: \(ending)", host)
    host.ending = ending
    demand(host.outstanding.isEmpty && host.ready.isEmpty, "it has ended, and something goes on")
    switch ending {
    case .completed:
      demand(host.postponed.isEmpty || host.isStopped, "it is completed, and holds something")
      guard host.failovers == failovers else { break }
      demand(server.content.spans.allSatisfy(\.isDone), "it is completed, and something is left")
      occur(.completion)
      isOver = true
    case .stopped: demand(host.isStopped, "it was not told to stop")
    case .failed:
      occur(.failure)
      demand(host.failures > policy.retry.limit, "it has failed, and less has gone wrong than may")
    }
    // It releases what it has, if the message arrives.
    if ending != .completed, !goesWrong(oncePer: 3) {
      schedule(.release, after: moment(upTo: 10), for: host)
    }
    leave(host)
  }

  private func leave(_ host: LeaseHost) {
    host.isAlive = false
    bootIfNone()
  }

  /// Starts a host to continue if none is left and work remains.
  private func bootIfNone() {
    let isAwaited = queue.contains { if case .boot = $0.happening { true } else { false } }
    guard !isOver, !isAwaited, !hosts.contains(where: \.isAlive) else { return }
    schedule(.boot, after: moment(upTo: 100))
  }

  // MARK: What goes wrong

  private func fault() {
    faultsLeft -= 1
    let living = hosts.filter(\.isAlive)
    switch choices.below(8) {
    case 0, 1:
      guard !living.isEmpty else { return }
      let host = choices.one(of: living)
      note("dies", host)
      occur(.death)
      server.disconnect(host.id)
      leave(host)
    case 2, 3:
      guard !living.isEmpty else { return }
      let host = choices.one(of: living)
      host.pausedUntil = now + lease / 2 + moment(upTo: 2 * lease / 1000)
      note("stands still until \(host.pausedUntil / 1000) ms", host)
      occur(.pause)
    case 4:
      note("the server is killed, and begins again")
      occur(.restart)
      server.restart()
    case 5:
      note("a standby takes over")
      occur(.failover)
      server.failOver(clockSkew: lease * (choices.below(3) - 1))
      failovers += 1
      isOver = false
      bootIfNone()
    case 6: schedule(.boot, after: 0)
    default:
      for host in living where choices.once(in: 2) {
        note("is told to stop", host)
        occur(.stop)
        schedule(.answer(.stop), after: 0, for: host)
      }
    }
  }

  static func microseconds(_ duration: Duration) -> Int {
    Int((duration / .microseconds(1)).rounded(.up))
  }

  func moment(upTo milliseconds: Int) -> Int { 1 + 1000 * choices.below(milliseconds) }

  func goesWrong(oncePer count: Int) -> Bool {
    guard faultsLeft > 0, choices.once(in: count) else { return false }
    faultsLeft -= 1
    return true
  }

  func occur(_ occurrence: Occurrence) { occurrences |= 1 << occurrence.rawValue }

  // MARK: The naive model

  private func check() {
    guard violation == nil, server.version != versionChecked else { return }
    versionChecked = server.version
    if let contradiction = server.contradiction() { fail(contradiction) }
  }

  private func fail(_ words: @autoclosure () -> String) {
    guard violation == nil else { return }
    let words = words()
    note("VIOLATION: \(words)")
    violation = words
  }

  func demand(_ isTrue: Bool, _ words: @autoclosure () -> String) {
    if !isTrue { fail(words()) }
  }

  func note(_ line: @autoclosure () -> String, _ host: LeaseHost? = nil) {
    guard lines != nil, violation == nil else { return }
    lines?.append("\(now / 1000) ms  \(host.map { "host \($0.id): " } ?? "")\(line())")
  }
}
