import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import SystemPackage

struct UndoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "undo",
    abstract: "Gives rows back what a run of a job has taken from them.",
    discussion: """
      The job must have said "undo": true before it ran. Undoing is a run as any other: it can be stopped, \
      killed and resumed, and its checkpoint is JOB.undo. A row that somebody has changed since fails, and \
      `batch ids JOB.undo --outcome failed --reasons` tells why; the status is 4 then.

      What triggers and foreign keys have changed in other tables is not undone.
      """
  )

  @OptionGroup var arguments: RunArguments

  @Option(help: "The run, by its UUID, instead of the last one that can be undone.")
  var run: String?

  @Option(
    help: "A file of identifiers: the rows that are undone, instead of all.",
    completion: .file(extensions: ["ids", "batch", "undo"])
  )
  var ids: String?

  @Flag(help: "Undo rows too that somebody has changed since.")
  var overwrite = false

  @Flag(help: "Set an unfinished undo aside and begin anew.")
  var fresh = false

  func run() async throws {
    var options = arguments.options
    options.fresh = fresh
    let list = try ids.map { path throws(BatchError) in
      try IdentifierFile(opening: FilePath(path)).load()
    }
    try await arguments.perform(options) { job, options throws(BatchError) in
      BatchRun(undoing: job, run: run, only: list, overwriting: overwrite, options: options)
    } _: { run, onEvent, answer throws(BatchError) in
      try await run.run(onEvent: onEvent, answer: answer)
    }
  }
}
