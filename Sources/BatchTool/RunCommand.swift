import ArgumentParser
import BatchIdentifiers
import BatchPipeline

struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Runs a job, or resumes an unfinished run.",
    usage: usage("run <job> [<options>]"),
    discussion: """
      The same command resumes a run that was killed or stopped. If the run is done and only its end \
      was not reported, it reports that. Otherwise it starts over with a new selection; with --run-id \
      it does the work of an ID at most once, however often you repeat it.

      SIGINT (Ctrl-C) and SIGTERM finish the chunks in flight and stop with status 3; a second one \
      stops at once. The same command resumes after either.

      With --json each line on standard output is an object with the key "event"; the last one has \
      the fields of `batch status --json`.
      """
  )

  @OptionGroup var job: JobArguments

  @OptionGroup var arguments: RunArguments

  @Flag(help: "Set an unfinished run aside and start over.")
  var fresh = false

  @Flag(help: "Show what the run would do, as batch plan does, and write nothing.")
  var dryRun = false
  @Flag(help: "On PostgreSQL: only join an unfinished run.")
  var joinOnly = false

  @Flag(help: "Finish an unfinished run of another ID first.")
  var finishFirst = false

  @Flag(help: "Repeat a run that is done without a question.")
  var again = false

  @Option(
    help: ArgumentHelp("Execute only this plan, of batch plan --digest.", valueName: "digest")
  )
  var plan: String?

  @Flag(help: "Wait for the approval that the job needs, instead of ending with status 7.")
  var wait = false

  @OptionGroup var runID: RunIDArgument

  func validate() throws {
    if dryRun, arguments.quiet {
      throw ValidationError("--dry-run prints a plan, and --quiet would print nothing.")
    }
    if fresh, joinOnly { throw ValidationError("--fresh and --join-only exclude each other.") }
    if fresh || dryRun, finishFirst {
      throw ValidationError("--finish-first runs what --fresh and --dry-run do not.")
    }
  }

  func run() async throws {
    var options = arguments.options(job)
    options.fresh = fresh
    options.joinOnly = joinOnly
    options.plan = plan
    options.waitsForApproval = wait
    options.runID = runID.value
    if dryRun {
      return try await PlanText.print(of: job.load(), options, json: arguments.json)
    }
    let loaded = try await job.load()
    if finishFirst { try await finish(loaded, before: options) }
    try await refuseRepetition(of: loaded, options)
    try await arguments.perform(in: job.words, options) { options throws(BatchError) in
      BatchRun(loaded, options: options, handlers: BatchTool.handlers)
    } _: { run, onEvent, answer throws(BatchError) in
      try await run.run(onEvent: onEvent, answer: answer)
    }
  }
}
