import BatchIdentifiers
import BatchPipeline
import BatchStore

/// A summary for people.
enum SummaryText {
  static func print(_ summary: RunSummary) throws(BatchError) {
    var lines = [
      "\(summary.job): \(words(for: summary.state)), \(Format.count(summary.done)) of"
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
    if !summary.state.isFinished { lines.append("  checkpoint: \(summary.checkpoint)") }
    if summary.throttledSeconds > 0 {
      lines.append("  held back: \(Format.seconds(summary.throttledSeconds))")
    }
    if let reason = summary.throttle { lines.append("  held: \(reason)") }
    if let reason = summary.stopReason { lines.append("  reason: \(reason)") }
    if let error = summary.error, summary.failure == nil { lines.append("  error: \(error)") }
    if summary.state == .completedWithFailures {
      lines.append("  which and why: batch ids \(summary.checkpoint) --outcome failed --reasons")
    }
    try Terminal.print(lines.joined(separator: "\n"))
  }

  private static func words(for state: RunState) -> String {
    switch state {
    case .running: "running"
    case .throttled: "held back"
    case .paused: "paused"
    case .stopped: "stopped, resumable"
    case .completed: "completed"
    case .completedWithFailures: "completed with failures"
    case .failed: "failed, resumable"
    }
  }
}
