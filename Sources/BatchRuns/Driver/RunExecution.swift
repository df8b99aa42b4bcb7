import BatchIdentifiers

/// Executes the chunks of this process's part of a run, and reports progress, however it ends.
struct RunExecution<Part: RunPart> {
  let part: Part
  let terms: RunTerms
  let stop: StopSwitch
  let onEvent: @Sendable (RunEvent) -> Void

  func perform() async {
    do {
      guard try await isApproved() else { return }
      await part.notifier.begin(part.summary(), afterKill: part.followsKill)
      try await loop(part.makeProcessor())
    } catch {
      part.fail(terms.phrase(error))
    }
    tellMessages()
  }

  /// The time between two looks for approvals.
  private static var approvalInterval: Duration { .seconds(1) }

  /// Whether enough users have approved the plan; if not, records that the run has stopped.
  private func isApproved() async throws(BatchError) -> Bool {
    var isHeld = false
    while let planned = try await part.unapprovedPlan() {
      let reason = RunSummary.awaitingApproval(planned)
      guard terms.waitsForApproval else {
        try await endUnapproved(because: reason)
        return false
      }
      if !isHeld, try part.hold(RunThrottle.Hold(awaiting: reason)) {
        onEvent(.throttled(part.summary()))
      }
      isHeld = true
      do throws(BatchError) {
        try await stop.wait(for: Self.approvalInterval, at: terms.name)
      } catch {
        try await endUnapproved(because: reason)
        return false
      }
    }
    if isHeld { try part.release() }
    return true
  }

  private func endUnapproved(because reason: String) async throws(BatchError) {
    try await part.settle()
    try await part.record(.stopped, nil, because: reason)
  }

  private func loop<Processor: ChunkProcessor>(
    _ processor: Processor
  ) async throws(BatchError) {
    var policy = terms.policy
    if let size = processor.chunkSize { policy.chunk = .init(size: size) }
    var remaining: [Range<Int>] = []
    var spans: (any SpanSource)?
    switch part.positions {
    case .all(let ranges): remaining = ranges
    case .granted(let source): spans = source
    }
    let sizing = ChunkSizing(
      policy,
      preparedWithin: processor.handlerTimeLimit,
      startingAt: part.meanChunkSize,
      bytes: part.chunkBytes
    )
    let chunks = remaining.reduce(0) { $0 + ($1.count + sizing.size - 1) / sizing.size }
    // There is one lane, so it determines how long a run takes and gets priority.
    let most = min(terms.workerCount + part.spareWorkers, processor.workerLimit ?? .max)
    let workers = (1...max(1, spans == nil ? min(most, chunks) : most)).map {
      processor.makeWorker("batch.worker.\($0)")
    }
    await part.attend()
    part.tune(policy.throttle)
    var loop = RunLoop(
      remaining: remaining,
      sizing: sizing,
      workers: workers,
      processor: processor,
      settings: .init(
        policy: policy,
        files: terms.files,
        requests: part.requests,
        deadline: policy.limits.runtime.map { part.start + $0 },
        spans: spans,
        workersCommit: part.workersCommit,
        writer: part.writer,
        addStoreConditions: part.addStoreConditions,
        stopRequests: stop.listen(),
        host: terms.host
      )
    )
    let ending = await loop.run { event throws(BatchError) in try await observe(event) }
    defer { tellMessages() }
    // A handler that never returned keeps its context forever, so closing would wait forever.
    if !processor.hasLostWorkers {
      for worker in workers { await worker.close() }
    }
    try await part.settle()
    var (end, reason) = (ending, loop.stopReason)
    if ending == .completed, loop.failure == nil, let space = part.makeSpaceReturn() {
      (end, reason) = try await giveBack(by: space)
    }
    try await part.record(end, loop.failure.map(terms.phrase), because: reason)
  }

  private func observe(_ event: RunLogic.Event) async throws(BatchError) {
    switch event {
    case .committed(let chunk, let commit):
      try await part.committed(chunk, commit)
      tellMessages()
      tellProgress(every: terms.progressInterval)
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
