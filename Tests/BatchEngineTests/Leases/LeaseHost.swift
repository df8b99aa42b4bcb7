@testable import BatchEngine

/// A process on a host of its own that takes part in a run: the engine's own logic, and what performs its
/// effects.
final class LeaseHost {
  let id: Int
  /// How much faster than the server's its clock is, and by how much it is ahead.
  let clockRate: Double
  let clockOffset: Int
  /// When it began, in microseconds.
  let start: Int
  var logic: RunLogic?
  /// The tokens of the spans that it knows to be its own, by their first positions.
  var tokens: [Int: Int] = [:]
  var ready: Set<Range<Int>> = []
  /// What chunks were last to be written with: their spans, by first positions, and tokens.
  var fences: [Range<Int>: (first: Int, token: Int)] = [:]
  /// The transactions of chunks that it waits for.
  var transactions: [Range<Int>: Int] = [:]
  /// Until when it stands still; what comes to it waits.
  var pausedUntil = 0
  var isAlive = true
  /// How often a standby had taken over when it asked for a span last.
  var failovers = 0
  var ending: RunStateMachine.Ending?
  /// Chunks that are handed out, and not answered.
  var outstanding: [Range<Int>] = []

  init(_ id: Int, start: Int, clockRate: Double, clockOffset: Int) {
    self.id = id
    self.start = start
    self.clockRate = clockRate
    self.clockOffset = clockOffset
  }

  /// The time since it began, as it has it.
  func time(at now: Int) -> Duration {
    .microseconds(Int(Double(now - start) * clockRate) + clockOffset)
  }
}
