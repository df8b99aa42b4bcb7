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
    let lines = lines(summary, of: prefix, isReal: isReal)
    try Terminal.print(lines.joined(separator: "\n"))
  }

  /// A summary, line by line.
  static func lines(
    _ summary: RunSummary,
    of prefix: String = "",
    isReal: Bool = true
  ) -> [String] {
    let state = words(for: summary, isReal: isReal)
    var lines = [
      "\(summary.job): \(prefix)\(state), \(Format.count(summary.done)) of"
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
    if !summary.state.isFinished, isReal, !summary.checkpoint.isEmpty {
      lines.append("  checkpoint: \(summary.checkpoint)")
    }
    if summary.throttledSeconds > 0 {
      lines.append("  held back: \(Format.seconds(summary.throttledSeconds))")
    }
    if let reason = summary.throttle { lines.append("  held: \(reason)") }
    if let reason = summary.stopReason { lines.append("  reason: \(reason)") }
    if let error = summary.error, summary.failure == nil { lines.append("  error: \(error)") }
    if summary.state == .completedWithFailures, isReal {
      let source = summary.checkpoint.isEmpty ? "JOB" : summary.checkpoint
      lines.append("  which and why: batch ids \(source) --outcome failed --reasons")
    }
    return lines
  }

  /// When a run was at work, and for how long.
  static func times(of summary: RunSummary) -> [String] {
    var lines: [String] = []
    if let id = summary.runID { lines.append("  run ID: \(id)") }
    if let start = summary.startedAt { lines.append("  began: \(start)") }
    if let end = summary.endedAt {
      lines.append("  ended: \(end)")
    } else if let last = summary.lastSeenAt {
      lines.append("  last sign of life: \(last)")
    }
    if let seconds = summary.processSeconds, summary.elapsedSeconds - seconds > 0.001 {
      lines.append(
        "  time: \(Format.seconds(summary.elapsedSeconds)) over all its processes,"
          + " \(Format.seconds(seconds)) of the last one"
      )
    }
    return lines
  }

  /// A run of the history, with who has run it.
  static func print(_ run: RecordedRun) throws(BatchError) {
    try print(run.summary)
    var lines = ["  run: \(run.summary.run)"] + times(of: run.summary)
    if let undo = run.undo { lines.append("  \(undo.words(ofRows: nil))") }
    if let undone = run.undone { lines.append("  undone: \(undone)") }
    for (name, value) in run.parameters.sorted(by: { $0.key < $1.key }) {
      lines.append("  \(name) = \(value.onOneLine)")
    }
    if let invocation = run.invocation {
      lines.append(
        "  by: \(invocation.user) on \(invocation.host), process \(invocation.pid), version"
          + " \(invocation.version)"
      )
      if let command = invocation.command {
        lines.append("  command: \(command.joined(separator: " ").onOneLine)")
      }
      if let file = invocation.jobFile { lines.append("  job file: \(file)") }
    }
    try Terminal.print(lines.joined(separator: "\n"))
  }

  private static func words(for summary: RunSummary, isReal: Bool) -> String {
    let state = summary.state
    let word = summary.wasKilled ? "killed" : word(for: state)
    let isResumable = isReal && (state == .stopped || state == .failed)
    return isResumable ? "\(word), resumable" : word
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
