import ArgumentParser
import BatchIdentifiers
import BatchPipeline

struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Runs a job, or resumes an unfinished run.",
    usage: usage("run <job> [<options>]"),
    discussion: """
      A run that was killed or stopped is resumed by the same command. A run that was killed after \
      its last row only has its end told. A finished job starts anew, with a new selection; with \
      --run-id the work of each ID is done at most once, however often and late the command is given.

      SIGINT (Ctrl-C) and SIGTERM finish the chunks in flight and stop with status 3; a second one \
      stops at once. Both can be resumed.

      With --json each line on standard output is an object with the key "event"; the last one \
      holds the summary that `status --json` prints.
      """
  )

  @OptionGroup var job: JobArguments

  @OptionGroup var arguments: RunArguments

  @Flag(help: "Set an unfinished checkpoint aside and select anew.")
  var fresh = false

  @Flag(help: "Show what the run would do, as batch plan does, and write nothing.")
  var dryRun = false
  @Flag(help: "Only take part in an unfinished run, on PostgreSQL; begin none.")
  var joinOnly = false

  @OptionGroup var runID: RunIDArgument

  func validate() throws {
    if dryRun, arguments.quiet {
      throw ValidationError("--dry-run prints a plan, and --quiet would print nothing.")
    }
    if fresh, joinOnly { throw ValidationError("--fresh and --join-only exclude each other.") }
  }

  func run() async throws {
    if dryRun {
      return try await PlanText.print(
        of: job,
        chunkSize: arguments.chunkSize,
        runID: runID.value,
        fresh: fresh,
        json: arguments.json
      )
    }
    var options = arguments.options(job)
    options.fresh = fresh
    options.joinOnly = joinOnly
    options.runID = runID.value
    try await arguments.perform(job, options) { run, onEvent, answer throws(BatchError) in
      try await run.run(onEvent: onEvent, answer: answer)
    }
  }
}
