import BatchRuns
import BatchIdentifiers
import BatchJobs
import BatchPipeline
import BatchSQLite
import SystemPackage

/// Shows a run: as a live line on a terminal, as plain lines elsewhere, as JSON with `--json`.
struct ProgressPrinter: Sendable {
  private let json: Bool
  private let quiet: Bool
  /// Whether the command would set this run aside instead of resuming it.
  private let isFresh: Bool
  /// The words that name the run to `batch ids`; nil for the path of its checkpoint.
  private let source: String?
  /// Why an event could not be written, which does not end the run.
  private let failure = Lock<BatchError?>(nil)
  private let retries = Lock(Retries())

  /// Counts retries of chunks: the first one is shown, then their number, at most once a minute.
  private struct Retries {
    var count = 0
    var shown = 0
    var last: ContinuousClock.Instant?

    /// Counts a retry, and returns whether to show it.
    mutating func add() -> Bool {
      count += 1
      let now = ContinuousClock.now
      if let last, now - last < .seconds(60) { return false }
      (shown, last) = (count, now)
      return true
    }
  }

  init(json: Bool, quiet: Bool, isFresh: Bool = false, source: String? = nil) {
    self.json = json
    self.quiet = quiet
    self.isFresh = isFresh
    self.source = source
  }

  var interval: Duration { !json && Terminal.isInteractive ? .milliseconds(200) : .seconds(5) }

  /// Shows an event; ``finish(_:)`` shows the last one, before the run counts as acknowledged.
  func print(_ event: RunEvent) {
    if case .ended = event { return }
    if json {
      printJSON(event)
    } else if !quiet {
      printText(event)
    }
  }

  private func printJSON(_ event: RunEvent) {
    do throws(BatchError) {
      try printLine(event)
    } catch {
      failure.withLock { $0 = $0 ?? error }
    }
  }

  private func printLine(_ event: RunEvent) throws(BatchError) {
    switch event {
    case .started(let summary), .resumed(let summary), .joined(let summary),
      .retryingFailures(let summary), .progress(let summary), .throttled(let summary),
      .ended(let summary):
      try Terminal.printJSON(EventLine(event: event.name, summary: summary))
    case .message(let text):
      try Terminal.printJSON(["event": event.name, "message": text])
    case .retrying(let retry):
      try Terminal.printJSON(RetryLine(event: event.name, retry: retry))
    case .setAside(let path):
      try Terminal.printJSON(["event": event.name, "checkpoint": path])
    }
  }

  private func printText(_ event: RunEvent) {
    switch event {
    case .started(let summary):
      Terminal.say("\(summary.job): \(Format.count(summary.total, "identifier")) selected")
    case .resumed(let summary):
      Terminal.say(
        "\(summary.job): resumed, \(summary.done.grouped) of"
          + " \(summary.total.grouped) already done"
      )
    case .joined(let summary):
      Terminal.say(
        "\(summary.job): takes part in a run in progress, \(summary.done.grouped) of"
          + " \(summary.total.grouped) done"
      )
    case .retryingFailures(let summary):
      let failed = Format.count(summary.outcomes.failed, "failed identifier")
      Terminal.say("\(summary.job): \(failed) to retry")
    case .progress(let summary), .throttled(let summary):
      let line = Self.line(summary, columns: Terminal.isInteractive ? Terminal.columns - 1 : nil)
      if Terminal.isInteractive {
        // Returns to the start of the line, and clears the rest of a longer one.
        Terminal.say("\r\(line)\u{1b}[K", terminator: "")
      } else {
        Terminal.say(line)
      }
    case .message(let text):
      Terminal.say("\(Terminal.isInteractive ? "\r\u{1b}[K" : "")\(text.onOneLine)")
    case .retrying(let retry):
      let (isDue, count) = retries.withLock { ($0.add(), $0.count) }
      guard isDue else { return }
      if Terminal.isInteractive { Terminal.say("\r\u{1b}[K", terminator: "") }
      let all = count > 1 ? "; \(Format.count(count, "retry", "retries")) so far" : ""
      Terminal.warn(
        "\(retry.error.place ?? ""): \(retry.error.message); retry \(retry.attempt) of"
          + " \(retry.limit.grouped) in \(Format.seconds(retry.delay / .seconds(1)))\(all)"
      )
    case .setAside(let path):
      Terminal.say("set the unfinished checkpoint aside as \(path)")
    case .ended: break
    }
  }

  /// Formats the state of a run on one line.
  ///
  /// `columns` limits the length of the line. The reader knows the name of the job, so that is cut
  /// first, then the reason of a hold; on a narrow terminal, the speed is omitted, then the
  /// numbers.
  static func line(_ summary: RunSummary, columns: Int? = nil) -> String {
    let done = summary.total - (summary.remaining ?? summary.total - summary.done)
    let percent = summary.total == 0 ? 100 : done * 100 / summary.total
    let counts = "  \(done.grouped)" + (summary.isEndKnown ? " of \(summary.total.grouped)" : "")
    let rate = summary.identifiersPerSecond.map { "  \(Format.rate($0))/s" } ?? ""
    var end = summary.etaSeconds.map { "  ETA \(Format.seconds($0))" } ?? ""
    if summary.outcomes.failed > 0 { end += "  failed \(summary.outcomes.failed.grouped)" }
    let reason =
      (summary.throttle.map { "  held: \($0)" } ?? "")
      + (summary.waiting.map { "  waiting for \($0)" } ?? "")
    let start = summary.isEndKnown ? "  \(percent)%" : ""
    guard let columns else { return summary.job + start + counts + rate + end + reason }
    let nameLength = min(summary.job.count, leastNameLength)
    let middle = [counts + rate, counts].first {
      nameLength + start.count + $0.count + end.count <= columns
    }
    let rest = start + (middle ?? "") + end + reason
    let name = summary.job.shortened(to: max(columns - rest.count, leastNameLength))
    return (name + rest).shortened(to: columns)
  }

  /// The length of a job's name on the narrowest terminal.
  private static let leastNameLength = 8

  func finishRetries() {
    let count = retries.withLock { $0.count > $0.shown ? $0.count : 0 }
    guard count > 0, !json, !quiet else { return }
    Terminal.warn("chunks were retried \(count.grouped) times in all")
  }

  /// Shows the end of the run; throws if this, or an earlier event, cannot be written.
  func finish(_ summary: RunSummary) throws(BatchError) {
    finishRetries()
    let written = Result { () throws(BatchError) in try printEnd(summary) }
    if let failure = summary.failure {
      Terminal.complain(failure)
      // The remedies of these errors say how to continue.
      if ![.storeChanged, .otherRun, .diskFull, .alreadyRunning, .canaryFailed].contains(
        failure.code
      ) {
        let path = summary.checkpoint
        let isBegun = path.isEmpty || FileSystem.status(of: FilePath(path)) != nil
        Terminal.say(
          isBegun
            ? "the same command\(isFresh ? " without --fresh" : "") resumes the run"
            : "the run has not begun; the same command begins it"
        )
      }
    }
    try written.get()
    if let error = failure.withLock({ $0 }) { throw error }
  }

  private func printEnd(_ summary: RunSummary) throws(BatchError) {
    if json {
      try printLine(.ended(summary))
    } else {
      if !quiet, Terminal.isInteractive { Terminal.say("\r\u{1b}[K", terminator: "") }
      if !quiet { try SummaryText.print(summary, in: source) }
    }
  }
}

/// The JSON of a summary, with the name of the event beside its fields.
private struct EventLine: Encodable {
  let event: String
  let summary: RunSummary

  private enum CodingKeys: CodingKey { case event }

  func encode(to encoder: any Encoder) throws {
    try summary.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(event, forKey: .event)
  }
}

/// The JSON of a chunk's retry.
private struct RetryLine: Encodable {
  let event: String
  let first: Int
  let count: Int
  let attempt: Int
  let limit: Int
  let delaySeconds: Double
  let error: String

  init(event: String, retry: ChunkRetry) {
    self.event = event
    first = retry.positions.lowerBound
    count = retry.positions.count
    attempt = retry.attempt
    limit = retry.limit
    delaySeconds = retry.delay / .seconds(1)
    error = retry.error.inWordsOfJobs.description
  }
}
