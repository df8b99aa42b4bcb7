import ArgumentParser
import BatchIdentifiers
import BatchPipeline

struct RetryFailedCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retry-failed",
    abstract: "Retries the identifiers that failed in the last run.",
    usage: usage("retry-failed <job> [<options>]"),
    discussion: """
      It continues the same run: an identifier that succeeds leaves the failed ones; one that fails \
      again has one more attempt. `batch ids JOB --outcome failed` prints those left. The status is 0 \
      if there are none, else 4; it is 3 if the run was stopped before its end, and `batch run` \
      continues with the rest.
      """
  )

  @OptionGroup var job: JobArguments

  @OptionGroup var arguments: RunArguments

  func run() async throws {
    try await arguments.perform(in: job.words, arguments.options(job)) {
      options throws(BatchError) in
      BatchRun(try await job.load(), options: options, handlers: BatchTool.handlers)
    } _: { run, onEvent, answer throws(BatchError) in
      try await run.retryFailures(onEvent: onEvent, answer: answer)
    }
  }
}
