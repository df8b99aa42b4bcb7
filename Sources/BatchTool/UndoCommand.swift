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
      The job must have said "undo": true before it ran. Undoing is a run as any other: it can be stopped, \
      killed and resumed, and its checkpoint is JOB.undo. A row that somebody has changed since fails, and \
      `batch ids JOB.undo --outcome failed --reasons` tells why; the status is 4 then.

      What triggers and foreign keys have changed in other tables is not undone. It is for a run by objects, \
      which is named by its checkpoint: all rows that its chunks have inserted, changed and deleted, in any \
      table.
      """
  )

  @OptionGroup var job: JobArguments

  @OptionGroup var arguments: RunArguments

  @Option(
    help: "The run whose UUID begins so, instead of the last one that can be undone."
  )
  var run: String?

  @Option(
    help: "A file of identifiers: the rows that are undone, instead of all.",
    completion: .file(extensions: ["ids", "batch", "undo"])
  )
  var ids: String?

  @Flag(help: "Undo rows too that somebody has changed since.")
  var overwrite = false

  @Flag(help: "Show what would be undone, and what somebody has changed since; write nothing.")
  var plan = false

  @Flag(help: "Set an unfinished undo aside and begin anew.")
  var fresh = false

  func run() async throws {
    var options = arguments.options(job)
    options.fresh = fresh
    let list = try ids.map { path throws(BatchError) in
      try IdentifierFile(opening: FilePath(path)).load()
    }
    if plan { return try await show(list) }
    try await arguments.perform(job, options) { job throws(BatchError) in
      try job.loadRun(for: "batch undo")
    } of: { job, options throws(BatchError) in
      BatchRun(undoing: job, run: run, only: list, overwriting: overwrite, options: options)
    } _: { run, onEvent, answer throws(BatchError) in
      try await run.run(onEvent: onEvent, answer: answer)
    }
  }

  private func show(_ list: IdentifierList?) async throws {
    let report = try await UndoReport(
      undoing: job.loadRun(for: "batch undo"),
      run: run,
      only: list,
      overwriting: overwrite
    )
    if arguments.json { return try Terminal.printJSON(report, pretty: true) }
    let outcomes = report.outcomes
    try Terminal.print("run       \(report.run.run), which began at \(report.run.startedAt)")
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
    for other in report.others {
      try Terminal.print("\nrun \(other.run) of \(other.startedAt) can be undone with --run:")
      try Terminal.print("          \(Format.undo(other))")
    }
    for warning in report.warnings { Terminal.warn(warning) }
  }
}
