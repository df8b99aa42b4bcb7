@testable import BatchRuns
import BatchIdentifiers

/// What the naive model knows of a run's canary.
struct CanaryModel {
  let positions: Set<Int>
  private let canary: RunPolicy.Canary?
  /// When the canary was done first, in microseconds.
  private(set) var doneAt: Int?
  /// Whether an operator has resumed the run, or the rows were verified, since the canary was done.
  private var isOpen = false

  init(_ scenario: Scenario) {
    canary = scenario.policy.canary
    let ranges = RunPolicy.Canary.positions(
      canary?.rows ?? 0,
      of: scenario.count,
      inOrder: scenario.inOrder
    )
    positions = Set(ranges.joined())
  }

  mutating func look(at fates: [SimulatedStore.Fate], _ now: Int) {
    guard doneAt == nil, positions.allSatisfy({ fates[$0] != .none }) else { return }
    doneAt = now
  }

  mutating func resume() {
    if canary?.wait != .verification, doneAt != nil { isOpen = true }
  }

  mutating func verified() { isOpen = true }

  /// Whether a chunk may be begun now.
  func allows(_ chunk: Range<Int>, _ now: Int) -> Bool {
    guard !positions.isEmpty, !isOpen, !chunk.allSatisfy(positions.contains) else { return true }
    guard case .time(let time) = canary?.wait, let doneAt else { return false }
    return now >= doneAt + Simulation.microseconds(time)
  }

  /// Whether more of it have failed than may.
  func hasFailed(_ failed: some Collection<Int>) -> Bool {
    guard let share = canary?.stopAfter else { return false }
    return Double(failed.count { positions.contains($0) }) > share * Double(positions.count)
  }
}

extension SimulatedProcess {
  /// Verifies the rows of the canary, which another program may have changed.
  func differenceInCanary() -> String? {
    demand(simulation.canary.doneAt != nil, "the canary is verified, and is not done")
    if simulation.goesWrong(oncePer: 3) { return "a row differs" }
    simulation.canary.verified()
    return nil
  }

  /// Has an operator resume it some time later, if it waits for one.
  func waits(at gate: RunGate?) {
    guard let gate else {
      simulation.occur(.canaryEnd)
      demand(
        restoresAtStart != simulation.store.restores
          || !simulation.canary.hasFailed(simulation.store.content.failed.keys),
        "it goes on, and too many rows of the canary have failed"
      )
      return
    }
    guard !isAtGate, gate.hold.cause == .pause else { return }
    simulation.occur(.canaryWait)
    isAtGate = true
    simulation.schedule(.ease, after: simulation.moment(upTo: 800))
  }

  func failedAfterCanary(_ error: BatchError) {
    guard isAlive, error.code == .canaryFailed else { return }
    simulation.occur(.canaryFailure)
    mayFail = true
    // Another process would find the same failures.
    if simulation.canary.hasFailed(simulation.store.content.failed.keys) { isPoisoned = true }
  }
}
