@testable import BatchRuns
import BatchIdentifiers

/// A database server in memory, as far as leases go: spans, heartbeats of hosts, the ledger, rows, and
/// transactions with the locks that they hold.
///
/// In addition to the ledger it has the naive model's: how often each row was changed.
struct LeaseServer {
  /// A part of the positions, and who works on it.
  struct Span {
    let positions: Range<Int>
    var host: Int?
    var token = 0
    var isDone = false
  }

  /// All that is committed.
  struct Content {
    var spans: [Span]
    /// When each host was heard of last, by the clock of the server then.
    var seen: [Int: Int] = [:]
    var ledger = DoneRanges()
    /// The rows of the ledger as written, and by whom, by their first positions.
    var entries: [Int: (chunk: Range<Int>, host: Int)] = [:]
    var changes: [UInt8]
  }

  /// The transaction of a chunk, which holds a lock on its span.
  struct Transaction {
    let id: Int
    let host: Int
    let chunk: Range<Int>
    let span: Int
    /// When it began, by the server's clock.
    let begun: Int
    /// Whether the server was told to commit it.
    var isCommitting = false
  }

  private(set) var content: Content
  private(set) var transactions: [Transaction] = []
  /// What an asynchronous standby has, which is some time behind.
  private var standby: Content
  /// How much its clock is ahead.
  private var clockSkew = 0
  /// How often the server has committed.
  private(set) var version = 0
  let flaw: LeaseSimulation.Flaw?

  init(count: Int, spans: [Range<Int>], flaw: LeaseSimulation.Flaw?) {
    content = Content(
      spans: spans.map { Span(positions: $0) },
      changes: Array(repeating: 0, count: count)
    )
    standby = content
    self.flaw = flaw
  }

  // MARK: Leases

  /// Hears that a host is alive.
  mutating func see(_ host: Int, at time: Int) { content.seen[host] = time + clockSkew }

  /// Grants a host a span that nobody works on and of which it has nothing, and reports what of it
  /// is done.
  mutating func claim(
    by host: Int,
    besides own: [Range<Int>],
    lease: Int,
    at time: Int
  ) -> (claim: SpanClaim, token: Int) {
    see(host, at: time)
    let place = content.spans.indices.first { index in
      let span = content.spans[index]
      if span.isDone { return false }
      if flaw != .grantsTwice, own.contains(span.positions) { return false }
      let isLocked = transactions.contains { $0.span == index }
      guard flaw == .takesLockedSpans || !isLocked else { return false }
      guard let holder = span.host else { return true }
      return holder == host || content.seen[holder, default: 0] + lease < time + clockSkew
    }
    guard let place else {
      let isOver = content.spans.allSatisfy(\.isDone)
      return (isOver ? .exhausted : .noneFree(askingAgainAfter: .microseconds(lease / 4)), 0)
    }
    content.spans[place].host = host
    content.spans[place].token += 1
    let span = content.spans[place]
    let parts = flaw == .forgetsLedger ? [span.positions] : remaining(of: span.positions)
    return (.granted(span.positions, remaining: parts), span.token)
  }

  private func remaining(of span: Range<Int>) -> [Range<Int>] {
    content.ledger.remaining(of: span.upperBound)
      .map { $0.clamped(to: span) }.filter { !$0.isEmpty }
  }

  private func holds(_ host: Int, _ token: Int, _ index: Int) -> Bool {
    content.spans[index].host == host && content.spans[index].token == token
  }

  /// Records that all of a span is done; false if that is not so, or the span is not the host's.
  mutating func close(_ span: Range<Int>, by host: Int, token: Int) -> Bool {
    guard let index = index(of: span) else { return false }
    guard holds(host, token, index) else { return false }
    // Another server may know some of it.
    guard flaw == .closesUnseen || remaining(of: span).isEmpty else { return false }
    content.spans[index].isDone = true
    version += 1
    return true
  }

  /// Revokes everything that a host has.
  mutating func release(_ host: Int) {
    for index in content.spans.indices where content.spans[index].host == host {
      content.spans[index].host = nil
    }
  }

  func index(of positions: Range<Int>) -> Int? {
    content.spans.firstIndex { $0.positions.overlaps(positions) }
  }

  // MARK: Transactions

  /// Begins the transaction of a chunk, which locks its span; false if that is not the host's.
  mutating func begin(
    _ id: Int,
    _ chunk: Range<Int>,
    by host: Int,
    token: Int,
    at time: Int
  ) -> Bool {
    guard let index = index(of: chunk), flaw == .ignoresFence || holds(host, token, index) else {
      return false
    }
    transactions.append(Transaction(id: id, host: host, chunk: chunk, span: index, begun: time))
    return true
  }

  /// Receives a commit, which takes a while; false if the transaction is gone.
  mutating func beginCommit(_ id: Int) -> Bool {
    guard let place = transactions.firstIndex(where: { $0.id == id }) else { return false }
    transactions[place].isCommitting = true
    return true
  }

  /// Commits a transaction; false if it is gone.
  mutating func commit(_ id: Int) -> Bool {
    guard let place = transactions.firstIndex(where: { $0.id == id }) else { return false }
    let (chunk, host) = (transactions[place].chunk, transactions[place].host)
    transactions.remove(at: place)
    for position in chunk { content.changes[position] += 1 }
    if flaw != .losesLedger, !content.ledger.overlaps(chunk) {
      var outcomes = Outcomes()
      outcomes.succeeded = chunk.count
      content.ledger.insert(.init(chunk, outcomes: outcomes, chunks: 1))
      content.entries[chunk.lowerBound] = (chunk, host)
    }
    version += 1
    return true
  }

  /// The fate of a chunk that a host was committing when it lost its connection.
  ///
  /// - Returns: True if it is done; false if it is not, and will not be; nil while it is undecided,
  ///   which a transaction that enters it in the ledger would wait for.
  func fate(of chunk: Range<Int>, by host: Int) -> Bool? {
    let isOpen = transactions.contains { $0.host == host && $0.chunk == chunk }
    if isOpen, flaw != .answersTooEarly { return nil }
    return content.entries[chunk.lowerBound].map { $0 == (chunk, host) } ?? false
  }

  /// Ends the transactions that wait for their hosts for too long.
  mutating func endIdle(longerThan limit: Int, at time: Int) {
    transactions.removeAll { !$0.isCommitting && $0.begun + limit < time }
  }

  /// Ends a host's transactions that are not committing yet.
  mutating func disconnect(_ host: Int) {
    transactions.removeAll { $0.host == host && !$0.isCommitting }
  }

  // MARK: Failures

  /// The server crashes and restarts.
  mutating func restart() { transactions.removeAll() }

  /// The standby hears of what was committed up to now.
  mutating func replicate() { standby = content }

  /// The standby takes over, with its own data and clock.
  mutating func failOver(clockSkew: Int) {
    self.clockSkew = clockSkew
    transactions.removeAll()
    content = standby
    version += 1
  }

  // MARK: The naive model

  /// What contradicts the naive model, in words; nil if nothing does.
  func contradiction() -> String? {
    for (position, count) in content.changes.enumerated() {
      if count > 1 { return "identifier \(position) was changed \(count) times" }
      if (count == 1) != content.ledger.contains(position) {
        return "the ledger does not say what became of identifier \(position)"
      }
    }
    for span in content.spans where span.isDone && !remaining(of: span.positions).isEmpty {
      return "\(span.positions) counts as done, and is not"
    }
    return nil
  }
}
