@testable import BatchEngine
import BatchIdentifiers
import BatchTestSupport

/// A run that several hosts share, on a server in memory: messages are lost, hosts stand still or die,
/// their clocks disagree, and the server dies or is replaced by a standby that is behind.
///
/// Which chunk is done when is decided by ``RunLogic``, as in a real run. The server, and what hosts ask it,
/// are as a store is to have them; `LeaseServer` says how.
final class LeaseSimulation: Simulating {
  /// What happens at a time.
  enum Happening {
    case boot
    /// A host hears an answer.
    case answer(RunLogic.Answer)
    case heartbeat
    /// The server hears of a claim, and the host what came of it.
    case claim
    case granted(first: Int, token: Int, SpanClaim)
    /// The server begins a transaction, hears that it is to be committed, and has done so.
    case begin(transaction: Int, Range<Int>, token: Int)
    case requestCommit(transaction: Int, Range<Int>)
    case commit(transaction: Int, Range<Int>)
    /// A host whose connection was lost asks what became of a chunk.
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
    /// Whoever takes a span over does not ask what of it is done.
    case forgetsLedger
    /// The ledger is not written with the chunk.
    case losesLedger
    /// Nothing keeps a chunk from being entered twice, by a host whose connection was lost.
    case entersTwice
    /// A host that has lost a span does not say so when it asks for one.
    case keepsWhatItForgot
  }

  /// What a schedule may have in it, for a test that sees that schedules have it.
  enum Occurrence: Int, CaseIterable {
    case death, pause, lostMessage, restart, failover, takeover, fenced, duplicate, idleTimeout
    case reclaim, wait, retry, stop, completion, lostAnswer
  }

  private static let stepLimit = 6000

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
  private var nextTransaction = 0
  /// How often a standby has taken over.
  private var failovers = 0
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
      limit: 3 + choices.below(4),
      backoff: .milliseconds(10),
      maximumBackoff: .milliseconds(80)
    )
    if choices.once(in: 5) { policy.throttle.identifiersPerSecond = 500 }
    faultsLeft = choices.below(12)
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

  private func schedule(_ happening: Happening, after delay: Int, for host: LeaseHost? = nil) {
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
    // What is on its way to the server gets there whatever becomes of the host.
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
    case .claim: claim(host)
    case .granted(let first, let token, let claim): granted(first, token, claim, host)
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
      setting: .init(workers: workers, inOrder: inOrder, writers: workers, isGranted: true),
      generator: SeededGenerator(seed: UInt64(choices.below(100)))
    )
    server.see(host.id, at: now)
    schedule(.heartbeat, after: lease / 3, for: host)
    let effects = logic.begin(at: look(host))
    host.logic = logic
    perform(effects, host)
  }

  private func look(_ host: LeaseHost) -> RunLogic.Moment {
    RunLogic.Moment(now: host.time(at: now), policy: policy)
  }

  private func heartbeat(_ host: LeaseHost) {
    if !goesWrong(oncePer: 6) { server.see(host.id, at: now) }
    schedule(.heartbeat, after: lease / 3, for: host)
  }

  // MARK: Effects and answers

  private func hear(_ answer: RunLogic.Answer, _ host: LeaseHost) {
    guard host.ending == nil else { return }
    switch answer {
    case .prepared(let chunk, _, let end, _, _):
      host.outstanding.removeAll { $0 == chunk }
      host.outstanding.append(chunk.lowerBound..<end)
      host.ready.insert(chunk.lowerBound..<end)
    case .committed(let chunk, _), .failedToCommit(let chunk, _),
      .failedToPrepare(let chunk, _, _, _):
      host.outstanding.removeAll { $0 == chunk }
    default: break
    }
    if case .failedToCommit(let chunk, let error) = answer, error.code == .leaseLost {
      note("has lost the span of \(chunk)", host)
      // By the token that the chunk was to be written with: the span may be its own again by now.
      let (first, token) = host.fences[chunk] ?? (0, 0)
      if host.tokens[first] == token { host.tokens[first] = nil }
    }
    guard let effects = host.logic?.hear(answer, at: look(host)) else { return }
    perform(effects, host)
  }

  private func perform(_ effects: [RunLogic.Effect], _ host: LeaseHost) {
    for effect in effects {
      switch effect {
      case .prepare(let chunk, let worker, _): prepare(chunk, worker, host)
      case .commit(let chunk):
        demand(host.ready.remove(chunk) != nil, "\(chunk) is committed, and was not prepared")
        nextTransaction += 1
        host.transactions[chunk] = nextTransaction
        let (first, token) = fence(of: chunk, host)
        host.fences[chunk] = (first, token)
        schedule(
          .begin(transaction: nextTransaction, chunk, token: token),
          after: moment(upTo: 10),
          for: host
        )
      case .discard(let chunk):
        host.ready.remove(chunk)
        host.outstanding.removeAll { $0 == chunk }
      case .claim: schedule(.claim, after: moment(upTo: 10), for: host)
      case .close(let span):
        let token = fence(of: span, host).token
        schedule(.close(span, token: token), after: moment(upTo: 10), for: host)
      case .answer(let answer, let delay):
        schedule(.answer(answer), after: Self.microseconds(delay), for: host)
      case .tell(.retrying): occur(.retry)
      case .tell, .beginGrace, .emptyLog: break
      case .end(let ending): conclude(ending, host)
      }
    }
  }

  /// The span of some positions, by its first, and the token that the host has for it.
  private func fence(of positions: Range<Int>, _ host: LeaseHost) -> (first: Int, token: Int) {
    guard let index = server.index(of: positions) else { return (0, 0) }
    let first = server.content.spans[index].positions.lowerBound
    return (first, host.tokens[first] ?? 0)
  }

  private func prepare(_ chunk: Range<Int>, _ worker: Int, _ host: LeaseHost) {
    demand(!host.outstanding.contains { $0.overlaps(chunk) }, "\(chunk) is handed out twice")
    host.outstanding.append(chunk)
    let time = moment(upTo: 30)
    let answer: RunLogic.Answer
    if goesWrong(oncePer: 30) {
      answer = .failedToPrepare(chunk, worker: worker, .busy, holding: 0)
    } else {
      let count = chunk.count - (choices.once(in: 8) ? choices.below(chunk.count) : 0)
      answer = .prepared(
        chunk,
        worker: worker,
        upTo: chunk.lowerBound + count,
        holding: 0,
        took: .microseconds(time)
      )
    }
    schedule(.answer(answer), after: time, for: host)
  }

  // MARK: Claims

  private func claim(_ host: LeaseHost) {
    let known = flaw == .keepsWhatItForgot ? Set(0..<count) : Set(host.tokens.keys)
    let before = server.content.spans
    // A standby that takes over from here on may lack what this host hears of.
    host.failovers = failovers
    let (first, token, claim) = server.claim(by: host.id, knowing: known, lease: lease, at: now)
    if case .granted = claim, let span = before.first(where: { $0.positions.lowerBound == first }) {
      if let holder = span.host { occur(holder == host.id ? .reclaim : .takeover) }
      note("is granted \(span.positions), token \(token)", host)
    }
    if goesWrong(oncePer: 12) {
      occur(.lostMessage)
      return schedule(.answer(.failedToClaim(.busy)), after: moment(upTo: 30), for: host)
    }
    schedule(.granted(first: first, token: token, claim), after: moment(upTo: 10), for: host)
  }

  private func granted(_ first: Int, _ token: Int, _ claim: SpanClaim, _ host: LeaseHost) {
    switch claim {
    case .granted(let span, let parts):
      // A run that has ended meanwhile has let go of all.
      guard host.ending == nil else { return }
      host.tokens[first] = token
      hear(.granted(span, remaining: parts), host)
    case .noneFree(let delay):
      occur(.wait)
      hear(.noneFree(askingAgainAfter: delay), host)
    case .exhausted: hear(.exhausted, host)
    }
  }

  private func close(_ span: Range<Int>, _ token: Int, _ host: LeaseHost) {
    let isClosed = server.close(span, by: host.id, token: token)
    if isClosed { note("has done all of \(span)", host) }
    guard host.isAlive else { return }
    if goesWrong(oncePer: 12) {
      occur(.lostMessage)
      return schedule(.answer(.failedToClose(span, .busy)), after: moment(upTo: 30), for: host)
    }
    host.tokens[span.lowerBound] = nil
    schedule(
      .answer(isClosed ? .closed(span) : .failedToClose(span, .leaseLost)),
      after: moment(upTo: 10),
      for: host
    )
  }

  // MARK: Transactions

  private func begin(_ id: Int, _ chunk: Range<Int>, _ token: Int, _ host: LeaseHost) {
    guard host.isAlive else { return }
    switch server.begin(id, chunk, by: host.id, token: token, at: now) {
    case .begun:
      schedule(.requestCommit(transaction: id, chunk), after: moment(upTo: 40), for: host)
    case .leaseLost:
      occur(.fenced)
      answer(.failedToCommit(chunk, .leaseLost), chunk, host)
    case .waits:
      schedule(.begin(transaction: id, chunk, token: token), after: moment(upTo: 10), for: host)
    case .isThere:
      occur(.duplicate)
      ask(chunk, host)
    }
  }

  /// The host sends the last message of a transaction.
  private func requestCommit(_ id: Int, _ chunk: Range<Int>, _ host: LeaseHost) {
    guard server.beginCommit(id) else {
      occur(.idleTimeout)
      return schedule(.ask(chunk), after: moment(upTo: 20), for: host)
    }
    schedule(.commit(transaction: id, chunk), after: moment(upTo: 20), for: host)
    if goesWrong(oncePer: 10) {
      // The connection is lost, and the server does what it was told all the same.
      occur(.lostAnswer)
      host.transactions[chunk] = nil
      schedule(.ask(chunk), after: moment(upTo: 30), for: host)
    }
  }

  private func commit(_ id: Int, _ chunk: Range<Int>, _ host: LeaseHost) {
    let isCommitted = server.commit(id)
    if isCommitted { note("has committed \(chunk)", host) }
    // Nobody listens where the connection was lost.
    guard host.isAlive, host.transactions[chunk] == id else { return }
    guard isCommitted else { return schedule(.ask(chunk), after: moment(upTo: 20), for: host) }
    answer(.committed(chunk, commit(of: chunk)), chunk, host)
  }

  private func commit(of chunk: Range<Int>) -> Commit {
    var outcomes = Outcomes()
    outcomes.succeeded = chunk.count
    return Commit(outcomes: outcomes, duration: .milliseconds(1))
  }

  /// A host asks the ledger what became of a chunk.
  private func ask(_ chunk: Range<Int>, _ host: LeaseHost) {
    switch server.content.entries[chunk.lowerBound] {
    case chunk?: answer(.committed(chunk, commit(of: chunk)), chunk, host)
    // Done, and otherwise than is thought here: the span is looked at anew.
    case .some: answer(.failedToCommit(chunk, .leaseLost), chunk, host)
    case nil: answer(.failedToCommit(chunk, .busy), chunk, host)
    }
  }

  /// Has a host hear what became of a chunk.
  private func answer(_ answer: RunLogic.Answer, _ chunk: Range<Int>, _ host: LeaseHost) {
    host.transactions[chunk] = nil
    schedule(.answer(answer), after: moment(upTo: 5), for: host)
  }

  // MARK: Ends

  private func conclude(_ ending: RunStateMachine.Ending, _ host: LeaseHost) {
    note("has ended: \(ending)", host)
    host.ending = ending
    demand(host.outstanding.isEmpty && host.ready.isEmpty, "it has ended, and something goes on")
    switch ending {
    case .completed:
      guard host.failovers == failovers else { break }
      demand(server.content.spans.allSatisfy(\.isDone), "it is completed, and something is left")
      occur(.completion)
      isOver = true
    case .stopped, .failed:
      // It lets go of what it has, if the message arrives.
      if !goesWrong(oncePer: 3) { schedule(.release, after: moment(upTo: 10), for: host) }
    }
    leave(host)
  }

  /// A host is no more, and another comes in its place if none is left.
  private func leave(_ host: LeaseHost) {
    host.isAlive = false
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
      server.failOver()
      failovers += 1
      isOver = false
    case 6: schedule(.boot, after: 0)
    default:
      for host in living where choices.once(in: 2) {
        note("is told to stop", host)
        occur(.stop)
        schedule(.answer(.stop), after: 0, for: host)
      }
    }
  }

  private static func microseconds(_ duration: Duration) -> Int {
    Int((duration / .microseconds(1)).rounded(.up))
  }

  private func moment(upTo milliseconds: Int) -> Int { 1 + 1000 * choices.below(milliseconds) }

  private func goesWrong(oncePer count: Int) -> Bool {
    guard faultsLeft > 0, choices.once(in: count) else { return false }
    faultsLeft -= 1
    return true
  }

  private func occur(_ occurrence: Occurrence) { occurrences |= 1 << occurrence.rawValue }

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

  private func demand(_ isTrue: Bool, _ words: @autoclosure () -> String) {
    if !isTrue { fail(words()) }
  }

  private func note(_ line: @autoclosure () -> String, _ host: LeaseHost? = nil) {
    guard lines != nil, violation == nil else { return }
    lines?.append("\(now / 1000) ms  \(host.map { "host \($0.id): " } ?? "")\(line())")
  }
}

extension BatchError {
  fileprivate static let leaseLost = BatchError(.leaseLost, "the span belongs to another host")
}
