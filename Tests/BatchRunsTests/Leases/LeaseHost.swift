@testable import BatchRuns

/// A process on its own host that takes part in a run: the engine's own logic, and code that
/// performs its effects.
final class LeaseHost {
  /// A span that it has, by all that it was told.
  struct Lease {
    let span: Range<Int>
    let token: Int
    /// The positions to do.
    var left: Set<Int>
  }

  let id: Int
  /// How much faster than the server's its clock is, and by how much it is ahead.
  let clockRate: Double
  let clockOffset: Int
  /// When it began, in microseconds.
  let start: Int
  var logic: RunLogic?
  private var leases: [Lease] = []
  var ready: Set<Range<Int>> = []
  /// Chunks of which it holds part for their next attempt, and the tokens of their spans.
  var postponed: [Range<Int>: Int] = [:]
  /// The transactions of chunks that it waits for.
  var transactions: [Range<Int>: Int] = [:]
  /// Until when it stalls; messages to it wait.
  var pausedUntil = 0
  var isAlive = true
  /// How often a standby had taken over when it asked for a span last.
  var failovers = 0
  /// Whether it was asked to stop, and what it must retry.
  var isStopped = false
  var failures = 0
  var ending: RunStateMachine.Ending?
  /// Chunks that are handed out, and not answered.
  var outstanding: [Range<Int>] = []

  init(_ id: Int, start: Int, clockRate: Double, clockOffset: Int) {
    self.id = id
    self.start = start
    self.clockRate = clockRate
    self.clockOffset = clockOffset
  }

  /// The lease of a span, or of the first positions of a chunk.
  func lease(of positions: Range<Int>) -> Lease? {
    leases.first { $0.span.contains(positions.lowerBound) }
  }

  func begin(_ span: Range<Int>, _ parts: [Range<Int>], token: Int) {
    lose(span)
    leases.append(Lease(span: span, token: token, left: Set(parts.joined())))
  }

  func lose(_ positions: Range<Int>) {
    leases.removeAll { $0.span.contains(positions.lowerBound) }
  }

  func done(_ chunk: Range<Int>) {
    for index in leases.indices { leases[index].left.subtract(chunk) }
  }

  /// Whether it has an unanswered chunk of some positions.
  func hasChunk(of positions: Range<Int>) -> Bool {
    outstanding.contains { $0.overlaps(positions) }
  }

  /// The time since its start, by its own clock.
  func time(at now: Int) -> Duration {
    .microseconds(Int(Double(now - start) * clockRate) + clockOffset)
  }
}
