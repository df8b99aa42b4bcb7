@testable import BatchRuns
import BatchIdentifiers

/// What performs the effects of hosts: workers that take a while, and messages to the server and back.
extension LeaseSimulation {
  // MARK: Effects and answers

  func hear(_ answer: RunLogic.Answer, _ host: LeaseHost) {
    guard host.ending == nil else { return }
    switch answer {
    case .prepared(let chunk, _, let end, _, _):
      host.outstanding.removeAll { $0 == chunk }
      host.outstanding.append(chunk.lowerBound..<end)
      host.ready.insert(chunk.lowerBound..<end)
    case .failedToPrepare(let chunk, _, _, let byteCount):
      host.outstanding.removeAll { $0 == chunk }
      if byteCount > 0 { host.postponed[chunk] = host.lease(of: chunk)?.token ?? 0 }
      host.failures += 1
    case .committed(let chunk, _):
      host.outstanding.removeAll { $0 == chunk }
      host.done(chunk)
    case .failedToCommit(let chunk, let error):
      host.outstanding.removeAll { $0 == chunk }
      if error.code == .leaseLost { host.lose(chunk) } else { host.failures += 1 }
    case .failedToClaim, .failedToClose: host.failures += 1
    case .stop: host.isStopped = true
    default: break
    }
    guard let effects = host.logic?.hear(answer, at: look(host)) else { return }
    perform(effects, host)
  }

  func perform(_ effects: [RunLogic.Effect], _ host: LeaseHost) {
    for effect in effects {
      switch effect {
      case .prepare(let chunk, let worker, _): prepare(chunk, worker, host)
      case .commit(let chunk):
        demand(host.ready.remove(chunk) != nil, "\(chunk) is committed, and was not prepared")
        let token = token(for: chunk, host)
        nextTransaction += 1
        host.transactions[chunk] = nextTransaction
        schedule(
          .begin(transaction: nextTransaction, chunk, token: token),
          after: moment(upTo: 10),
          for: host
        )
      case .discard(let chunk):
        host.ready.remove(chunk)
        host.postponed[chunk] = nil
        host.outstanding.removeAll { $0 == chunk }
      case .claim(let own): schedule(.claim(besides: own), after: moment(upTo: 10), for: host)
      case .close(let span):
        demand(host.lease(of: span)?.left.isEmpty == true, "\(span) is closed, and is not done")
        let token = token(for: span, host)
        schedule(.close(span, token: token), after: moment(upTo: 10), for: host)
      case .answer(let answer, let delay):
        schedule(.answer(answer), after: Self.microseconds(delay), for: host)
      case .tell(.retrying): occur(.retry)
      case .tell(.lost(let span)):
        note("has lost \(span)", host)
        demand(!isCalm, "\(span) is lost, and nothing has gone wrong")
      case .tell, .beginGrace, .emptyLog: break
      case .end(let ending): conclude(ending, host)
      }
    }
  }

  /// The token with which a host holds the span of a chunk that it is about to begin, or to close.
  private func token(for positions: Range<Int>, _ host: LeaseHost) -> Int {
    let lease = host.lease(of: positions)
    demand(lease != nil, "\(positions) is begun with, and its span was lost")
    return lease?.token ?? 0
  }

  private func prepare(_ chunk: Range<Int>, _ worker: Int, _ host: LeaseHost) {
    demand(!host.hasChunk(of: chunk), "\(chunk) is handed out twice")
    let token = token(for: chunk, host)
    let span = host.lease(of: chunk)?.span ?? chunk
    demand(chunk.clamped(to: span) == chunk, "\(chunk) is of two spans")
    if let earlier = host.postponed.removeValue(forKey: chunk) {
      occur(.secondTry)
      demand(token == earlier, "\(chunk) goes on from before it was lost")
    }
    host.outstanding.append(chunk)
    let time = moment(upTo: 30)
    let answer: RunLogic.Answer
    if goesWrong(oncePer: 30) {
      let byteCount = choices.below(2)
      if byteCount > 0 { occur(.postponement) }
      answer = .failedToPrepare(chunk, worker: worker, .busy, holding: byteCount)
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

  func claim(besides own: [Range<Int>], _ host: LeaseHost) {
    let before = server.content.spans
    // A standby that takes over from here on may lack what this host hears of.
    host.failovers = failovers
    let (claim, token) = server.claim(by: host.id, besides: own, lease: lease, at: now)
    if case .granted(let span, _) = claim {
      if let holder = before.first(where: { $0.positions == span })?.host {
        occur(holder == host.id ? .reclaim : .takeover)
      }
      note("is granted \(span), token \(token)", host)
    }
    guard host.isAlive else { return }
    if goesWrong(oncePer: 12) {
      occur(.lostMessage)
      return schedule(.answer(.failedToClaim(.busy)), after: moment(upTo: 30), for: host)
    }
    schedule(.claimed(claim, token: token), after: moment(upTo: 10), for: host)
  }

  func claimed(_ claim: SpanClaim, _ token: Int, _ host: LeaseHost) {
    // A run that has ended meanwhile has released everything.
    guard host.ending == nil else { return }
    switch claim {
    case .granted(let span, let parts):
      demand(!host.hasChunk(of: span), "\(span) is granted, and something of it goes on")
      host.begin(span, parts, token: token)
    case .noneFree: occur(.wait)
    case .exhausted: break
    }
    hear(.claimed(claim), host)
  }

  func close(_ span: Range<Int>, _ token: Int, _ host: LeaseHost) {
    let isClosed = server.close(span, by: host.id, token: token)
    if isClosed { note("has done all of \(span)", host) }
    guard host.isAlive else { return }
    if goesWrong(oncePer: 12) {
      occur(.lostMessage)
      return schedule(.answer(.failedToClose(span, .busy)), after: moment(upTo: 30), for: host)
    }
    if !isClosed {
      occur(.refusedClose)
      demand(!isCalm, "\(span) is lost, and nothing has gone wrong")
    }
    schedule(
      .answer(isClosed ? .closed(span) : .failedToClose(span, .leaseLost)),
      after: moment(upTo: 10),
      for: host
    )
  }

  // MARK: Transactions

  func begin(_ id: Int, _ chunk: Range<Int>, _ token: Int, _ host: LeaseHost) {
    guard host.isAlive else { return }
    if goesWrong(oncePer: 20) { return answer(.failedToCommit(chunk, .busy), chunk, host) }
    guard server.begin(id, chunk, by: host.id, token: token, at: now) else {
      occur(.fenced)
      return answer(.failedToCommit(chunk, .leaseLost), chunk, host)
    }
    schedule(.requestCommit(transaction: id, chunk), after: moment(upTo: 40), for: host)
  }

  /// The host sends the last message of a transaction.
  func requestCommit(_ id: Int, _ chunk: Range<Int>, _ host: LeaseHost) {
    if goesWrong(oncePer: 20) {
      // It does not arrive, and the server waits for it until the transaction was idle for too long.
      occur(.lostMessage)
      return lose(chunk, host)
    }
    guard server.beginCommit(id) else {
      occur(.idleTimeout)
      return lose(chunk, host)
    }
    // A standby may have to hear of it first.
    let isSlow = goesWrong(oncePer: 20)
    if isSlow { occur(.slowCommit) }
    let time = moment(upTo: isSlow ? 3 * lease / 1000 : 20)
    schedule(.commit(transaction: id, chunk), after: time, for: host)
    if goesWrong(oncePer: 10) {
      // The server does the work nevertheless.
      occur(.lostAnswer)
      lose(chunk, host)
    }
  }

  /// A host loses the connection on which it was waiting for a chunk's result.
  private func lose(_ chunk: Range<Int>, _ host: LeaseHost) {
    host.transactions[chunk] = nil
    schedule(.ask(chunk), after: moment(upTo: 30), for: host)
  }

  func commit(_ id: Int, _ chunk: Range<Int>, _ host: LeaseHost) {
    let isCommitted = server.commit(id)
    if isCommitted { note("has committed \(chunk)", host) }
    // Nobody listens on a lost connection.
    guard host.isAlive, host.transactions[chunk] == id else { return }
    guard isCommitted else { return lose(chunk, host) }
    answer(.committed(chunk, commit(of: chunk)), chunk, host)
  }

  private func commit(of chunk: Range<Int>) -> Commit {
    var outcomes = Outcomes()
    outcomes.succeeded = chunk.count
    return Commit(outcomes: outcomes, duration: .milliseconds(1))
  }

  /// A host asks for the fate of a chunk.
  func ask(_ chunk: Range<Int>, _ host: LeaseHost) {
    switch server.fate(of: chunk, by: host.id) {
    case true?:
      occur(.doneUnheard)
      answer(.committed(chunk, commit(of: chunk)), chunk, host)
    case false?: answer(.failedToCommit(chunk, .busy), chunk, host)
    case nil: schedule(.ask(chunk), after: moment(upTo: 10), for: host)
    }
  }

  /// Reports the fate of a chunk to a host.
  private func answer(_ answer: RunLogic.Answer, _ chunk: Range<Int>, _ host: LeaseHost) {
    host.transactions[chunk] = nil
    schedule(.answer(answer), after: moment(upTo: 5), for: host)
  }
}

extension BatchError {
  fileprivate static let leaseLost = BatchError(.leaseLost, "the span belongs to another host")
}
