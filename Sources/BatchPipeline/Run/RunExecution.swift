import BatchEngine
import BatchIdentifiers
import BatchStore

/// A run in progress: the plan, the identifiers, the writer, what is done, and whom to notify.
struct RunExecution {
  let run: BatchRun
  let plan: any RunPlan
  /// The identifiers that chunks refer to, by position.
  let list: PackedIdentifiers
  /// The writer of the store; nil if nothing is written there.
  let lane: WriterLane?
  let session: RunSession
  let onEvent: @Sendable (RunEvent) -> Void

  private var job: Job { run.job }

  /// How to treat failing identifiers of the run.
  var onFailure: FailurePolicy { session.failurePolicy(job.skip) }

  /// Does what is left, however it ends, and notifies.
  func perform() async -> RunSummary {
    if session.followsKill {
      await plan.hooks.run(.onKill, session.summary(), telling: ["BATCH_STATE": "killed"])
    }
    await plan.hooks.run(.onStart, session.summary())
    let summary: RunSummary
    do {
      let processor: any ChunkProcessor
      (processor, session.ledger) = try await plan.processor(for: self)
      summary = try await loop(processor)
    } catch {
      summary = session.failed(job.words(of: error))
    }
    tellMessages()
    if summary.state.isFinished {
      for message in await plan.leftBehind() { onEvent(.message(message)) }
    }
    await plan.close()
    return summary
  }

  /// Lets a processor do the remaining chunks, and records how that ended.
  ///
  /// - Parameter processor: The processor.
  /// - Returns: How it ended.
  /// - Throws: What ended it before that could be recorded.
  private func loop<Processor: ChunkProcessor>(
    _ processor: Processor
  ) async throws(BatchError) -> RunSummary {
    var policy = job.policy
    if let size = run.options.chunkSize { policy.chunk = .init(size: size) }
    let remaining = session.remaining
    let sizing = ChunkSizing(
      policy,
      preparedWithin: processor.patience,
      startingAt: session.meanChunkSize,
      bytes: ChunkBytes(ofRows: remaining.reduce(0) { $0 + $1.count }, in: job.database.path)
    )
    let chunks = remaining.reduce(0) { $0 + ($1.count + sizing.size - 1) / sizing.size }
    // There is one lane, so it determines how long a run takes: it has priority.
    let most = min(run.workerCount + plan.spareWorkers, processor.workerLimit ?? .max)
    let workers = (1...max(1, min(most, chunks))).map {
      processor.makeWorker("batch.worker.\($0)")
    }
    var loop = RunLoop(
      remaining: remaining,
      sizing: sizing,
      workers: workers,
      processor: processor,
      settings: .init(
        policy: policy,
        files: job.files,
        deadline: policy.limits.runtime.map { session.start + $0 },
        writer: lane,
        stopRequests: run.listenForStop()
      )
    )
    let ending = await loop.run { event throws(BatchError) in
      try await observe(event)
    }
    defer { tellMessages() }
    // A handler that never returned keeps its context forever: nobody waits for that.
    if !processor.hasLostWorkers {
      for worker in workers { await worker.close() }
    }
    try plan.stop()
    switch ending {
    case .completed where session.isComplete:
      try await Backoff(job.retry).repeating { () throws(BatchError) in
        try await session.complete()
      }
    case .completed: try await session.stop()
    case .stopped: try await session.stop(because: loop.stopReason)
    case .failed:
      let failure = loop.failure.map { job.words(of: $0) }
      try await session.record(.failed, failure: failure)
    }
    return session.summary()
  }

  private func observe(_ event: RunLogic.Event) async throws(BatchError) {
    switch event {
    case .committed(let chunk, let commit):
      session.committed(chunk, commit)
      tellMessages()
      if session.isDue(after: job.checkpoint.interval) {
        try await session.recordProgress()
      }
      if session.shouldTell(every: run.options.progressInterval) {
        onEvent(.progress(session.summary()))
      }
    case .retrying(let retry): onEvent(.retrying(retry))
    // All positions of a run of this store are its own from the beginning.
    case .granted, .lost: break
    case .held(let hold):
      guard try session.hold(hold) else { break }
      let summary = session.summary()
      onEvent(.throttled(summary))
      if !hold.isPace { plan.hooks.begin(.onThrottle, summary) }
    case .released: try session.release()
    case .message(let message): onEvent(.message(message))
    case .looked:
      let wait =
        plan.wait(of: RunSession.untoldWait) ?? lane?.lockWait.wait(of: RunSession.untoldWait)
      if try session.wait(for: wait) {
        _ = session.shouldTell(every: .zero)
        onEvent(.progress(session.summary()))
      }
      try session.pass(recordingEvery: job.checkpoint.interval)
      // Progress shows that the run is alive, however long a chunk or a hold takes.
      if session.shouldTell(every: max(run.options.progressInterval, .seconds(1))) {
        onEvent(.progress(session.summary()))
      }
    }
  }

  /// Reports output of a command transform's programs, and of hooks, to standard error.
  private func tellMessages() {
    for message in plan.takeMessages() + plan.hooks.takeMessages() { onEvent(.message(message)) }
  }
}
