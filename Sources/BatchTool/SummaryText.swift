import BatchIdentifiers
import BatchPipeline
import BatchRuns
import BatchSQLite

enum SummaryText {
  /// Prints a summary; `source` is as in ``lines(_:in:of:isReal:adding:width:hasColor:)``.
  ///
  /// - Throws: `BatchError` if it cannot be written.
  static func print(_ summary: RunSummary, in source: String?) throws(BatchError) {
    try Terminal.print(lines(summary, in: source).joined(separator: "\n"))
  }

  /// Formats a summary.
  ///
  /// - Parameters:
  ///   - summary: The run.
  ///   - source: The words that name the run to `batch ids`; nil for the path of its checkpoint.
  ///   - prefix: The words before its state.
  ///   - isReal: Whether it is a run that can be resumed; a rehearsal is not.
  ///   - more: Further facts about the run.
  ///   - width: The maximum length of a line; nil for any.
  ///   - hasColor: Whether to colour the state and the failures.
  /// - Returns: The lines.
  static func lines(
    _ summary: RunSummary,
    in source: String? = nil,
    of prefix: String = "",
    isReal: Bool = true,
    adding more: [Fact] = [],
    width: Int? = Terminal.outputColumns,
    hasColor: Bool = Terminal.outputHasColor
  ) -> [String] {
    func marked(_ text: String, _ meaning: Terminal.Meaning) -> String {
      hasColor ? Terminal.marked(text, meaning) : text
    }
    let state = marked(words(for: summary, isReal: isReal), meaning(of: summary))
    let time = summary.elapsedSeconds > 0 ? " in \(Format.seconds(summary.elapsedSeconds))" : ""
    let title =
      "\(summary.job): \(prefix)\(state), \(summary.done.grouped) of"
      + " \(summary.total.grouped) done\(time)"
    let facts = (facts(of: summary, in: source, isReal: isReal) + more).map {
      ("\($0.label):", $0.text)
    }
    return [title]
      + TextLayout.labelled(facts, width: width, indent: 2, gap: 1).map { line in
        line.hasPrefix("  failed: ") ? marked(line, .bad) : line
      }
  }

  /// A fact about a run, with its label.
  typealias Fact = (label: String, text: String)

  private static func facts(
    of summary: RunSummary,
    in source: String?,
    isReal: Bool
  ) -> [Fact] {
    let outcomes = [
      ("succeeded", summary.outcomes.succeeded),
      ("unchanged", summary.outcomes.unchanged),
      ("vanished", summary.outcomes.vanished),
      ("no longer matching", summary.outcomes.noLongerMatching),
      ("failed", summary.outcomes.failed),
    ].filter { $1 > 0 || $0 == "succeeded" }
    let counts = outcomes.map { $0.1.grouped }
    let width = counts.map(\.count).max() ?? 0
    var facts: [Fact] = zip(outcomes, counts).map { outcome, count in
      (outcome.0, String(repeating: " ", count: width - count.count) + count)
    }
    if summary.peakWALBytes > 0 { facts.append(("peak WAL", Format.bytes(summary.peakWALBytes))) }
    if let increment = summary.increment { facts.append(("increment", increment.words)) }
    // A shared run has a folder on each host.
    let output = [summary.output, size(of: summary)].compactMap(\.self).joined(separator: ": ")
    if !output.isEmpty { facts.append(("output", output)) }
    if summary.invalidTexts > 0 {
      facts.append(("not UTF-8", Format.count(summary.invalidTexts, "text")))
    }
    if !summary.state.isFinished, isReal, !summary.checkpoint.isEmpty {
      facts.append(("checkpoint", summary.checkpoint))
    }
    if summary.throttledSeconds > 0 {
      facts.append(("held back", Format.seconds(summary.throttledSeconds)))
    }
    if let reason = summary.throttle { facts.append(("held", reason)) }
    if let wait = summary.waiting { facts.append(("waiting for", wait)) }
    if let reason = summary.stopReason { facts.append(("reason", reason)) }
    if let space = summary.afterwards { facts.append((space.by, space.words)) }
    if let plan = summary.plan { facts.append(("plan", plan)) }
    if let error = summary.error, summary.failure == nil { facts.append(("error", error)) }
    facts += summary.reasons.map { ("\($0.count.grouped) failed", words(for: $0)) }
    for attempt in summary.failedAttempts {
      let end = attempt.endedAt.map { ", at \($0)" } ?? ""
      let reason =
        attempt.reasons.first.map {
          "; \($0.count > 1 ? "most often" : "such as") \(words(for: $0))"
        } ?? ""
      facts.append(("before a retry", "\(attempt.failed.grouped) failed\(end)\(reason)"))
    }
    // Of a run that is remembered without its start, only the counts are left.
    if summary.state == .completedWithFailures, isReal, summary.startedAt != nil {
      let source = source ?? summary.checkpoint.quotedForShell
      facts.append(("which and why", "batch ids \(source) --outcome failed --reasons"))
    }
    return facts
  }

  /// How much an export has written to a folder.
  static func size(of summary: RunSummary) -> String? {
    guard let files = summary.outputFiles, let bytes = summary.outputBytes else { return nil }
    return "\(Format.count(files, "file")), \(Format.bytes(bytes))"
  }

  private static func words(for reason: FailureCount) -> String {
    let first = reason.count > 1 ? "first " : ""
    return "\(reason.code): \(reason.message) (\(first)\(PrimaryKey.shown(reason.firstKey)))"
      .onOneLine
  }

  /// A run on one line, without the name of its job.
  static func line(_ summary: RunSummary) -> String {
    let state = words(for: summary, isReal: true)
    let when = summary.endedAt.map { ", ended \($0)" } ?? ""
    let failed = summary.outcomes.failed > 0 ? ", \(summary.outcomes.failed.grouped) failed" : ""
    return "\(state), \(summary.done.grouped) of \(summary.total.grouped) done\(failed)\(when)"
  }

  /// When a run worked, and for how long.
  static func times(of summary: RunSummary) -> [Fact] {
    var facts: [Fact] = []
    if let id = summary.runID { facts.append(("run ID", id)) }
    if let start = summary.startedAt { facts.append(("started", start)) }
    if let end = summary.endedAt {
      facts.append(("ended", end))
    } else if let last = summary.lastSeenAt {
      facts.append(("last heartbeat", last))
    }
    if let seconds = summary.processSeconds, summary.elapsedSeconds - seconds > 0.001 {
      facts.append(
        (
          "time",
          "\(Format.seconds(summary.elapsedSeconds)) in all its processes,"
            + " \(Format.seconds(seconds)) in the last one"
        )
      )
    }
    return facts
  }

  /// What people have done to a run since it began; `limit` is that of the last actions.
  static func facts(about actions: [OperatorAction], atMost limit: Int = .max) -> [Fact] {
    let actions = actions.filter { $0.kind != .began }
    let rest = actions.count - limit
    let earlier: [Fact] =
      rest > 0 ? [("before that", "\(Format.count(rest, "more action")), which --json has")] : []
    return earlier + actions.suffix(limit).map { ($0.words, "by \($0.origin)") }
  }

  /// Prints a run of the history, with who ran it.
  static func print(_ run: RecordedRun, in source: String) throws(BatchError) {
    var facts: [Fact] = [("run", run.summary.run)] + times(of: run.summary)
    if let undo = run.undo { facts.append(("undone", undo.words(ofRows: nil))) }
    if let undone = run.undone { facts.append(("undid", undone)) }
    for (name, value) in run.parameters.sorted(by: { $0.key < $1.key }) {
      facts.append(("parameter", "\(name) = \(value.onOneLine)"))
    }
    if let invocation = run.invocation {
      facts.append(
        (
          "by",
          "\(invocation.user) on \(invocation.host), process \(invocation.pid), version"
            + " \(invocation.version)"
        )
      )
      if let command = invocation.command {
        facts.append(("command", command.joined(separator: " ").onOneLine))
      }
      if let file = invocation.jobFile { facts.append(("job file", file)) }
    }
    facts += Self.facts(about: run.actions)
    let name = "\(source) --run \(run.summary.run.prefix(8))"
    try Terminal.print(lines(run.summary, in: name, adding: facts).joined(separator: "\n"))
  }

  private static func meaning(of summary: RunSummary) -> Terminal.Meaning {
    if summary.wasKilled { return .attention }
    return switch summary.state {
    case .completed: .good
    case .failed, .completedWithFailures: .bad
    case .running: .strong
    case .throttled, .paused, .stopped: .attention
    }
  }

  private static func words(for summary: RunSummary, isReal: Bool) -> String {
    let state = summary.state
    let word = summary.wasKilled ? "killed" : state.words
    if summary.isSetAside { return "\(word), set aside" }
    let isResumable = isReal && (state == .stopped || state == .failed)
    return isResumable ? "\(word), resumable" : word
  }
}
