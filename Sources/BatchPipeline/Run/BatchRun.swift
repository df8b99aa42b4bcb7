import BatchJobs
public import BatchRuns
public import BatchIdentifiers
import BatchPlatform
import BatchSQLite
import SystemPackage

/// A run of a job: a new one, or the rest of one that was stopped or killed.
///
///     let job = try Job(contentsOf: "backfill.json")
///     let summary = try await BatchRun(job).run()
///     print(summary.outcomes.succeeded)
///
/// Writes inside the store happen exactly once, however often the process is killed, since the
/// record of a chunk commits with the chunk. An exported file is the same, byte for byte.
public final class BatchRun: Sendable {
  /// Options that may differ from one run of a job to the next.
  public typealias Options = RunOptions

  let options: Options
  let work: any RunWork
  let stopSwitch = StopSwitch()
  private let listeners = Lock<[AsyncStream<RunEvent>.Continuation]>([])

  /// A run of a job.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - options: What may differ from one run to the next.
  ///   - handlers: Handlers that the `handler` of a transform may name.
  public init(
    _ job: Job,
    options: Options = Options(),
    handlers: [String: TransformHandler] = [:]
  ) {
    self.options = options
    work = JobWork(job: job, options: options, handlers: handlers)
  }

  /// A run of some work.
  package init(_ work: any RunWork, options: Options) {
    self.options = options
    self.work = work
  }

  /// Why there is a run.
  var cause: any RunCause { work.cause }

  /// The events of the current run, or of the next one, until it ends.
  ///
  ///     let events = run.events()
  ///     async let summary = run.run()
  ///     for await event in events { print(event.name) }
  ///
  /// Each call returns its own stream. Call it before ``run(onEvent:answer:)`` to miss nothing.
  ///
  /// - Parameter limit: How many events to buffer for a slow reader; beyond that, the newest are kept.
  /// - Returns: A stream that ends with the run.
  public func events(keepingNewest limit: Int = 1000) -> AsyncStream<RunEvent> {
    let (events, listener) = AsyncStream.makeStream(
      of: RunEvent.self,
      bufferingPolicy: .bufferingNewest(limit)
    )
    listeners.withLock { $0.append(listener) }
    return events
  }

  /// Sends the events of `onEvent` to readers of ``events(keepingNewest:)``.
  func observed(
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) -> @Sendable (RunEvent) -> Void {
    { [self] event in
      onEvent(event)
      for listener in listeners.withLock({ $0 }) { listener.yield(event) }
    }
  }

  /// Ends the streams of events.
  func endEvents() {
    let ended = listeners.withLock { listeners in
      defer { listeners.removeAll() }
      return listeners
    }
    for listener in ended { listener.finish() }
  }

  /// Ends the run as soon as the chunks in flight are committed; it can be resumed.
  ///
  /// May be called from any thread, before, during or after the run.
  public func stop() { stopSwitch.stop() }

  /// Called at the end, just before a run counts as acknowledged.
  public typealias Answer = @Sendable (RunSummary) throws(BatchError) -> Void

  /// Runs the job, resumes it, or concludes a finished run that was not acknowledged.
  ///
  /// A run is *finished* when all rows are done, the result is in place and both are durable. It is
  /// *acknowledged* by the last write before this returns, after the log, the report, the hooks and
  /// `answer`. If the process was killed in between, the next call does only what comes after the end:
  /// it touches no row.
  ///
  /// Cancelling the task is the same as calling ``stop()``.
  ///
  /// - Parameters:
  ///   - onEvent: Called with each event, one at a time, on no particular thread.
  ///   - answer: Called with the summary at the end, at least once. If it throws, a finished run is not
  ///     acknowledged, and the summary says why in `RunSummary/unacknowledged`.
  /// - Returns: How the run ended, which may be `RunState/stopped` or `RunState/failed`; both
  ///   can be resumed.
  /// - Throws: `BatchError` if nothing ran: the job does not fit the database, another run
  ///   is alive, or a checkpoint is damaged or belongs to something else. Database,
  ///   checkpoint and output are then unchanged.
  public func run(
    onEvent: @escaping @Sendable (RunEvent) -> Void = { _ in },
    answer: Answer = { _ in }
  ) async throws(BatchError) -> RunSummary {
    try await execute(options.request, onEvent, answer)
  }

  /// Carries out a request, and tells events to everybody who listens.
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

  /// Has the driver carry out a request, by a record of the runs.
  private func drive(
    _ record: some RunRecord,
    _ request: RunRequest,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> RunSummary {
    try await RunDriver(record, terms, stop: stopSwitch, onEvent: onEvent)
      .run(request, answer: answer)
  }

  /// How the run is to be carried out.
  var terms: RunTerms {
    var policy = cause.policy
    if let size = options.chunkSize { policy.chunk = .init(size: size) }
    return RunTerms(
      name: cause.name,
      policy: policy,
      workerCount: workerCount,
      files: cause.files,
      progressInterval: options.progressInterval,
      phrase: { [cause] error in cause.words(of: error) }
    )
  }

  /// The number of connections that read at once.
  var workerCount: Int {
    options.workers ?? cause.policy.workers ?? ProcessInfo.processInfo.activeProcessorCount
  }
}
