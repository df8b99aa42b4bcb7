import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import BatchSQLite

struct ValidateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "validate",
    abstract: "Checks a job against its database; writes nothing.",
    discussion:
      "It decodes the job, looks up every name in the schema and compiles every expression."
  )

  @OptionGroup var arguments: JobArguments

  @Flag(help: "Print nothing if the job is valid.")
  var quiet = false

  func run() async throws {
    let job = try await arguments.load()
    let found = try await job.check(arguments.options, handlers: BatchTool.handlers)
    if quiet { return }
    try Terminal.print("\(job.name): valid (\(job.action.type) of \(found.entity))")
    for note in found.notes { Terminal.warn(note) }
  }
}
