import ArgumentParser
import BatchIdentifiers
import BatchPipeline

struct RetryFailedCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retry-failed",
    abstract: "Retries the identifiers that failed in the last run.",
    usage: usage("retry-failed <job> [<options>]"),
    discussion: """
      It is the same run: identifiers that succeed leave the failed ones, those that fail again \
      stay with one attempt more. `batch ids JOB --outcome failed` prints what is left. The status \
      is 0 if nothing is, and 4 otherwise; of a run that was stopped it is 3, and `batch run` goes on \
      with the rest of it.
      """
  )

  @OptionGroup var job: JobArguments

  @OptionGroup var arguments: RunArguments

  func run() async throws {
    try await arguments.perform(job, arguments.options(job)) {
      run,
      onEvent,
      answer throws(BatchError) in
      try await run.retryFailures(onEvent: onEvent, answer: answer)
    }
  }
}
