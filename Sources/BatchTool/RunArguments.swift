import ArgumentParser
import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchPlatform

/// The arguments, besides the job, of every command that runs one.
struct RunArguments: ParsableArguments {
  @Option(help: "The number of workers; overrides the job.")
  var workers: Int?

  @Option(help: "Identifiers per chunk; overrides the job.")
  var chunkSize: Int?

  @Flag(help: "Print events as JSON, one per line.")
  var json = false

  @Flag(help: "Print only errors.")
  var quiet = false

  func validate() throws {
    try Self.check(workers: workers, chunkSize: chunkSize)
  }

  /// Refuses numbers that no run can have.
  static func check(workers: Int?, chunkSize: Int?) throws {
    if let workers, !(1...RunPolicy.workerLimit).contains(workers) {
      throw ValidationError("--workers must be from 1 to \(RunPolicy.workerLimit).")
    }
    if let chunkSize, !(1...RunPolicy.chunkSizeLimit).contains(chunkSize) {
      throw ValidationError("--chunk-size must be from 1 to \(RunPolicy.chunkSizeLimit).")
    }
  }

  func options(_ job: JobArguments) -> BatchRun.Options {
    var options = job.options
    options.workers = workers
    options.chunkSize = chunkSize
    options.commandLine = CommandLine.arguments
    return options
  }

  /// Performs something with a run of the job, shows it, and exits with its status.
  ///
  /// `source` is as in ``SummaryText/lines(_:in:of:isReal:adding:width:hasColor:)``.
  func perform(
    in source: String? = nil,
    _ options: BatchRun.Options,
    of makeRun: (BatchRun.Options) async throws(BatchError) -> BatchRun,
    _ body: (BatchRun, @escaping @Sendable (RunEvent) -> Void, BatchRun.Answer)
      async throws(BatchError) ->
      RunSummary
  ) async throws {
    let printer = ProgressPrinter(json: json, quiet: quiet, isFresh: options.fresh, source: source)
    var options = options
    options.progressInterval = printer.interval
    let run = try await makeRun(options)

    // A reader that closes the pipe of events does not end the run.
    signal(SIGPIPE, SIG_IGN)
    let signals = StopSignals(quiet: quiet || json) { run.stop() }
    await signals.listen()
    defer { signals.cancel() }
    let summary = try await body(run, { event in printer.print(event) }) {
      summary throws(BatchError) in try printer.finish(summary)
    }
    var status = ExitStatus(of: summary)
    if let error = summary.unacknowledged {
      Terminal.complain(error)
      if summary.state.isFinished {
        Terminal.say("the work is done; repeat the command to report that, which changes no row")
        status = error.code == .interrupted ? .stopped : .undelivered
      }
    }
    if status != .completed { throw ExitCode(status.rawValue) }
  }
}
