import BatchIdentifiers

/// Executes the chunks of this process's part of a run, and reports progress, however it ends.
struct RunExecution<Part: RunPart> {
  let part: Part
  let terms: RunTerms
  let stop: StopSwitch
  let onEvent: @Sendable (RunEvent) -> Void

  func perform() async {
    do {
      if case .stopped(let reason) = try await wait(at: approvalGate) {
        try await part.settle()
        try await part.record(.stopped, nil, because: reason)
        return
      }
      await part.notifier.begin(part.summary(), afterKill: part.followsKill)
      try await work(by: part.makeProcessor())
    } catch {
      await end(because: error)
    }
    tellMessages()
  }

  /// Records a stop before the first chunk as one, and anything else as a failure.
  private func end(because error: BatchError) async {
    do throws(BatchError) {
      guard error.code == .interrupted else { throw error }
      try await part.settle()
      try await part.record(.stopped, nil, because: nil)
    } catch {
      part.fail(terms.phrase(error))
    }
  }

  /// The time between two looks at a gate.
  private static var gateInterval: Duration { .milliseconds(200) }

  private func approvalGate(_ asked: RunControl) async throws(BatchError) -> RunGate? {
    try await part.unapprovedPlan().map {
      let reason = RunSummary.awaitingApproval($0)
      return RunGate(.approval, reason, isWaitedFor: terms.waitsForApproval)
    }
  }

  private var deadline: ContinuousClock.Instant? {
    terms.policy.limits.runtime.map { part.start + $0 }
  }

  private enum Passage {
    case open
    /// The run stops, for this reason if not by request.
    case stopped(because: String?)
  }

  /// Waits until a gate is open.
  private func wait(
    at gate: (RunControl) async throws(BatchError) -> RunGate?
  ) async throws(BatchError) -> Passage {
    var requests = part.requests
    var asked = requests.look() ?? RunControl()
    var isHeld = false
    while let closed = try await gate(asked) {
      guard closed.isWaitedFor else { return .stopped(because: closed.reason) }
      if !isHeld, try part.hold(closed.hold) {
        let summary = part.summary()
        onEvent(.throttled(summary))
        part.notifier.hold(summary)
      }
      isHeld = true
      var isStopped = false
      do throws(BatchError) {
        try await stop.wait(for: Self.gateInterval, at: terms.name, on: terms.host)
      } catch {
        isStopped = true
      }
      asked = requests.look() ?? asked
      part.note(asked.actions ?? [])
      if asked.isCancelled { return .stopped(because: RunSummary.cancellation) }
      if isStopped { return .stopped(because: closed.isTold ? closed.reason : nil) }
      if let deadline, terms.host.now() >= deadline { return .stopped(because: RunLogic.outOfTime) }
      tellProgress(every: max(terms.progressInterval, .seconds(1)))
    }
    // The pace of the loop before may still hold it.
    try part.release()
    return .open
  }

  private func work<Processor: ChunkProcessor>(
    by processor: Processor
  ) async throws(BatchError) {
    var policy = terms.policy
    if let size = processor.chunkSize { policy.chunk = .init(size: size) }
    let sizing = ChunkSizing(
      policy,
      preparedWithin: processor.handlerTimeLimit,
      startingAt: part.meanChunkSize,
      bytes: part.chunkBytes
    )
    // There is one lane, so it determines how long a run takes and gets priority.
    let most = min(terms.workerCount + part.spareWorkers, processor.workerLimit ?? .max)
    var chunks = most
    if case .all(let ranges) = part.positions, !part.isTrying {
      chunks = ranges.reduce(0) { $0 + ($1.count + sizing.size - 1) / sizing.size }
    }
    let workers = (1...max(1, min(most, chunks))).map {
      processor.makeWorker("batch.worker.\($0)")
    }
    await part.attend()
    part.tune(policy.throttle)
    let settings = RunLoop<Processor>.Settings(
      policy: policy,
      files: terms.files,
      requests: part.requests,
      deadline: deadline,
      workersCommit: part.workersCommit,
      writer: part.writer,
      addStoreConditions: part.addStoreConditions,
      stopRequests: stop.listen(),
      host: terms.host
    )
    var (ending, failure, reason) = await loop(sizing, workers, processor, settings)
    while ending == .completed, part.isTrying {
      do throws(BatchError) {
        switch try await wait(at: part.canaryGate) {
        case .stopped(let why): (ending, reason) = (.stopped, why)
        case .open: (ending, failure, reason) = await loop(sizing, workers, processor, settings)
        }
      } catch {
        (ending, failure) = (.failed, error)
      }
    }
    defer { tellMessages() }
    // A handler that never returned keeps its context forever, so closing would wait forever.
    if !processor.hasLostWorkers {
      for worker in workers { await worker.close() }
    }
    try await part.settle()
    if ending == .completed, failure == nil, let space = await part.makeSpaceReturn() {
      (ending, reason) = try await giveBack(by: space)
    }
    try await part.record(ending, failure.map(terms.phrase), because: reason)
  }

  /// Runs the loop over the part's present positions.
  private func loop<Processor: ChunkProcessor>(
    _ sizing: ChunkSizing,
    _ workers: [Processor.Worker],
    _ processor: Processor,
    _ settings: RunLoop<Processor>.Settings
  ) async -> (RunStateMachine.Ending, BatchError?, String?) {
    var (remaining, settings) = ([Range<Int>](), settings)
    switch part.positions {
    case .all(let ranges): remaining = ranges
    case .granted(let source): settings.spans = source
    }
    settings.stopRequests = stop.listen()
    var loop = RunLoop(
      remaining: remaining,
      sizing: sizing,
      workers: workers,
      processor: processor,
      settings: settings
    )
    let ending = await loop.run { event throws(BatchError) in try await observe(event) }
    return (ending, loop.failure, loop.stopReason)
  }

  private func observe(_ event: RunLogic.Event) async throws(BatchError) {
    switch event {
    case .committed(let chunk, let commit):
      try await part.committed(chunk, commit)
      tellMessages()
      tellProgress(every: terms.progressInterval)
    case .ended(let position): part.end(at: position)
    case .retrying(let retry): onEvent(.retrying(retry))
    case .granted: break
    case .lost(let span):
      onEvent(
        .message(
          "another process has taken over positions \(span.lowerBound) to \(span.upperBound - 1),"
            + " since this one sent no heartbeat"
        )
      )
    case .held(let hold):
      guard try part.hold(hold) else { break }
      let summary = part.summary()
      onEvent(.throttled(summary))
      if !hold.isPace { part.notifier.hold(summary) }
    case .released: try part.release()
    case .tuned(let throttle): part.tune(throttle)
    case .asked(let actions): part.note(actions)
    case .message(let message): onEvent(.message(message))
    case .looked(let stalled):
      if try part.pass(stalled) { tellProgress(every: .zero) }
      // Reporting progress shows that the run is alive, however long a chunk or a hold takes.
      tellProgress(every: max(terms.progressInterval, .seconds(1)))
    }
  }

  private func tellProgress(every interval: Duration) {
    if part.shouldTell(every: interval) { onEvent(.progress(part.summary())) }
  }

  /// Reports the standard error of the transform's programs and of the hooks.
  private func tellMessages() {
    for message in part.takeMessages() + part.notifier.takeMessages() { onEvent(.message(message)) }
  }
}
