import ArgumentParser
import BatchRuns
import BatchIdentifiers
import BatchPipeline
import SystemPackage

struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Shows the last run of a job, or of a folder's jobs.",
    usage: usage("status <job> [<options>]"),
    discussion: """
      With --check, the exit status is that of the last run, for monitoring; with --within, it \
      is 8 if the job last completed longer ago.

        batch status job.json --check --within 26h
      """
  )

  @Argument(
    help: "The job file (-: standard input), a program's checkpoint, or a folder of jobs.",
    completion: .file(extensions: ["json", "batch"])
  )
  var job: String

  @OptionGroup var runID: RunIDArgument

  @OptionGroup var recorded: RecordedRunArgument

  @Flag(help: "Print the summary as JSON.")
  var json = false

  @Flag(
    help: """
      Follow the run to its end: in place on a terminal, elsewhere a line per change.
      """
  )
  var watch = false

  @Flag(help: "Exit with the status of the last run.")
  var check = false

  @Option(
    help: ArgumentHelp(
      "The longest time since the job last completed, such as 26h.",
      valueName: "time"
    )
  )
  var within: String?

  func validate() throws {
    if within != nil, !check { throw ValidationError("--within needs --check.") }
    if check, watch || recorded.run != nil {
      throw ValidationError("--check is about the last run now: leave out --watch and --run.")
    }
    if watch, recorded.run != nil {
      throw ValidationError("--watch follows only the last run: leave out --run.")
    }
  }

  func run() async throws {
    let judge = try check ? JobCheck(within: within) : nil
    if FileSystem.status(of: FilePath(job))?.type == .directory {
      return try await runOfFolder(judge)
    }
    let records = try runRecords(named: job)
    let source = job.quotedForShell
    if let name = recorded.run {
      let run = try await records.run(named: name)
      return json
        ? try Terminal.printJSON(run, pretty: true) : try SummaryText.print(run, in: source)
    }
    var options = BatchRun.Options()
    options.runID = runID.value
    if let run = try await runOfOtherWork(in: records) {
      return json
        ? try Terminal.printJSON(run, pretty: true) : try SummaryText.print(run, in: source)
    }
    var shown = Shown()
    while true {
      let status = try await waitingForRun(in: records) { () async throws(BatchError) in
        try await records.status(options, BatchTool.handlers)
      }
      try show(status, of: records.cause, after: &shown)
      if let judge { try await judge.exit(for: status, in: records) }
      guard watch, status.isLive else { return }
      try await Task.sleep(for: .seconds(1))
    }
  }

  /// How long a watcher waits for a run that may be about to start.
  private static let firstSign = Duration.seconds(10)

  /// Reads the state of the run.
  ///
  /// A watcher that is started before the run waits for its first sign: for a fixed time, and for
  /// as long as identifiers are being selected.
  private func waitingForRun(
    in records: any RunRecords,
    _ ask: () async throws(BatchError) -> RunStatus
  ) async throws -> RunStatus {
    let end = ContinuousClock.now + Self.firstSign
    while true {
      do throws(BatchError) {
        return try await ask()
      } catch {
        guard watch, error.isAboutMissingRun else { throw error }
        let isBeginning = await records.isBeginning()
        guard isBeginning || ContinuousClock.now < end else { throw error }
      }
      try await Task.sleep(for: .milliseconds(200))
    }
  }

  /// The run of the given work, if the history has it; nil if the last run is of that work.
  private func runOfOtherWork(in records: any RunRecords) async throws(BatchError) -> RecordedRun? {
    guard let id = runID.value, let runs = try? await records.history().runs,
      runs.first?.summary.runID?.hasSameBytes(as: id) != true
    else { return nil }
    return runs.first { $0.summary.runID?.hasSameBytes(as: id) == true }
  }

  /// The state as last shown.
  private struct Shown {
    var lineCount = 0
    var state: ShownState?
  }

  /// Another line is printed when one of these changes.
  private struct ShownState: Equatable {
    let state: RunState
    let outcomes: Outcomes
    let throttle: String?
    let isWaiting: Bool
    let isLive: Bool

    init(_ status: RunStatus) {
      state = status.summary.state
      outcomes = status.summary.outcomes
      throttle = status.summary.throttle
      isWaiting = status.summary.waiting != nil
      isLive = status.isLive
    }
  }

  private func show(
    _ status: RunStatus,
    of cause: any RunCause,
    after shown: inout Shown
  ) throws(BatchError) {
    let isOver = !watch || !status.isLive
    if watch, !json, Terminal.canRedraw {
      let lines = lines(status, of: cause)
      try Terminal.redraw(lines, over: shown.lineCount)
      shown.lineCount = lines.count
      return
    }
    let state = ShownState(status)
    guard isOver || state != shown.state else { return }
    shown.state = state
    if json {
      try Terminal.printJSON(status, pretty: !watch)
    } else if isOver {
      try Terminal.print(lines(status, of: cause).joined(separator: "\n"))
    } else {
      try Terminal.print(ProgressPrinter.line(status.summary))
    }
  }

  private func lines(_ status: RunStatus, of cause: any RunCause) -> [String] {
    let command =
      switch (cause as? ProgramWork)?.kind {
      case .objects, .load: "its program"
      case .undo: "batch undo"
      case nil: "batch run"
      }
    var facts = SummaryText.times(of: status.summary)
    if let undo = status.undo { facts.append(("undone", undo.words(ofRows: nil))) }
    if let process = status.process { facts.append(("process", "\(process)")) }
    if let spans = status.spans {
      facts.append(("spans", "\(spans.done.grouped) of \(spans.count.grouped) done"))
    }
    for host in status.hosts {
      let words = Self.words(for: host, of: status.summary)
      let process =
        host.processes > 1
        ? Format.count(host.processes, "process", "processes") : "process \(host.process)"
      facts.append(("host \(host.name), \(process)", words))
    }
    let requests = status.requests
    facts += Self.facts(about: requests)
    // Those in force are told above.
    let others = status.actions.filter { action in
      !(requests?.origins.values.contains { $0.user == action.user && $0.at == action.at } ?? false)
    }
    facts += SummaryText.facts(about: others, atMost: 3)
    facts.append((command, status.next.words))
    facts += status.warnings.map { ("warning", $0) }
    // Lines that are redrawn are cut to the width, and must not contain colours.
    let isDrawn = watch && Terminal.canRedraw
    let lines = SummaryText.lines(
      status.summary,
      in: job == Job.standardInputName ? nil : job.quotedForShell,
      adding: facts,
      width: isDrawn ? nil : Terminal.outputColumns,
      hasColor: !isDrawn && Terminal.outputHasColor
    )
    return status.process != nil || status.summary.state.isGoingOn
      ? lines + [ProgressPrinter.line(status.summary)] : lines
  }

  /// What operators have asked of a live run.
  private static func facts(about requests: RunControl?) -> [SummaryText.Fact] {
    guard let requests else { return [] }
    return requests.origins.sorted { $0.key < $1.key }.map { name, origin in
      guard let value = requests.settings[name] else { return ("\(name) by", origin.words) }
      return ("set", "\(name)=\(value) by \(origin.words)")
    }
  }

  private static func words(for host: RunStatus.Host, of run: RunSummary) -> String {
    let time = "\(Format.seconds(host.lastSeenSecondsAgo)) ago"
    let done = "\(host.done.grouped) done"
    if let end = host.end, host.isHeard {
      let reason = host.reason.flatMap { $0 == run.error || $0 == run.stopReason ? nil : ": \($0)" }
      return "\(end) \(time), \(done)\(reason ?? "")"
    }
    guard host.isAlive else { return "gone, last heartbeat \(time), at least \(done)" }
    var words = [
      done, Format.count(host.spans, "span"),
      host.identifiersPerSecond.map { "\(Int($0).grouped)/s" },
      "last heartbeat \(time)",
    ].compactMap(\.self)
    if let hold = host.hold { words.append("held: \(hold)") }
    if let wait = host.waiting { words.append("waiting for \(wait)") }
    return words.joined(separator: ", ")
  }
}
