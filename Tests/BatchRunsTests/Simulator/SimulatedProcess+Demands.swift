@testable import BatchRuns
import BatchIdentifiers

/// What the naive model demands of a process.
extension SimulatedProcess {
  /// Checks that it is no faster than allowed, unless somebody has changed that.
  func demandPace(_ chunk: Range<Int>) {
    committedCount += chunk.count
    largestChunk = max(largestChunk, chunk.count)
    guard let rate = policy.throttle.identifiersPerSecond, !simulation.paceWasChanged else {
      return
    }
    // Lost time is made up for by a tenth of a second.
    let most = rate * (Double(simulation.now - start) / 1e6 + 0.1) + 2 * Double(largestChunk)
    demand(
      Double(committedCount) <= most,
      "it does \(committedCount), faster than \(rate) a second"
    )
  }

  /// Sees that it does not go on while it is held.
  func demandUnheld() {
    guard !isRecording, let since = heldSince else { return }
    // A chunk may have been handed out at that very moment.
    demand(simulation.now == since, "it is held, and goes on")
  }

  /// Sees that it waits for anything but time unless it is held, and not long after a stop.
  func demandProgress() {
    guard isAlive else { return }
    if let stoppedAt {
      let end = stoppedAt + Simulation.microseconds(RunStop.grace + .milliseconds(600))
      demand(simulation.now < end, "it does not end though it was told to stop")
    }
    guard heldSince == nil, callCount == 0 else { return }
    demand(simulation.now < lastReturn + 500_000, "nothing goes on, and the run has not ended")
  }

  func demandStop() {
    let end = policy.limits.runtime.map { start + Simulation.microseconds($0) } ?? .max
    if simulation.now >= end { return simulation.occur(.endOfTime) }
    demand(stoppedAt != nil, "it has stopped, and nobody has asked for it")
  }

  /// Checks that a retry of failed identifiers has retried all.
  func demandAllTried() {
    let store = simulation.store
    // A backup with the same ledger cannot be told from what was left, though it counts fewer tries.
    guard let retried, restoresAtStart == store.restores else { return }
    // A process that has taken over the run since may have retried them before this one learns of
    // its own retry.
    let isTakenOver = store.content.owner != id
    for (position, attempt) in zip(retried.positions, retried.attempts) {
      let attempts = store.content.failed[position] ?? attempt + 1
      let isOneMore = attempts == attempt + 1 || isTakenOver && attempts > attempt
      demand(isOneMore, "identifier \(position) was not tried again")
    }
    simulation.occur(.secondTry)
  }
}
