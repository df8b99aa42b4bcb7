#if os(Linux)
import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

/// Trials of one scenario and one fault at many calls.
struct CrashSweep: Sendable {
  let scenario: CrashScenario
  let fault: Fault

  /// Which calls something befalls.
  enum Positions {
    /// Every n-th call, and each of those at the end.
    case every(Int)
    /// This call.
    case only(Int)
    /// A number of calls spread over all of them, and a number of the last ten.
    case slice(Int, ofTheEnd: Int)
  }

  /// How many calls the end of a run has, with some of what is before it.
  private static let endLength = 50

  /// Runs the trials, prints a line, and fails unless all of them are exact.
  func run(_ positions: Positions) throws {
    let template = try TemporaryDirectory()
    try scenario.prepare(template)
    let calls = try undisturbed(template)
    let count = calls.count
    let trial = CrashTrial(
      scenario: scenario,
      fault: fault,
      template: template,
      ending: RunEnding(calls)
    )
    let queue = PositionQueue(places(positions, of: count), isOpen: positions.isOpen)
    let result = Lock<Result<CrashTally, any Error>>(.success(CrashTally()))
    // Two lanes: a run spends much of its time waiting.
    DispatchQueue.concurrentPerform(iterations: CrashSettings.lanes) { _ in
      while let position = queue.next() {
        do {
          let (outcome, call) = try trial.run(at: position)
          if case .notReached(let calls) = outcome {
            queue.noteEnd(at: position, calls: calls, usually: count)
          }
          result.withLock { result in
            result = result.map { tally in
              var tally = tally
              tally.count(outcome, of: call?.description ?? "no call", at: position)
              return tally
            }
          }
        } catch {
          result.withLock { $0 = .failure(error) }
          return
        }
      }
    }
    let tally = try result.withLock { $0 }.get()
    let lines = [tally.line(scenario.name, "\(fault)")] + tally.details
    print(lines.joined(separator: "\n"))
    #expect(tally.notExact == 0, "\(lines.joined(separator: "\n"))")
  }

  /// The calls of a run to which nothing happens, those that the fault may befall.
  private func undisturbed(_ template: TemporaryDirectory) throws -> [TracedCall] {
    let directory = try template.copy()
    let notes = try FaultLibrary.Notes()
    let environment = try FaultLibrary.shared().environment(notes, fault)
    let result = try scenario.run(in: directory, environment: environment)
    try #require(result.endedWell, "\(scenario.name): \(result.errors)")
    if let wrong = try scenario.check(directory, 1) {
      Issue.record("\(scenario.name), undisturbed: \(wrong)")
    }
    return try notes.calls()
  }

  private func places(_ positions: Positions, of count: Int) -> [Int] {
    switch positions {
    case .every(let step):
      let end = max(1, count - Self.endLength)...max(1, count)
      return Set(stride(from: 1, through: count, by: step)).union(end).sorted()
    case .only(let position): return [position]
    case .slice(let number, let last):
      var generator = SeededGenerator(seed: scenario.seed)
      let step = max(1, count / number)
      let first = Int.random(in: 1...step, using: &generator)
      let end = (0..<last).map { _ in
        Int.random(in: max(1, count - 9)...max(1, count), using: &generator)
      }
      return Set(stride(from: first, through: count, by: step)).union(end).sorted()
    }
  }
}

extension CrashSweep.Positions {
  /// How far it is from one position to the next past the ones that are known; nil for an end.
  fileprivate var isOpen: Int? {
    if case .every(let step) = self { step } else { nil }
  }
}

/// Positions that are still to do, handed out to lanes.
private final class PositionQueue: Sendable {
  private struct State {
    var positions: ArraySlice<Int>
    var last: Int
    var step: Int?
    /// How often a position of a slice may be retried further ahead.
    var chances = 20
  }

  private let state: Lock<State>

  /// Some positions, and after them every `step`-th one until the end is noted.
  init(_ positions: [Int], isOpen step: Int?) {
    state = Lock(State(positions: positions[...], last: positions.last ?? 0, step: step))
  }

  func next() -> Int? {
    state.withLock { state in
      if let position = state.positions.popFirst() { return position }
      // No two runs make the same calls: this one may make more.
      guard let step = state.step else { return nil }
      state.last += step
      return state.last
    }
  }

  /// Notes that a run had ended before a position.
  ///
  /// No two runs make the same number of calls. If all positions are tried, the end is reached when
  /// a run with at least the usual number of calls has ended. In a slice, a position near the end
  /// must be near it, so it is retried at the same distance from the end of this run.
  func noteEnd(at position: Int, calls: Int, usually count: Int) {
    state.withLock { state in
      if state.step != nil {
        if position > count { state.step = nil }
      } else if state.chances > 0, position <= count {
        state.chances -= 1
        state.positions.append(max(1, calls - (count - position)))
      }
    }
  }
}
#endif
