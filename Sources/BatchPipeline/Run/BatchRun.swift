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
/// record of a chunk commits with the chunk. An exported file comes out the same, byte for byte.
public final class BatchRun: Sendable {
  /// What may differ from one run of a job to the next.
  public struct Options: Sendable {
    /// Values for the job's parameters: `["rate": 1.1, "country": "CZ"]`.
    public var parameters: [String: ParameterValue] = [:]
    /// The same as texts, each `name=value`, if they are from a command line.
    package var parameterTexts: [String]?
    /// The number of background contexts, in place of the job's.
    public var workers: Int?
    /// The number of identifiers in a chunk, in place of the job's.
    public var chunkSize: Int?
    /// Whether an unfinished checkpoint is set aside instead of resumed.
    public var fresh = false
    /// The identifier of the work, of up to 200 bytes; nil for none.
    ///
    /// The work of one identifier is done at most once, whoever asks for it however late: once it is
    /// done, the summary of its run is told again and nothing else happens. Kept in the checkpoint and in
    /// the store, so that the loss of either does not undo it.
    public var runID: String?
    /// How often progress is told.
    public var progressInterval = Duration.milliseconds(200)

    /// The defaults.
    public init() {}
  }

  let job: Job
  let options: Options
  let handlers: [String: TransformHandler]
  private let stopRequest = Lock(StopRequest())

  /// Whether the run was told to stop, and who is to know.
  private struct StopRequest {
    var isMade = false
    /// The fetch of the identifiers, while it goes on.
    var fetching: IdentifierFetch?
    var listener: AsyncStream<Void>.Continuation?
  }

  /// A run of a job.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - options: What may differ from one run to the next.
  ///   - handlers: What the `handler` of a transform may name.
  public init(
    _ job: Job,
    options: Options = Options(),
    handlers: [String: TransformHandler] = [:]
  ) {
    self.job = job
    self.options = options
    self.handlers = handlers
  }

  /// Ends the run as soon as the chunks in flight are committed; it can be resumed.
  ///
  /// May be called from any thread, before, during or after the run.
  public func stop() {
    stopRequest.withLock { request in
      request.isMade = true
      request.fetching?.interrupt()
      request.listener?.yield()
    }
  }

  /// What is told at the end, as the last thing before a run counts as acknowledged.
  public typealias Answer = @Sendable (RunSummary) throws(BatchError) -> Void

  /// Runs the job to its end, or resumes it, or tells the end of a run that nobody may know of.
  ///
  /// A run is *finished* when all rows are done, the result is in place and both are durable. It is
  /// *acknowledged* by the last write before this returns, after the log, the report, the hooks and
  /// `answer`. Of a finished run that is not acknowledged, since the process was killed in between, the
  /// next call does only what comes after the end: it touches no row.
  ///
  /// Cancelling the task is the same as calling ``stop()``.
  ///
  /// - Parameters:
  ///   - onEvent: Told what happens, on no particular thread, one event at a time.
  ///   - answer: Told how the run ended, at least once. If it throws, a finished run is not
  ///     acknowledged, and the summary says why in ``RunSummary/unacknowledged``.
  /// - Returns: How the run ended, which may be ``RunState/stopped`` or ``RunState/failed``; both
  ///   can be resumed.
  /// - Throws: `BatchError` if nothing was run: the job does not fit the database, another run
  ///   is alive, a checkpoint is damaged or belongs to something else. The database, the
  ///   checkpoint and the output are then as they were.
  public func run(
    onEvent: @Sendable (RunEvent) -> Void = { _ in },
    answer: Answer = { _ in }
  ) async throws(BatchError) -> RunSummary {
    try await acknowledging { lock throws(BatchError) in
      try await perform(lock, onEvent, answer)
    }
  }

  private func perform(
    _ lock: RunLock,
    _ onEvent: @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> Ended {
    let findings = try await RunDecision.Findings(
      of: job,
      options,
      interruptedRetry: lock.interruptedRetry
    )
    switch try RunDecision(findings) {
    case .begin(let previous): return try await begin(after: previous, findings, onEvent, answer)
    case .resume(let checkpoint):
      return try await resume(checkpoint, findings, onEvent, answer)
    case .conclude(let checkpoint): return try await conclude(checkpoint, findings, onEvent, answer)
    case .concludeAndBegin(let previous):
      let last = try await conclude(previous, findings, onEvent, answer)
      if let problem = last.summary.unacknowledged { throw previous.isNotTold(problem) }
      try last.unacknowledged?.acknowledge()
      return try await begin(after: previous, findings, onEvent, answer)
    case .restore(let run):
      try await restore(run, findings, onEvent)
      return try await perform(lock, onEvent, answer)
    case .acknowledge(let run): return try await acknowledge(run, findings, answer)
    case .repeatSummary(let past): return tell(RunSummary(past, of: job), answer)
    }
  }

  /// Lets a run that was stopped be taken up again by the same object.
  func forgetStop() {
    stopRequest.withLock { $0 = StopRequest() }
  }

  // MARK: Beginning

  private func begin(
    after previous: Checkpoint?,
    _ findings: RunDecision.Findings,
    _ onEvent: @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async throws(BatchError) -> Ended {
    let run = UUID().uuidString
    let startedAt = Date.now.formatted(.iso8601)
    let parameters = try parameters(ofRun: run, startedAt: startedAt)
    let plan = try await JobPlan(
      job,
      parameters: parameters,
      handlers: handlers,
      store: findings.store
    )
    if case .export(_, let export) = plan.work {
      try ExportFile.checkName(
        export.file,
        overwrite: export.overwrite,
        made: previous?.progress.outputIdentity
      )
      try ExportFile.checkFolder(of: ExportFile.partialPath(of: export.file, run: run))
    }
    let imported = try plan.importedIdentifiers()

    // The selection may be refused or interrupted, so it is made before anything is written; a
    // store that has no identity yet is given the one that its identifiers carry.
    let identity =
      plan.ledger == .store && plan.store.identity.isDerived ? .made() : plan.store.identity
    let list: IdentifierList
    if let imported {
      list = imported.list
    } else {
      list = try await fetchIdentifiers(plan, identity)
    }

    try plan.startChildren(run: run, atMost: workerCount, hasRows: list.count > 0)
    var metadata = RunMetadata(
      run: run,
      job: job.name,
      startedAt: startedAt,
      fingerprint: plan.fingerprint(identifiersHash: imported?.hash).text,
      schema: plan.entity.fingerprint,
      ledger: plan.ledger
    )
    metadata.runID = options.runID
    let past = findings.pastRuns
    metadata.pastRuns = past.isEmpty ? nil : past
    metadata.isEntered = plan.ledger == .store ? true : nil
    if case .export(_, let export) = plan.work {
      metadata.output = export.file.string
      metadata.partialOutput = ExportFile.partialPath(of: export.file, run: run).string
      // Only the job's own earlier output can have the name, or the job says to overwrite.
      metadata.replacesOwnOutput = FileSystem.status(of: export.file) != nil
    }

    // From here on files and tables are written, and what goes wrong is a failure of the run.
    let lane: WriterLane?
    let checkpoint: Checkpoint
    do {
      if findings.replacedFile != nil { try findings.checkpoint?.takeUp() }
      lane = try plan.makeLane()
      if let lane, plan.ledger == .store {
        guard try await lane.prepareStore(identity) == identity || imported != nil else {
          // Another run gave the database its identity at the same moment: now it has one for good.
          await findings.store?.close()
          var findings = findings
          findings.store = nil
          return try await begin(after: previous, findings, onEvent, answer)
        }
        var description = RunDescription(
          metadata,
          total: list.count,
          at: job.checkpointPath
        )
        description.oldestEnd = job.checkpoint.oldestEnd
        description.settledRuns = findings.settledRuns
        description.setsOthersAside = options.fresh
        try await lane.begin(
          description,
          keeping: job.checkpoint.list == .store
            ? (list, try Checkpoint.encode(metadata)) : nil
        )
        // The checkpoint must not outlive a power failure that the store's identity does not.
        _ = try await lane.makeDurable()
      }
      // Not before the new run is certain to begin: whoever is refused finds the old one as it was.
      if let file = findings.replacedFile {
        onEvent(.setAside(try Checkpoint.setAside(file).string))
      }
      checkpoint = try Checkpoint(
        creating: job.checkpointPath,
        list: list,
        metadata: metadata,
        permissions: job.filePermissions
      )
    } catch {
      // Refused by the store before anything of this run was written.
      if error.code == .alreadyRunning || error.code == .unfinishedRun { throw error }
      var summary = RunSummary(
        metadata,
        RunProgress(),
        total: list.count,
        path: job.checkpointPath.string
      )
      summary.state = .failed
      summary.failure = error
      return tell(summary, answer)
    }
    try checkpoint.takeUp()
    let session = RunSession(checkpoint: checkpoint, done: DoneRanges(), isResumed: false)
    onEvent(.started(session.summary()))
    return await carryOut(plan, checkpoint.list, lane, session, onEvent, answer)
  }

  private func fetchIdentifiers(
    _ plan: JobPlan,
    _ identity: StoreIdentity
  ) async throws(BatchError) -> IdentifierList {
    let fetch = IdentifierFetch(plan.query, from: plan.store, readers: workerCount)
    stopRequest.withLock { request in
      request.fetching = fetch
      if request.isMade { fetch.interrupt() }
    }
    defer { stopRequest.withLock { $0.fetching = nil } }
    return try await fetch.run(store: identity)
  }

  // MARK: Carrying out

  /// Does what a session has to do, of the identifiers of `list`, and tells those who are to know.
  func carryOut(
    _ plan: JobPlan,
    _ list: IdentifierList,
    _ lane: WriterLane?,
    _ session: RunSession,
    _ onEvent: @Sendable (RunEvent) -> Void,
    _ answer: Answer
  ) async -> Ended {
    await plan.hooks.run(.onStart, session.summary())
    let summary = await carryOutChunks(plan, list, lane, session, onEvent)
    plan.tellMessages(onEvent)
    await plan.store.close()
    return await end(summary, of: session.checkpoint, lane, plan.hooks, onEvent, answer)
  }

  private func carryOutChunks(
    _ plan: JobPlan,
    _ list: IdentifierList,
    _ lane: WriterLane?,
    _ session: RunSession,
    _ onEvent: @Sendable (RunEvent) -> Void
  ) async -> RunSummary {
    do {
      switch plan.work {
      case .change(let change, let isRowByRow):
        guard let lane else { preconditionFailure("a change without a writer lane") }
        let processor = ChangeProcessor(
          list: list,
          change: change,
          isRowByRow: isRowByRow,
          lane: lane,
          ledger: plan.ledger,
          failureLimit: session.failureLimit(job.skip)
        )
        return try await loop(plan, session, processor, lane, onEvent)
      case .transform(let transform, _, _):
        guard let lane else { preconditionFailure("a transform without a writer lane") }
        let processor = TransformProcessor(
          list: list,
          transform: transform,
          run: session.run,
          lane: lane,
          ledger: plan.ledger,
          failureLimit: session.failureLimit(job.skip)
        )
        return try await loop(plan, session, processor, lane, onEvent)
      case .export(let export, let action):
        let file = try session.openOutput(
          header: export.header,
          permissions: job.filePermissions
        )
        let processor = ExportProcessor(
          list: list,
          key: plan.query.key,
          export: export,
          writer: ExportWriter(
            file,
            done: session.done,
            failed: try session.failedOutput(),
            overwrites: action.overwrite || session.replacesOwnOutput
          ),
          failureLimit: session.failureLimit(job.skip)
        )
        return try await loop(plan, session, processor, lane, onEvent)
      }
    } catch {
      return session.failed(error)
    }
  }

  /// Requests to stop, the one included that was made before anybody listened.
  ///
  /// A stream ends with its reader, so each loop has one of its own.
  private func listenForStop() -> AsyncStream<Void> {
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

  /// How many connections read at once.
  var workerCount: Int {
    options.workers ?? job.workers ?? ProcessInfo.processInfo.activeProcessorCount
  }

  private func loop<Processor: ChunkProcessor>(
    _ plan: JobPlan,
    _ session: RunSession,
    _ processor: Processor,
    _ lane: WriterLane?,
    _ onEvent: @Sendable (RunEvent) -> Void
  ) async throws(BatchError) -> RunSummary where Processor.Worker == StoreConnection {
    var job = job
    if let size = options.chunkSize { job.chunk = Job.Chunk(size: size) }
    let remaining = session.remaining
    let sizing = ChunkSizing(
      job,
      startingAt: session.meanChunkSize,
      bytes: ChunkBytes(ofRows: remaining.reduce(0) { $0 + $1.count }, in: job.database.path)
    )
    let chunks = remaining.reduce(0) { $0 + ($1.count + sizing.size - 1) / sizing.size }
    // While the programs of a command compute, one context more has the next rows ready for them.
    let contextCount = workerCount + (plan.children == nil ? 0 : 1)
    // The lane decides how long a run takes, since there is one: it goes first.
    var contexts: [StoreConnection] = []
    for number in 1...max(1, min(contextCount, chunks)) {
      contexts.append(
        plan.store.makeContext(label: "batch.worker.\(number)", priority: .background)
      )
    }
    var loop = RunLoop(
      remaining: remaining,
      sizing: sizing,
      workers: contexts,
      processor: processor,
      settings: .init(
        job: job,
        deadline: job.limits.runtime.map { session.start + $0 },
        writer: lane,
        stopRequests: listenForStop()
      )
    )
    let ending = await loop.run { event throws(BatchError) in
      switch event {
      case .committed(let chunk, let outcomes):
        session.committed(chunk, outcomes)
        plan.tellMessages(onEvent)
        if session.isDue(after: job.checkpoint.interval) {
          try await session.recordProgress(with: processor)
        }
        if session.shouldTell(every: options.progressInterval) {
          onEvent(.progress(session.summary()))
        }
      case .retrying(let retry): onEvent(.retrying(retry))
      case .held(let hold):
        guard try session.hold(hold) else { break }
        let summary = session.summary()
        onEvent(.throttled(summary))
        if !hold.isPace { plan.hooks.begin(.onThrottle, summary) }
      case .released: try session.release()
      case .message(let message): onEvent(.message(message))
      case .looked:
        try session.pass(recordingEvery: job.checkpoint.interval)
        // Whoever watches sees that it is alive, however long a chunk or a hold.
        if session.shouldTell(every: max(options.progressInterval, .seconds(1))) {
          onEvent(.progress(session.summary()))
        }
      }
    }
    defer { plan.tellMessages(onEvent) }
    // A handler that never returned has its context for good: nobody waits for that.
    if loop.failure?.code != .handlerTimeout {
      for context in contexts { await context.close() }
    }
    try plan.children?.close()
    switch ending {
    case .completed where session.isComplete: try await complete(session, processor)
    case .completed: try await session.stop(with: processor)
    case .stopped: try await session.stop(with: processor, because: loop.stopReason)
    case .failed: try await session.record(.failed, with: processor, failure: loop.failure)
    }
    return session.summary()
  }

  /// Records that the run is complete, in spite of others that have the database locked for a while.
  private func complete(
    _ session: RunSession,
    _ processor: some ChunkProcessor
  ) async throws(BatchError) {
    let backoff = Backoff(job.retry)
    var generator = SystemRandomNumberGenerator()
    var attempt = 0
    while true {
      do {
        return try await session.complete(with: processor)
      } catch {
        attempt += 1
        guard error.isTransient, attempt <= backoff.limit else { throw error }
        try? await Task.sleep(for: backoff.delay(before: attempt, using: &generator))
      }
    }
  }
}

extension JobPlan {
  /// Tells what the programs of a command transform, and hooks, have written to standard error.
  fileprivate func tellMessages(_ onEvent: (RunEvent) -> Void) {
    for message in (children?.takeMessages() ?? []) + hooks.takeMessages() {
      onEvent(.message(message))
    }
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
  }
}
