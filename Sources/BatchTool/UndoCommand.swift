import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import SystemPackage

struct UndoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "undo",
    abstract: "Undoes the last run of a job.",
    usage: usage("undo <job> [<options>]"),
    discussion: """
      The job must have had "undo": true when it ran. An undo is an ordinary run: it can be stopped, killed \
      and resumed, and its checkpoint is JOB.undo. A row that others have changed since fails; `batch ids \
      JOB.undo --outcome failed --reasons` says why, and the status is 4.

      What triggers and foreign keys changed in other tables stays. A run by objects, named by its \
      checkpoint, is undone in every table.
      """
  )

  @OptionGroup var job: JobArguments

  @OptionGroup var arguments: RunArguments

  @Option(
    help: "The run whose UUID starts so; default: the last one that can be undone."
  )
  var run: String?

  @Option(
    help: "An identifier file: undo only these rows.",
    completion: .file(extensions: ["ids", "batch", "undo"])
  )
  var ids: String?

  @Option(help: "Undo only the rows of the run's canary, or the rest: all, canary or rest.")
  var part = IdentifierSelection.Part.all

  @Flag(help: "Also undo rows that others have changed since.")
  var overwrite = false

  @Flag(help: "Show what would be undone and what others have changed since; write nothing.")
  var plan = false

  @Flag(help: "Set an unfinished undo aside and start over.")
  var fresh = false

  func validate() throws {
    if ids != nil, part != .all { throw ValidationError("--ids and --part exclude each other.") }
  }

  func run() async throws {
    var options = arguments.options(job)
    options.fresh = fresh
    var list = try ids.map { path throws(BatchError) in
      try IdentifierFile(opening: FilePath(path)).load()
    }
    if part != .all {
      let records = try runRecords(named: job.job)
      // As without a part: the last run that has changed rows.
      let last = try await records.history().runs.first { $0.summary.outcomes.succeeded > 0 }
      let name = run ?? last?.summary.run
      list = try await records.identifiers(.succeeded, part, ofRun: name).load()
    }
    if plan { return try await show(list) }
    let cause = try runRecords(named: job.job).cause
    // On a server, the undo has no checkpoint, and its name stands for it.
    let source = cause.sharedServer.flatMap { _ in
      cause.undoing.policy.checkpoint.path?.string.quotedForShell
    }
    try await arguments.perform(in: source, options) { options in
      BatchRun(
        undoingWork: cause,
        run: run,
        only: list,
        overwriting: overwrite,
        options: options
      )
    } _: { run, onEvent, answer throws(BatchError) in
      try await run.run(onEvent: onEvent, answer: answer)
    }
  }

  private func show(_ list: IdentifierList?) async throws {
    let report = try await UndoReport(
      undoingWork: runRecords(named: job.job).cause,
      run: run,
      only: list,
      overwriting: overwrite
    )
    if arguments.json { return try Terminal.printJSON(report, pretty: true) }
    let outcomes = report.outcomes
    try Terminal.print("run       \(report.run.run), started at \(report.run.startedAt)")
    try Terminal.print("record    \(Format.undo(report.run))")
    try Terminal.print("entity    \(report.entity)")
    try Terminal.print("undone    \(Format.count(outcomes.succeeded, "row"))")
    for (name, count) in [
      ("as before", outcomes.unchanged), ("gone", outcomes.vanished),
      ("changed", outcomes.failed),
    ] where count > 0 {
      let padded = name + String(repeating: " ", count: 10 - name.count)
      try Terminal.print("\(padded)\(Format.count(count, "row"))")
    }
    for message in report.changedSince { try Terminal.print("          \(message)") }
    for other in report.others where other.rows > 0 {
      try Terminal.print(
        "\nrun \(other.run), started at \(other.startedAt), can be undone with --run:"
      )
      try Terminal.print("          \(Format.undo(other))")
    }
    for warning in report.warnings { Terminal.warn(warning) }
  }
}
