import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import BatchStore

struct ValidateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "validate",
    abstract: "Checks a job against its database; writes nothing.",
    discussion: "Decodes the job, finds every name in the schema and compiles every expression."
  )

  @OptionGroup var arguments: JobArguments

  @Flag(help: "Print nothing if the job is valid.")
  var quiet = false

  func run() async throws {
    let plan = try await arguments.plan()
    if !quiet {
      try Terminal.print("\(plan.job.name): valid (\(plan.job.action.type) of \(plan.entity.name))")
      for trap in plan.traps { Terminal.warn(trap) }
    }
  }
}
