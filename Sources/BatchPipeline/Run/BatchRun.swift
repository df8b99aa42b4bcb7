import BatchJobs
public import BatchRuns
public import BatchIdentifiers
import BatchPlatform
import BatchSQLite
import SystemPackage

/// A run of a job: a new run, or the rest of one that was stopped or killed.
///
///     let job = try Job(contentsOf: "backfill.json")
///     let summary = try await BatchRun(job).run()
///     print(summary.outcomes.succeeded)
///
/// Changes in the store happen exactly once, however often the process is killed, since the record
/// of a chunk commits with the chunk.
///
/// An exported file is also the same, byte for byte.
public final class BatchRun: Sendable {
  /// Options that may differ from one run of a job to the next.
  public typealias Options = RunOptions

  let options: Options
  let work: any RunWork
  let stopSwitch = StopSwitch()
  private let listeners = Lock<[AsyncStream<RunEvent>.Continuation]>([])

  /// Makes a run of a job.
  ///
  /// - Parameters:
  ///   - job: The job to run.
  ///   - options: Options that may differ from one run to the next.
  ///   - handlers: The handlers that a transform's `handler` may name.
  public init(
    _ job: Job,
    options: Options = Options(),
    handlers: [String: TransformHandler] = [:]
  ) {
    self.options = options
    work = JobWork(job: job, options: options, handlers: handlers)
  }

  package init(_ work: any RunWork, options: Options) {
    self.options = options
    self.work = work
  }

  var cause: any RunCause { work.cause }

  /// The events of the current run, or of the next one, until its end.
  ///
  ///     let events = run.events()
  ///     async let summary = run.run()
  ///     for await event in events { print(event.name) }
  ///
  /// Each call returns a separate stream.
  ///
  /// To miss nothing, call it before ``run(onEvent:answer:)``.
  ///
  /// - Parameter limit: The number of events to buffer for a slow reader; only the newest are kept.
  /// - Returns: A stream that ends with the run.
  public func events(keepingNewest limit: Int = 1000) -> AsyncStream<RunEvent> {
    let (events, listener) = AsyncStream.makeStream(
      of: RunEvent.self,
      bufferingPolicy: .bufferingNewest(limit)
    )
    listeners.withLock { $0.append(listener) }
    return events
  }

  /// Also sends the events to the readers of ``events(keepingNewest:)``.
  func observed(
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) -> @Sendable (RunEvent) -> Void {
    { [self] event in
      onEvent(event)
      for listener in listeners.withLock({ $0 }) { listener.yield(event) }
    }
  }

  func endEvents() {
    let ended = listeners.withLock { listeners in
      defer { listeners.removeAll() }
      return listeners
    }
    for listener in ended { listener.finish() }
  }

  /// Ends the run as soon as the chunks in flight are committed; it can be resumed.
  ///
  /// You may call this from any thread, before, during or after the run.
  public func stop() { stopSwitch.stop() }

  /// Called with the summary at the end, just before a run counts as acknowledged.
  public typealias Answer = @Sendable (RunSummary) throws(BatchError) -> Void

  /// Runs the job, resumes it, or concludes a finished run that was not acknowledged.
  ///
  /// A run is *finished* when all rows are done, the result is in place, and both are durable. It
  /// is *acknowledged* by the last write before this method returns, after the log, the report, the
  /// hooks and `answer`. If the process was killed in between, the next call only repeats these
  /// last steps and touches no row.
  ///
  /// Cancelling the task has the same effect as calling ``stop()``.
  ///
  /// - Parameters:
  ///   - onEvent: Called with each event, one at a time, on any thread.
  ///   - answer: Called with the summary at the end, at least once. If it throws, a finished run is
  ///     not acknowledged, and `RunSummary/unacknowledged` has the reason.
  /// - Returns: The summary of the run, whose state may be `RunState/stopped` or `RunState/failed`;
  ///   such a run can be resumed.
  /// - Throws: `BatchError` if nothing was run: the job does not fit the database, another run is
  ///   alive, or a checkpoint is damaged or belongs to other work. The database, the checkpoint and
  ///   the output are then unchanged.
  public func run(
    onEvent: @escaping @Sendable (RunEvent) -> Void = { _ in },
    answer: Answer = { _ in }
  ) async throws(BatchError) -> RunSummary {
    try await execute(options.request, onEvent, answer)
  }

  func execute(
    _ request: RunRequest,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    let onEvent = observed(onEvent)
    defer {
      stopSwitch.reset()
      endEvents()
    }
    return try await stopSwitch.known { () async throws(BatchError) in
      do throws(BatchError) {
        let record = try work.record(of: self, onEvent)
        return try await drive(record, request, onEvent, answer)
      } catch {
        await cause.tellRefusal(error, onEvent)
        throw error
      }
    }
  }

  private func drive(
    _ record: some RunRecord,
    _ request: RunRequest,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    try await RunDriver(record, terms, stop: stopSwitch, onEvent: onEvent)
      .run(request, answer: answer)
  }

  var terms: RunTerms {
    RunTerms(
      name: cause.name,
      policy: options.policy(of: cause),
      workerCount: workerCount,
      files: cause.files,
      progressInterval: options.progressInterval,
      waitsForApproval: options.waitsForApproval,
      phrase: { [cause] error in cause.words(of: error) }
    )
  }

  var workerCount: Int {
    options.workers ?? cause.policy.workers ?? ProcessInfo.processInfo.activeProcessorCount
  }
}
