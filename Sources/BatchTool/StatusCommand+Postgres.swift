#if PostgreSQL
import BatchEngine
import BatchIdentifiers
import BatchPipeline

extension StatusCommand {
  /// Shows how the last run of a job on PostgreSQL stands.
  func showSharedRun(of job: Job) async throws {
    if recorded.run != nil { try job.requireFile(for: "a run of the history") }
    var shown = 0
    var last: String?
    while true {
      let status = try await SharedRunStatus(of: job, runID: runID.value)
      let isOver = !watch || !status.isLive
      let lines = Self.lines(status, withProgress: watch && !isOver)
      if watch, !json, Terminal.canRedraw {
        try Terminal.redraw(lines, over: shown)
        shown = lines.count
      } else if json {
        try Terminal.printJSON(status, pretty: !watch)
      } else if isOver {
        try Terminal.print(lines.joined(separator: "\n"))
      } else {
        let line = ProgressPrinter.line(status.summary)
        if line != last { try Terminal.print(line) }
        last = line
      }
      if isOver { return }
      try await Task.sleep(for: .seconds(1))
    }
  }

  private static func lines(_ status: SharedRunStatus, withProgress: Bool) -> [String] {
    var lines = SummaryText.lines(status.summary) + SummaryText.times(of: status.summary)
    lines.append("  spans: \(Format.count(status.spansDone)) of \(Format.count(status.spans)) done")
    for host in status.hosts {
      var facts = [
        host.isAlive ? Format.count(host.spans, "span") : "gone",
        host.identifiersPerSecond.map { "\(Format.count(Int($0)))/s" },
        "heard of \(Format.seconds(host.lastSeenSecondsAgo)) ago",
      ].compactMap(\.self)
      if let hold = host.hold { facts.append("held: \(hold)") }
      lines.append("  host \(host.name), process \(host.process): \(facts.joined(separator: ", "))")
    }
    lines.append("  batch run: \(status.nextWords)")
    return lines + (withProgress ? [ProgressPrinter.line(status.summary)] : [])
  }
}
#endif
