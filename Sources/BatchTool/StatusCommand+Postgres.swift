#if PostgreSQL
import BatchEngine
import BatchIdentifiers
import BatchPipeline

extension StatusCommand {
  /// Shows the state of the last run of a job on PostgreSQL, or of the one that is named.
  func showSharedRun(of job: Job) async throws {
    var shown = 0
    var last: String?
    while true {
      let status = try await waitingForRun(of: job) { () async throws(BatchError) in
        try await SharedRunStatus(of: job, runID: runID.value, run: recorded.run)
      }
      let isOver = !watch || !status.isLive && !status.isBeginning
      let isDrawn = watch && !json && Terminal.canRedraw
      let lines = Self.lines(status, isDrawn: isDrawn)
      if isDrawn {
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

  private static func lines(_ status: SharedRunStatus, isDrawn: Bool) -> [String] {
    var facts = SummaryText.times(of: status.summary)
    facts.append(
      ("spans", "\(status.spansDone.grouped) of \(status.spans.grouped) done")
    )
    for host in status.hosts {
      facts.append(
        ("host \(host.name), process \(host.process)", words(for: host, of: status.summary))
      )
    }
    facts.append(("batch run", status.nextWords))
    let lines = SummaryText.lines(
      status.summary,
      adding: facts,
      width: isDrawn ? nil : Terminal.outputColumns,
      hasColor: !isDrawn && Terminal.outputHasColor
    )
    return status.isLive ? lines + [ProgressPrinter.line(status.summary)] : lines
  }

  private static func words(for host: SharedRunStatus.Host, of run: RunSummary) -> String {
    let time = "\(Format.seconds(host.lastSeenSecondsAgo)) ago"
    if let end = host.end {
      let reason = host.reason.flatMap { $0 == run.error || $0 == run.stopReason ? nil : ": \($0)" }
      return "\(end) \(time)\(reason ?? "")"
    }
    var words = [
      host.isAlive ? Format.count(host.spans, "span") : "gone",
      host.identifiersPerSecond.map { "\(Int($0).grouped)/s" },
      "last heartbeat \(time)",
    ].compactMap(\.self)
    if let hold = host.hold { words.append("held: \(hold)") }
    return words.joined(separator: ", ")
  }
}
#endif
