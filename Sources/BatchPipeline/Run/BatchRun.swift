public import BatchEngine
public import BatchIdentifiers
public import BatchStore
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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
  public struct Options: Sendable {
    /// Values for the job's parameters: `["rate": 1.1, "country": "CZ"]`.
    public var parameters: [String: ParameterValue] = [:]
    /// The same as texts, each `name=value`, from a command line.
    package var parameterTexts: [String]?
    /// The number of background contexts; overrides the job's.
    public var workers: Int?
    /// The number of identifiers in a chunk; overrides the job's.
    public var chunkSize: Int?
    /// Whether to set an unfinished checkpoint aside instead of resuming it.
    public var fresh = false
    /// Whether to join an unfinished run only, and never begin one; on PostgreSQL.
    public var joinOnly = false
    /// The identifier of the work, of up to 200 bytes; nil for none.
    ///
    /// The work of an identifier is done at most once, whoever repeats the call however late: once it is
    /// done, the call only returns its run's summary again. The identifier is kept in the checkpoint and in
    /// the store, so losing either does not repeat work.
    public var runID: String?
    /// Programs to notify about a run by objects; a job has its own.
    public var hooks = Job.Hooks()
    /// Where to report how a run by objects ended; a job has its own.
    public var report: Job.Report?
    /// The command line that asks for the run, which its record keeps.
    package var commandLine: [String]?
    /// How often to report progress.
    public var progressInterval = Duration.milliseconds(200)

    /// The defaults.
    public init() {}
  }

  let job: Job
  let options: Options
  let work: any RunWork
  private let stopRequest = Lock(StopRequest())
  private let listeners = Lock<[AsyncStream<RunEvent>.Continuation]>([])

  /// Whether the run was asked to stop, and whom to notify.
  private struct StopRequest {
    var isMade = false
    /// What the tasks of the run look at.
    let stop = RunStop()
    /// Ends work before the chunks, such as the fetch of the identifiers.
    var interrupt: (@Sendable () -> Void)?
    var listener: AsyncStream<Void>.Continuation?

    mutating func make() {
      isMade = true
      stop.begin()
      interrupt?()
    }
  }

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
    self.job = job
    self.options = options
    work = JobWork(job: job, options: options, handlers: handlers)
  }

  /// A run of some work, with the names, files and settings of a job.
  init(_ job: Job, options: Options, work: any RunWork) {
    self.job = job
    self.options = options
    self.work = work
  }

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
  public func stop() {
    stopRequest.withLock { request in
      request.make()
      request.listener?.yield()
    }
  }

  /// Stops the run if an operator cancels it, until the task is cancelled.
  ///
  /// The chunks have their own look, which knows the reason; this is for what comes before and after them.
  func obeyCancellation() -> Task<Void, Never> {
    let files = job.files
    return Task {
      var requests = ControlFile(of: files)
      while !Task.isCancelled {
        if requests.look()?.isCancelled == true { return stopRequest.withLock { $0.make() } }
        try? await Task.sleep(for: RunThrottle.lookInterval)
      }
    }
  }

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
    let onEvent = observed(onEvent)
    return try await stoppable { () async throws(BatchError) in
      #if PostgreSQL
      if let server = job.sharedServer { return try await share(server, onEvent, answer) }
      #endif
      return try await acknowledging(onEvent) { lock throws(BatchError) in
        try await beginning(onEvent) { () throws(BatchError) in
          try await perform(lock, onEvent, answer)
        }
      }
    }
  }

  /// Begins a run, and tries again while others lock the database, as often as the job retries a
  /// chunk.
  ///
  /// If `body` throws, it has changed nothing that it would miss the next time.
  func beginning(
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ body: () async throws(BatchError) -> Ended
  ) async throws(BatchError) -> Ended {
    let backoff = Backoff(job.retry)
    return try await backoff.repeating(body) { delay, attempt, reason throws(BatchError) in
      onEvent(
        .message(
          "\(reason.message); the run tries again to begin (\(attempt.grouped) of \(backoff.limit.grouped))"
        )
      )
      let sleep = Task { try? await Task.sleep(for: delay) }
      _ = try await interruptible(at: job.database.path.string, by: { sleep.cancel() }) {
        await sleep.value
      }
    }
  }

  /// Does `body` in tasks that know when the run was told to stop.
  func stoppable<Result>(
    _ body: () async throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    let stop = stopRequest.withLock(\.stop)
    return try await RunStop.$current.withValue(stop) {
      () async -> Swift.Result<Result, BatchError> in
      do throws(BatchError) { return .success(try await body()) } catch { return .failure(error) }
    }.get()
  }

  private func perform(
    _ lock: RunLock?,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> Ended {
    guard job.keepsRecord else {
      return try await begin(FileFindings(job: job.name), onEvent, answer)
    }
    let findings = try await FileFindings(
      of: job,
      options.request,
      interruptedRetry: lock?.interruptedRetry
    )
    switch try findings.decide() {
    case .begin: return try await begin(findings, onEvent, answer)
    case .join(let run):
      switch run.record {
      case .checkpoint(let checkpoint):
        return try await resume(checkpoint, findings, onEvent, answer)
      case .stored(let stored):
        try await restore(stored, findings, onEvent)
        return try await perform(lock, onEvent, answer)
      case .past(let past): return tell(RunSummary(past, of: job.files), answer)
      }
    case .conclude(let run), .nothing(let run):
      return try await conclude(run.record, findings, onEvent, answer)
    case .concludeFirst(let run):
      let last = try await conclude(run.record, findings, onEvent, answer)
      if let problem = last.summary.unacknowledged { throw run.isNotTold(problem) }
      try last.unacknowledged?.acknowledge()
      return try await begin(findings, onEvent, answer)
    }
  }

  /// Allows the same object to resume a stopped run.
  func forgetStop() {
    stopRequest.withLock { $0 = StopRequest() }
  }

  // MARK: Beginning

  private func begin(
    _ findings: FileFindings,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> Ended {
    let run = RunIdentity()
    let plan = try await work.plan(of: run, for: self, in: findings.store)
    var metadata = RunMetadata(
      run: run.run,
      job: job.name,
      startedAt: run.startedAt,
      fingerprint: "",
      schema: [],
      ledger: plan.ledger
    )
    metadata.startedMicroseconds = run.startedMicroseconds
    if job.database.server == nil {
      metadata.database = FileSystem.absolute(job.database.path).string
    }
    metadata.runID = options.runID
    let past = findings.pastRuns
    metadata.pastRuns = past.isEmpty ? nil : past
    metadata.isEntered = plan.ledger == .store ? true : nil
    metadata.invocation = job.invocation(commandLine: options.commandLine)
    try plan.describeOutput(in: &metadata, after: findings.checkpoint)

    // The selection may be refused or interrupted, so it comes before any write; a store without an
    // identity gets the one that its identifiers carry.
    let identity =
      plan.ledger == .store && plan.identity.isDerived ? .made() : plan.identity
    let start = ContinuousClock.now
    let selection = try await plan.select(for: self, identity)
    let selectionTime = start.duration(to: .now)
    let list = selection.list
    plan.describeWork(in: &metadata, selection)
    try plan.start(run: run.run, atMost: workerCount, hasRows: list.count > 0)

    // From here on, files and tables are written, and errors are failures of the run.
    var lane: WriterLane?
    var isEntered = false
    let checkpoint: Checkpoint
    do {
      if findings.replacedFile != nil { try findings.checkpoint?.takeUp() }
      lane = try plan.makeLane()
      if let lane, plan.ledger == .store {
        guard try await lane.prepareStore(identity) == identity || selection.isGiven else {
          // Another run gave the database its identity at the same moment: it is permanent now.
          await findings.store?.close()
          var findings = findings
          findings.store = nil
          return try await begin(findings, onEvent, answer)
        }
        var description = RunDescription(
          metadata,
          total: list.count,
          at: job.checkpointPath
        )
        description.undo = try plan.undo(of: run)
        description.oldestEnd = job.checkpoint.oldestEnd
        description.settledRuns = findings.settledRuns
        description.setsOthersAside = options.fresh
        try await lane.begin(
          description,
          keeping: job.checkpoint.list == .store
            ? (list, try Checkpoint.encode(metadata)) : nil
        )
        isEntered = true
        // The checkpoint must not survive a power failure that the store's identity does not.
        _ = try await Backoff(job.retry).repeating { () throws(BatchError) in
          try await lane.makeDurable()
        }
      }
      // Only once the new run is certain to begin: a refused run leaves the old one unchanged.
      if let file = findings.replacedFile {
        onEvent(.setAside(try Checkpoint.setAside(file).string))
      } else if let finished = findings.checkpoint {
        keep(finished, onEvent)
      }
      checkpoint =
        job.keepsRecord
        ? try Checkpoint(
          creating: job.checkpointPath,
          list: list,
          metadata: metadata,
          permissions: job.files.permissions
        )
        : Checkpoint(unkept: list, metadata: metadata)
    } catch {
      // The store refused the run before it wrote anything, or was locked.
      if error.code == .alreadyRunning || error.code == .unfinishedRun
        || error.isTransient && !isEntered
      {
        try? plan.stop()
        await plan.close()
        throw error
      }
      var summary = RunSummary(
        metadata,
        RunProgress(),
        total: list.count,
        path: job.checkpointPath.string
      )
      // A stop may end a wait for the database's lock.
      summary.state = error.code == .interrupted ? .stopped : .failed
      if summary.state == .failed { summary.failure = job.words(of: error) }
      try? await lane?.release()
      await tellRefusal(job.words(of: error), endingWith: ExitStatus(of: summary), onEvent)
      return tell(summary, answer)
    }
    try checkpoint.takeUp()
    let session = RunSession(
      checkpoint: checkpoint,
      done: DoneRanges(),
      isResumed: false,
      selectedIn: selectionTime
    )
    onEvent(.started(session.summary()))
    let execution = RunExecution(
      run: self,
      plan: plan,
      list: checkpoint.list,
      lane: lane,
      session: session,
      onEvent: onEvent
    )
    return await end(execution, answer)
  }

  /// Keeps the record of the previous run, whose place another one takes, and removes surplus
  /// records.
  ///
  /// - Throws: `BatchError` if the record would be lost.
  private func keep(
    _ finished: Checkpoint,
    _ onEvent: (RunEvent) -> Void
  ) {
    let history = RunHistory(of: job.files)
    do throws(BatchError) {
      if job.history != .runs(0) { try history.keep(finished) }
    } catch {
      onEvent(.message("the record of the previous run is not kept: \(error)"))
    }
    do throws(BatchError) {
      try history.prune(to: job.history)
    } catch {
      onEvent(.message("records of earlier runs are still there: \(error)"))
    }
  }

  /// Fetches the identifiers of a new run.
  func fetchIdentifiers(
    _ query: IdentifierQuery,
    from store: Store,
    _ identity: StoreIdentity
  ) async throws(BatchError) -> PackedIdentifiers {
    let fetch = IdentifierFetch(query, from: store, readers: workerCount, spill: BlockSpill())
    return try await interruptible(at: store.path, by: { fetch.interrupt() }) {
      () throws(BatchError) in
      try await fetch.run(store: identity)
    }
  }

  /// Does a step before the chunks, which a request to stop interrupts.
  ///
  /// - Throws: What `body` throws; of code `interrupted` if the run was asked to stop.
  func interruptible<Result>(
    at place: String,
    by interrupt: @escaping @Sendable () -> Void,
    _ body: () async throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    onStop(interrupt)
    defer { onStop(nil) }
    do throws(BatchError) {
      let result = try await body()
      // A database does not notice an interruption between two statements.
      if !stopRequest.withLock({ $0.isMade }) { return result }
      throw BatchError(.interrupted, "interrupted", at: place)
    } catch {
      guard stopRequest.withLock({ $0.isMade }) else { throw error }
      throw error.afterStop(at: place)
    }
  }

  /// Has a request to stop call a closure instead of an earlier one, at once if there was one; nil for nothing.
  func onStop(_ interrupt: (@Sendable () -> Void)?) {
    stopRequest.withLock { request in
      request.interrupt = interrupt
      if request.isMade { interrupt?() }
    }
  }

  /// Requests to stop, including one made before anybody listened.
  ///
  /// A stream ends with its reader, so each loop has its own.
  func listenForStop() -> AsyncStream<Void> {
    let (requests, listener) = AsyncStream.makeStream(
      of: Void.self,
      bufferingPolicy: .bufferingNewest(1)
    )
    stopRequest.withLock { request in
      request.listener = listener
      if request.isMade { listener.yield() }
    }
    return requests
  }

  /// The number of connections that read at once.
  var workerCount: Int {
    options.workers ?? job.workers ?? ProcessInfo.processInfo.activeProcessorCount
  }
}

extension RunDescription {
  init(_ metadata: RunMetadata, total: Int, at path: FilePath) {
    self.init(
      identifier: metadata.run,
      job: metadata.job,
      total: total,
      startedAt: metadata.startedAt,
      checkpoint: FileSystem.absolute(path).string
    )
    runID = metadata.runID
    undone = metadata.undone
  }
}

extension BatchError {
  /// The error of a step before the chunks in a run that was told to stop.
  func afterStop(at place: String) -> BatchError {
    guard code == .interrupted else { return self }
    return BatchError(
      .interrupted,
      "the run was told to stop before its first chunk; it has changed no row",
      at: place,
      remedy: "run it again"
    )
  }
}
