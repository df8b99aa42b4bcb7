import BatchIdentifiers
import BatchPipeline
import BatchStore

/// A summary for people.
enum SummaryText {
  /// Prints a summary.
  ///
  /// - Parameters:
  ///   - summary: The run.
  ///   - prefix: What comes before its state.
  ///   - isReal: Whether it can be resumed and looked at; that of a rehearsal cannot.
  /// - Throws: `BatchError` if it cannot be written.
  static func print(
    _ summary: RunSummary,
    of prefix: String = "",
    isReal: Bool = true
  ) throws(BatchError) {
    var lines = [
      "\(summary.job): \(prefix)\(isReal ? words(for: summary.state) : word(for: summary.state)), \(Format.count(summary.done)) of"
        + " \(Format.count(summary.total)) done"
        + (summary.elapsedSeconds > 0 ? " in \(Format.seconds(summary.elapsedSeconds))" : "")
    ]
    let outcomes = [
      ("succeeded", summary.outcomes.succeeded),
      ("unchanged", summary.outcomes.unchanged),
      ("vanished", summary.outcomes.vanished),
      ("no longer matching", summary.outcomes.noLongerMatching),
      ("failed", summary.outcomes.failed),
    ]
    for (name, count) in outcomes where count > 0 || name == "succeeded" {
      lines.append("  \(name): \(Format.count(count))")
    }
    if summary.peakWALBytes > 0 {
      lines.append("  peak WAL: \(Format.bytes(summary.peakWALBytes))")
    }
    if let output = summary.output { lines.append("  output: \(output)") }
    if !summary.state.isFinished, isReal { lines.append("  checkpoint: \(summary.checkpoint)") }
    if summary.throttledSeconds > 0 {
      lines.append("  held back: \(Format.seconds(summary.throttledSeconds))")
    }
    if let reason = summary.throttle { lines.append("  held: \(reason)") }
    if let reason = summary.stopReason { lines.append("  reason: \(reason)") }
    if let error = summary.error, summary.failure == nil { lines.append("  error: \(error)") }
    if summary.state == .completedWithFailures, isReal {
      lines.append("  which and why: batch ids \(summary.checkpoint) --outcome failed --reasons")
    }
    try Terminal.print(lines.joined(separator: "\n"))
  }

  private static func words(for state: RunState) -> String {
    let isResumable = state == .stopped || state == .failed
    return isResumable ? "\(word(for: state)), resumable" : word(for: state)
  }

  private static func word(for state: RunState) -> String {
    switch state {
    case .running: "running"
    case .throttled: "held back"
    case .paused: "paused"
    case .stopped: "stopped"
    case .completed: "completed"
    case .completedWithFailures: "completed with failures"
    case .failed: "failed"
    }
  }
}
