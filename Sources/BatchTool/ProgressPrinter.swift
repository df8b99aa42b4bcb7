import BatchIdentifiers
import BatchPipeline
import BatchStore

/// Shows a run: a live line on a terminal, plain lines elsewhere, JSON where it is asked for.
struct ProgressPrinter: Sendable {
  private let json: Bool
  private let quiet: Bool
  /// Why an event could not be written, which does not end the run.
  private let failure = Lock<BatchError?>(nil)
  private let retries = Lock(Retries())

  /// The chunks that were tried again: the first is told, and after it how many, once a minute at most.
  private struct Retries {
    var count = 0
    var told = 0
    var last: ContinuousClock.Instant?

    /// Counts one; whether it is told.
    mutating func add() -> Bool {
      count += 1
      let now = ContinuousClock.now
      if let last, now - last < .seconds(60) { return false }
      (told, last) = (count, now)
      return true
    }
  }

  init(json: Bool, quiet: Bool) {
    self.json = json
    self.quiet = quiet
  }

  /// How often progress is worth showing.
  var interval: Duration { !json && Terminal.isInteractive ? .milliseconds(200) : .seconds(5) }

  /// Shows an event.
  func print(_ event: RunEvent) {
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
    case .started(let summary), .resumed(let summary), .retryingFailures(let summary),
      .progress(let summary), .throttled(let summary):
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
        "\(summary.job): resumed, \(Format.count(summary.done)) of"
          + " \(Format.count(summary.total)) already done"
      )
    case .retryingFailures(let summary):
      let failed = Format.count(summary.outcomes.failed, "failed identifier")
      Terminal.say("\(summary.job): \(failed) to try again")
    case .progress(let summary), .throttled(let summary):
      let line = Self.line(summary, columns: Terminal.isInteractive ? Terminal.columns - 1 : nil)
      if Terminal.isInteractive {
        // Back to the start of the line, and clear what a longer one left.
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
      let all = count > 1 ? "; \(Format.count(count, "further try", "further tries")) in all" : ""
      Terminal.warn(
        "\(retry.error.place ?? ""): \(retry.error.message); further try \(retry.attempt) of"
          + " \(retry.limit) in \(Format.seconds(retry.delay / .seconds(1)))\(all)"
      )
    case .setAside(let path):
      Terminal.say("the unfinished checkpoint was set aside as \(path)")
    }
  }

  /// How a run stands, on one line.
  ///
  /// - Parameters:
  ///   - summary: The run.
  ///   - columns: How long the line may be. What it is about is known, so the name is what is cut
  ///     first, and after that the reason why the run is held.
  /// - Returns: The line.
  static func line(_ summary: RunSummary, columns: Int? = nil) -> String {
    let percent = summary.total == 0 ? 100 : summary.done * 100 / summary.total
    var rest =
      "  \(percent)%  \(Format.count(summary.done)) of \(Format.count(summary.total))"
    if let rate = summary.identifiersPerSecond { rest += "  \(Format.rate(rate))/s" }
    if let eta = summary.etaSeconds { rest += "  ETA \(Format.seconds(eta))" }
    if summary.outcomes.failed > 0 { rest += "  failed \(Format.count(summary.outcomes.failed))" }
    if let reason = summary.throttle { rest += "  held: \(reason)" }
    guard let columns else { return summary.job + rest }
    let name = summary.job.shortened(to: max(columns - rest.count, Self.leastNameLength))
    return (name + rest).shortened(to: columns)
  }

  /// How much of a job's name is shown however little room there is.
  private static let leastNameLength = 8

  /// Says how many times chunks were tried again, if that was not told.
  func finishRetries() {
    let count = retries.withLock { $0.count > $0.told ? $0.count : 0 }
    guard count > 0, !json, !quiet else { return }
    Terminal.warn("\(Format.count(count, "further try", "further tries")) of chunks in all")
  }

  /// Shows how the run ended.
  ///
  /// - Throws: `BatchError` if that, or an event before it, cannot be written.
  func finish(_ summary: RunSummary) throws(BatchError) {
    finishRetries()
    let written = Result { () throws(BatchError) in try printEnd(summary) }
    if let failure = summary.failure {
      Terminal.complain(failure)
      // Whose database was taken back, its remedy says what to do.
      if failure.code != .storeChanged {
        Terminal.say("the run can be resumed with the same command")
      }
    }
    try written.get()
    if let error = failure.withLock({ $0 }) { throw error }
  }

  private func printEnd(_ summary: RunSummary) throws(BatchError) {
    if json {
      let event =
        switch summary.state {
        case .completed, .completedWithFailures: "finished"
        case .failed: "failed"
        case .running, .throttled, .paused, .stopped: "stopped"
        }
      try Terminal.printJSON(EventLine(event: event, summary: summary))
    } else {
      if !quiet, Terminal.isInteractive { Terminal.say("\r\u{1b}[K", terminator: "") }
      if !quiet { try SummaryText.print(summary) }
    }
  }
}

extension String {
  /// The beginning, if there is more than so many characters.
  func shortened(to count: Int) -> String {
    self.count <= count ? self : prefix(max(count - 1, 0)) + "…"
  }
}

/// A summary with the name of an event beside its fields.
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

/// What there is to say of a chunk that is tried again.
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
    error = retry.error.description
  }
}
