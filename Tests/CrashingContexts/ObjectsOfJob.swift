import BatchRuns
import BatchIdentifiers
import BatchObjects
import Foundation
import SystemPackage

/// The rows and settings of a job file, worked through by objects: what a service does whose operators
/// know `batch run`.
///
///     CrashingContexts run|retry-failed JOB [--fresh] [--run-id ID] [--json]
///
/// It adds one to `n` of each row, whatever the action of the job is. Events, summary and exit status are
/// those of `batch run`.
enum ObjectsOfJob {
  static func main() async -> Never {
    let arguments = CommandLine.arguments
    // A reader that closes the pipe does not end the run.
    signal(SIGPIPE, SIG_IGN)
    do throws(BatchError) {
      let run = try await run(of: Job(contentsOf: FilePath(arguments[2])), arguments)
      let sources = await stopping(run)
      let summary = try await perform(
        run,
        isRetry: arguments[1] == "retry-failed",
        printsEvents: arguments.contains("--json")
      )
      for source in sources { source.cancel() }
      if let failure = summary.failure { complain(failure) }
      guard let problem = summary.unacknowledged else { exit(ExitStatus(of: summary).rawValue) }
      complain(problem)
      exit(ExitStatus.undelivered.rawValue)
    } catch {
      complain(error)
      exit(ExitStatus(of: error).rawValue)
    }
  }

  private static func run(of job: Job, _ arguments: [String]) async throws(BatchError) -> BatchRun {
    var options = BatchRun.Options()
    options.fresh = arguments.contains("--fresh")
    options.runID = arguments.firstIndex(of: "--run-id").map { arguments[$0 + 1] }
    options.hooks = job.hooks
    var policy = job.policy
    policy.checkpoint.path = job.checkpointPath
    return BatchRun(
      try await ModelContainer(configurations: ModelConfiguration(path: job.database.path.string)),
      named: job.name,
      fetching: FetchRequest(entity: job.source.entity, where: job.source.where),
      policy: policy,
      options: options
    ) { context, identifiers in
      for number in try context.fetch(identifiers, as: ManagedObject.self) {
        if case .integer(let n) = number["n"] { number["n"] = .integer(n + 1) }
      }
    }
  }

  private static func perform(
    _ run: BatchRun,
    isRetry: Bool,
    printsEvents: Bool
  ) async throws(BatchError) -> RunSummary {
    let onEvent: @Sendable (RunEvent) -> Void = { event in
      switch event {
      case .message(let text): write("\(text)\n", to: STDERR_FILENO)
      case .started(let summary), .resumed(let summary), .joined(let summary),
        .retryingFailures(let summary), .progress(let summary), .throttled(let summary):
        if printsEvents { try? print(Line(event: event.name, summary: summary)) }
      case .retrying, .setAside, .ended: break
      }
    }
    let answer: BatchRun.Answer = { summary throws(BatchError) in
      try print(Line(event: RunEvent.ended(summary).name, summary: summary))
    }
    return isRetry
      ? try await run.retryFailures(onEvent: onEvent, answer: answer)
      : try await run.run(onEvent: onEvent, answer: answer)
  }

  /// Has SIGINT and SIGTERM stop a run.
  private static func stopping(_ run: BatchRun) async -> [any DispatchSourceSignal] {
    let queue = DispatchQueue(label: "signals")
    let sources = [SIGINT, SIGTERM].map {
      DispatchSource.makeSignalSource(signal: $0, queue: queue)
    }
    for source in sources {
      source.setEventHandler { run.stop() }
      await withCheckedContinuation { continuation in
        source.setRegistrationHandler { continuation.resume() }
        source.resume()
      }
    }
    return sources
  }

  /// A summary with an event's name beside its fields.
  private struct Line: Encodable {
    let event: String
    let summary: RunSummary

    private enum CodingKeys: CodingKey { case event }

    func encode(to encoder: any Encoder) throws {
      try summary.encode(to: encoder)
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(event, forKey: .event)
    }
  }

  private static func print(_ line: Line) throws(BatchError) {
    guard let data = try? JSONEncoder().encode(line),
      write(String(decoding: data, as: UTF8.self) + "\n", to: STDOUT_FILENO)
    else { throw BatchError(.outputFailed, "standard output cannot be written") }
  }

  private static func complain(_ error: BatchError) {
    write("error: \(error)\n", to: STDERR_FILENO)
  }

  @discardableResult
  private static func write(_ text: String, to descriptor: Int32) -> Bool {
    (try? FileDescriptor(rawValue: descriptor).writeAll(text.utf8)) != nil
  }
}
