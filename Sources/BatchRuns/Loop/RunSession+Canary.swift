package import BatchIdentifiers
import BatchPlatform

extension RunSession {
  /// Works only on the canary until its trial is over, if the run has one.
  package func beginTrial(by policy: RunPolicy) {
    guard !isRetry, progress.canary?.isOver != true else { return }
    trial = CanaryTrial(of: checkpoint.metadata, policy, total: checkpoint.list.count)
  }

  package var isTrying: Bool { trial != nil }

  /// The positions to work on now.
  package var positions: [Range<Int>] { trial?.clamping(remaining) ?? remaining }

  /// Decides whether the trial is over, once the canary is done, and records when it was done.
  ///
  /// - Parameters:
  ///   - asked: The requests of operators.
  ///   - difference: Verifies the changed rows; returns a difference, in words.
  /// - Returns: What the run waits for; nil if the trial is over.
  /// - Throws: `BatchError` of code `canaryFailed`, or an error of the file.
  package func canaryGate(
    _ asked: RunControl,
    difference: () async throws(BatchError) -> String?
  ) async throws(BatchError) -> RunGate? {
    guard let trial else { return nil }
    let resumptions = asked.resumptions ?? 0
    resumptionsBefore = resumptionsBefore ?? resumptions
    let now = host.date()
    if progress.canary == nil {
      progress.canary = CanaryProgress(endedAt: now)
      try write(progress.state)
    }
    let gate = try await trial.gate(
      failed: done.outcomes.failed,
      waited: .seconds(now - (progress.canary?.endedAt ?? now)),
      isResumed: resumptions > resumptionsBefore ?? 0,
      difference: difference
    )
    guard gate == nil else { return gate }
    progress.canary?.isOver = true
    try write(progress.state)
    self.trial = nil
    return nil
  }
}
