package import BatchIdentifiers

/// The trial of a run: its canary is processed, and the rest waits until the trial is over.
package struct CanaryTrial: Sendable {
  private let canary: RunPolicy.Canary
  /// The positions of the canary, ascending.
  package let positions: [Range<Int>]

  /// - Returns: Nil if the run has no canary, or no longer according to its policy.
  package init?(of metadata: RunMetadata, _ policy: RunPolicy, total: Int) {
    guard let canary = policy.canary else { return nil }
    positions = metadata.canaryPositions(of: total)
    if positions.isEmpty { return nil }
    self.canary = canary
  }

  package var count: Int { positions.reduce(0) { $0 + $1.count } }

  /// Those of some ascending ranges that are in the canary.
  package func clamping(_ ranges: [Range<Int>]) -> [Range<Int>] {
    positions.flatMap { part in
      ranges.filter { $0.overlaps(part) }.map { $0.clamped(to: part) }
    }
  }

  /// Decides whether the trial is over, once the canary is done.
  ///
  /// - Parameters:
  ///   - failed: How many rows of the canary have failed.
  ///   - waited: The time since the canary was done.
  ///   - isResumed: Whether somebody has continued the run since.
  ///   - difference: Verifies the changed rows; returns a difference, in words.
  /// - Returns: What the run waits for; nil if the trial is over.
  /// - Throws: `BatchError` of code `canaryFailed`, or the error of `difference`.
  package func gate(
    failed: Int,
    waited: Duration,
    isResumed: Bool,
    difference: () async throws(BatchError) -> String?
  ) async throws(BatchError) -> RunGate? {
    try refuse(failures: failed)
    switch canary.wait {
    case .pause:
      guard !isResumed else { return nil }
      return RunGate(.pause, "after the canary of \(count.grouped) rows, until batch resume")
    case .time(let time):
      guard waited < time, !isResumed else { return nil }
      return RunGate(
        .canary,
        "\(count.grouped) rows are done; the others wait \(time.shown) after them, or until batch resume"
      )
    case .verification:
      guard let difference = try await difference() else { return nil }
      throw Self.failed(
        "the rows of the canary are not as the run left them: \(difference)",
        remedy:
          "find out which trigger or program changes them; batch undo JOB --overwrite takes the canary back; if they"
          + " are right nevertheless, set canary.then to \"pause\", run again, and batch resume JOB"
      )
    }
  }

  /// What joining a run does while its trial is not over, in words.
  package var wordsOfJoining: String {
    switch canary.wait {
    case .pause: "resumes the unfinished run, which waits after its canary until batch resume"
    case .time: "resumes the unfinished run, which waits after its canary"
    case .verification:
      "verifies the canary again, and resumes the run only if its rows are as the run left them"
    }
  }

  /// Refuses to go on with the rest of the run if too many rows of the canary have failed.
  package func refuse(failures failed: Int) throws(BatchError) {
    guard let share = canary.stopAfter, Double(failed) > Double(count) * share else { return }
    throw Self.failed(
      "\(failed.grouped) of the \(count.grouped) rows of the canary have failed, more than \(Self.percent(share))",
      remedy:
        "look at them with batch ids JOB --outcome failed --reasons; mend the cause and repeat them with batch retry-failed JOB,"
        + " or raise canary.stopAfter"
    )
  }

  private static func failed(_ message: String, remedy: String) -> BatchError {
    BatchError(.canaryFailed, message, remedy: remedy)
  }

  private static func percent(_ share: Double) -> String {
    let percent = (share * 10_000).rounded() / 100
    return Int(exactly: percent).map { "\($0) %" } ?? "\(percent) %"
  }
}

/// Something that a run waits for before it goes on.
package struct RunGate: Sendable {
  /// The hold of a process that waits.
  package let hold: RunThrottle.Hold
  /// Why the run has stopped if nobody waits here.
  package let reason: String
  /// Whether that is also why the run has stopped if it is told to stop during the wait.
  package var isTold: Bool { hold.cause == .approval }
  /// Whether a process waits, instead of ending.
  package let isWaitedFor: Bool

  package init(
    _ cause: RunThrottle.Hold.Cause,
    _ reason: String,
    isWaitedFor: Bool = true
  ) {
    hold = RunThrottle.Hold(at: cause, reason)
    self.reason = reason
    self.isWaitedFor = isWaitedFor
  }
}
