import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import BatchStore

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
    #if PostgreSQL
    if job.database.server != nil {
      let values = try arguments.values(for: job)
      let validation = try await PostgresValidation(
        of: job,
        parameters: values,
        handlers: BatchTool.handlers
      )
      if quiet { return }
      try Terminal.print("\(job.name): valid (\(job.action.type) of \(validation.entity))")
      for note in validation.notes { Terminal.warn(note) }
      return
    }
    #endif
    let plan = try await arguments.plan(of: job)
    if !quiet {
      try Terminal.print("\(plan.job.name): valid (\(plan.job.action.type) of \(plan.entity.name))")
      for trap in plan.traps { Terminal.warn(trap) }
    }
  }
}
