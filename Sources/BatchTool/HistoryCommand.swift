import ArgumentParser
import BatchRuns
import BatchIdentifiers
import BatchPipeline
import SystemPackage

struct HistoryCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "Lists the last runs of a job, newest first.",
    discussion: """
      A run is named by the first characters of its UUID: give them to --run of status, ids, verify, \
      report and undo. The job's "history" says how many records to keep; default: 20. \
      Runs on PostgreSQL stay in the database until batch cleanup.
      """
  )

  @Argument(
    help: "The job file (- for standard input), or the checkpoint of a program's own run.",
    completion: .file(extensions: ["json", "batch"])
  )
  var job: String

  @Flag(help: "Print the records as JSON.")
  var json = false

  func run() async throws {
    let records = try runRecords(named: job)
    try records.cause.requireSupport()
    let history = try await records.history()
    if json { return try Terminal.printJSON(history, pretty: true) }
    if history.runs.isEmpty { return try Terminal.print("the job has not run") }
    try Terminal.print(
      Self.columns("run", "started (UTC)", "took", "state", "rows", "changed", "failed")
    )
    for run in history.runs {
      let summary = run.summary
      try Terminal.print(
        Self.columns(
          String(summary.run.prefix(8)),
          String(run.startedAt.prefix(19)).replacing("T", with: " "),
          Format.seconds(summary.elapsedSeconds),
          run.undo.map { $0.isPartial ? "partly undone" : "undone" }
            ?? Self.word(for: summary),
          summary.total.grouped,
          summary.outcomes.succeeded.grouped,
          summary.outcomes.failed.grouped
        )
      )
      let facts = Self.facts(about: run).joined(separator: ", ")
      if !facts.isEmpty {
        let width = Terminal.outputColumns
        let lines = TextLayout.wrapped(facts.onOneLine, width: width, indent: 9)
        try Terminal.print(lines.joined(separator: "\n"))
      }
    }
  }

  /// Who began a run, for which work, what failed before its failures were retried, and the last
  /// things that people did to it.
  private static func facts(about run: RecordedRun) -> [String] {
    var facts: [String] = []
    if let invocation = run.invocation { facts.append("\(invocation.user) on \(invocation.host)") }
    if let id = run.summary.runID { facts.append("run ID \(id)") }
    if let increment = run.summary.increment { facts.append(increment.words) }
    if let size = SummaryText.size(of: run.summary) { facts.append(size) }
    facts += run.parameters.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }
    let failed = run.summary.failedAttempts.map(\.failed.grouped)
    if !failed.isEmpty {
      facts.append("\(failed.joined(separator: ", then ")) failed before a retry")
    }
    let actions = run.actions.filter { $0.kind != .began }
    if actions.count > 3 {
      facts.append("\(Format.count(actions.count - 3, "more action")) in --json")
    }
    facts += actions.suffix(3).map { "\($0.words) by \($0.user) at \($0.at)" }
    return facts
  }

  /// Formats a row of the table in 80 columns, unless a number has more than eight digits.
  private static func columns(_ cells: String...) -> String {
    let widths = [-8, -19, 8, -13, 10, 10, 6]
    let padded = zip(cells, widths).map { cell, width in
      let spaces = String(repeating: " ", count: max(0, abs(width) - cell.count))
      return width < 0 ? cell + spaces : spaces + cell
    }
    return padded.joined(separator: " ")
  }

  private static func word(for run: RunSummary) -> String {
    if run.isSetAside { return "set aside" }
    if run.wasKilled { return "killed" }
    return run.state == .completedWithFailures ? "failures" : run.state.rawValue
  }
}
