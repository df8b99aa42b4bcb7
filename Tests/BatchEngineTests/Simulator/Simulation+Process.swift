@testable import BatchEngine
import BatchIdentifiers
import BatchTestSupport

extension BatchError {
  /// The messages for a process that is gone.
  static let crashed = BatchError(.init(rawValue: "crashed"), "the process is no more")
  static let busy = BatchError(.busy, "the store is locked")
  static let away = BatchError(.retryLater, "what rows depend on is away")
  static let interrupted = BatchError(.interrupted, "the statement was interrupted")
  static let broken = BatchError(.init(rawValue: "broken"), "the disk is broken")
}

/// The life of a process, as `BatchRun` and `RunExecution` have it.
extension Simulation {
  // MARK: Beginning

  func boot(isBlind: Bool) async {
    guard !isOver else { return }
    // The lock beside the checkpoint.
    if !isBlind, processes.contains(where: \.isAlive) {
      note("another process is refused")
      occur(.refusal)
      return
    }
    isCancelled = false
    if processes.contains(where: \.isAlive) { occur(.takeover) }
    let process = SimulatedProcess(processes.count, workers: scenario.workers)
    processes.append(process)
    note(isBlind ? "begins, blind for others" : "begins", process)
    do throws(BatchError) {
      try await begin(process)
    } catch {
      close(process, because: error)
    }
  }

  private func begin(_ process: SimulatedProcess) async throws(BatchError) {
    guard file.exists else { return try await enter(process) }
    let progress = file.progress
    guard let ledger = store.content.ledger else {
      fail("there is a checkpoint, and the store does not know its run")
      return
    }
    if file.restores == store.restores {
      demand(ledger.covers(progress.done), "the file knows of more than the ledger")
    }
    let found = FoundRun(
      (),
      progress.state(beside: ledger, of: scenario.count),
      runID: nil,
      isRetry: progress.isRetry == true,
      at: nil
    )
    let request = RunRequest(retriesFailures: isRetryAsked && ledger.count >= scenario.count)
    switch try RunDecision(FoundRuns([found]), request, job: "job") {
    case .join where request.retriesFailures: return try await retry(process, ledger, progress)
    case .join: break
    case .conclude:
      process.ledger = ledger
      process.versionSeen = store.version
      occur(.secondEnd)
      return try tell(process, checkpoint(of: process, progress))
    case .begin, .nothing, .concludeFirst:
      // There is nothing left to do, and another run is not what is simulated.
      isOver = true
      return close(process)
    }
    try claim(process, flaw == .resumesFromFile ? progress.done : ledger)
    occur(.resumption)
    let session = RunSession(
      checkpoint: checkpoint(of: process, progress),
      done: process.ledger,
      isResumed: true,
      by: SimulatedLedger(simulation: self, process: process),
      on: host
    )
    await start(process, session)
  }

  private func claim(_ process: SimulatedProcess, _ ledger: DoneRanges) throws(BatchError) {
    var content = store.content
    content.owner = process.id
    store.commit(content, synced: scenario.isFull)
    process.versionSeen = store.version
    // It shows the file's state until it has seen what is durable.
    process.restores = file.restores
    process.ledger = ledger
    try mayCrash(process)
  }

  /// Tries the failed identifiers again, as `BatchRun.retryFailures` does.
  private func retry(
    _ process: SimulatedProcess,
    _ ledger: DoneRanges,
    _ progress: RunProgress
  ) async throws(BatchError) {
    let failed = store.content.failed
    let isFinished = progress.isFinished(beside: ledger, of: scenario.count)
    let checkpoint = checkpoint(of: process, progress)
    try claim(process, ledger)
    guard let retried = RetriedIdentifiers(failures(of: store.content), of: ledger) else {
      fail("what has failed is in no row of the ledger")
      return
    }
    guard !failed.isEmpty || !isFinished else {
      if progress.awaitsAcknowledgement { return try tell(process, checkpoint) }
      isOver = true
      return close(process)
    }
    process.retried = retried
    let session = RunSession(
      checkpoint: checkpoint,
      done: ledger,
      isResumed: true,
      retrying: retried,
      by: SimulatedLedger(simulation: self, process: process),
      on: host
    )
    process.session = session
    note("tries \(retried.positions) again", process)
    try session.reopen()
    await start(process, session)
  }

  /// Enters a new run: in the store, and once that is durable in a file.
  private func enter(_ process: SimulatedProcess) async throws(BatchError) {
    demand(store.content.ledger?.rows.isEmpty ?? true, "something is done, and there is no file")
    var content = store.content
    content.ledger = DoneRanges()
    content.owner = process.id
    store.commit(content, synced: false)
    process.versionSeen = store.version
    try mayCrash(process)
    store.synchronize()
    process.restores = store.restores
    try mayCrash(process)
    file.exists = true
    try mayCrash(process)
    let session = RunSession(
      checkpoint: checkpoint(of: process, RunProgress()),
      done: DoneRanges(),
      isResumed: false,
      by: SimulatedLedger(simulation: self, process: process),
      on: host
    )
    await start(process, session)
  }

  private func checkpoint(of process: SimulatedProcess, _ progress: RunProgress) -> Checkpoint {
    Checkpoint(
      list.packed,
      metadata: RunMetadata(
        run: "run",
        job: "job",
        startedAt: "",
        fingerprint: "",
        schema: [],
        ledger: .store
      ),
      progress: progress,
      failedAttempts: file.failedAttempts
    ) { [unowned self, unowned process] entry, sync throws(BatchError) in
      try append(entry, sync, by: process)
    }
  }

  private func start(_ process: SimulatedProcess, _ session: RunSession) async {
    process.session = session
    process.start = now
    process.restoresAtStart = store.restores
    var logic = RunLogic(
      remaining: session.remaining,
      sizing: ChunkSizing(scenario.policy, startingAt: session.meanChunkSize),
      policy: scenario.policy,
      setting: .init(workers: scenario.workers, inOrder: scenario.inOrder, logRemedy: ""),
      generator: SeededGenerator(seed: UInt64(choices.below(100)))
    )
    // The last processes have all the time that they need, so that it ends.
    if let runtime = scenario.policy.limits.runtime, processes.count < 4 {
      schedule(.answer(.outOfTime), after: Self.microseconds(runtime), for: process)
    }
    let effects = logic.begin(at: moment(of: process))
    process.logic = logic
    perform(effects, process)
    await account(process)
  }

  /// How things stand.
  private func moment(of process: SimulatedProcess) -> RunLogic.Moment {
    var moment = RunLogic.Moment(now: .microseconds(now - process.start), policy: policy)
    moment.conditions = conditions
    moment.isCancelled = isCancelled
    moment.isGraceOver = process.graceEnd.map { $0 <= now } ?? false
    return moment
  }

  // MARK: Answers and effects

  func hear(_ answer: RunLogic.Answer, _ process: SimulatedProcess) async {
    switch answer {
    case .tick, .look: break
    default: note("hears \(Self.words(for: answer))", process)
    }
    switch answer {
    case .prepared(let chunk, let worker, let end, _, _):
      let reached = chunk.lowerBound..<end
      process.busyWorkers.remove(worker)
      process.outstanding.removeAll { $0 == chunk }
      process.outstanding.append(reached)
      process.ready.insert(reached)
    case .failedToPrepare(let chunk, let worker, let error, _):
      process.busyWorkers.remove(worker)
      failed(chunk, error, process)
    case .committed(let chunk, _):
      process.outstanding.removeAll { $0 == chunk }
      process.tries[chunk.lowerBound] = nil
    case .failedToCommit(let chunk, let error): failed(chunk, error, process)
    case .outOfTime:
      occur(.endOfTime)
      beginGrace(process)
    case .stop: beginGrace(process)
    case .tick: await demandProgress(process)
    default: break
    }
    tell(answer, to: process)
    await account(process)
  }

  private func tell(_ answer: RunLogic.Answer, to process: SimulatedProcess) {
    guard process.isAlive, process.ending == nil || isFailure(answer) else { return }
    guard let effects = process.logic?.hear(answer, at: moment(of: process)) else { return }
    perform(effects, process)
  }

  private static func words(for answer: RunLogic.Answer) -> String {
    switch answer {
    case .prepared(let chunk, let worker, let end, _, _):
      "that worker \(worker) has prepared \(chunk.lowerBound..<end) of \(chunk)"
    case .failedToPrepare(let chunk, _, let error, _):
      "that \(chunk) is not prepared: \(error.message)"
    case .committed(let chunk, _): "that \(chunk) is committed"
    case .failedToCommit(let chunk, let error): "that \(chunk) is not committed: \(error.message)"
    default: "\(answer)"
    }
  }

  private func isFailure(_ answer: RunLogic.Answer) -> Bool {
    if case .failed = answer { true } else { false }
  }

  private func failed(_ chunk: Range<Int>, _ error: BatchError, _ process: SimulatedProcess) {
    process.outstanding.removeAll { $0 == chunk }
    if error.code == .interrupted, let end = process.graceEnd, end <= now {
      occur(.interrupt)
      return
    }
    process.tries[chunk.lowerBound, default: 0] += 1
    if !error.isTransient
      || process.tries[chunk.lowerBound, default: 0] > scenario.policy.retry.limit
    {
      process.mayFail = true
      occur(.failure)
    }
  }

  /// Sees that a process which is not held waits for anything but time.
  private func demandProgress(_ process: SimulatedProcess) async {
    if let end = process.graceEnd {
      demand(now < end + 300_000, "it does not end though it was told to stop")
    }
    guard process.logic?.held == nil else { return }
    let waits = queue.contains { scheduled in
      guard scheduled.process == process.id else { return false }
      if case .answer(.outOfTime) = scheduled.happening { return false }
      return true
    }
    demand(waits, "nothing goes on, and the run has not ended")
  }

  private func perform(_ effects: [RunLogic.Effect], _ process: SimulatedProcess) {
    let isHeld = process.logic?.held != nil
    for effect in effects {
      switch effect {
      case .prepare, .commit: demand(!isHeld, "it is held, and goes on")
      default: break
      }
      switch effect {
      case .prepare(let chunk, let worker, let isLastTry):
        prepare(chunk, worker, isLastTry, process)
      case .commit(let chunk):
        note("commits \(chunk)", process)
        demand(process.ready.remove(chunk) != nil, "\(chunk) is committed, and was not prepared")
        process.waiting.append(chunk)
        beginTransaction(process)
      case .discard(let chunk):
        note("discards \(chunk)", process)
        demand(process.ready.remove(chunk) != nil, "\(chunk) is dropped, and was not prepared")
        process.outstanding.removeAll { $0 == chunk }
      case .answer(let answer, let delay):
        schedule(.answer(answer), after: Self.microseconds(delay), for: process)
      case .claim, .close: fail("it asks for spans, and nobody grants any")
      case .emptyLog: schedule(.emptyLog, after: moment(upTo: 20), for: process)
      case .beginGrace: beginGrace(process)
      case .tell(let event): process.events.append(event)
      case .end(let ending): process.ending = ending
      }
    }
  }

  private func prepare(
    _ chunk: Range<Int>,
    _ worker: Int,
    _ isLastTry: Bool,
    _ process: SimulatedProcess
  ) {
    note("prepares \(chunk) by worker \(worker)", process)
    demand(process.busyWorkers.insert(worker).inserted, "worker \(worker) has a chunk already")
    demand(!process.outstanding.contains { $0.overlaps(chunk) }, "\(chunk) is handed out twice")
    demand(
      process.retried != nil || !process.ledger.overlaps(chunk),
      "\(chunk) is handed out, and is done"
    )
    demand(process.outstanding.count < process.mostInFlight, "too much is in flight")
    process.outstanding.append(chunk)
    demand(
      isLastTry == (process.tries[chunk.lowerBound, default: 0] >= scenario.policy.retry.limit),
      "\(chunk) is not told which try is its last"
    )
    var time = moment(upTo: 30)
    if choices.once(in: 24) { time += 100 * moment(upTo: 20) }
    let answer: RunLogic.Answer
    if goesWrong(oncePer: 20) {
      let error = choices.one(of: [BatchError.busy, .busy, .busy, .broken, .interrupted])
      answer = .failedToPrepare(chunk, worker: worker, error, holding: 0)
    } else if !isLastTry, choices.once(in: 20) {
      occur(.postponement)
      let held = choices.below(chunk.count) * scenario.rowBytes
      answer = .failedToPrepare(chunk, worker: worker, .away, holding: held)
    } else {
      // It may hand over the first positions only.
      let count = chunk.count - (choices.once(in: 8) ? choices.below(chunk.count) : 0)
      if count < chunk.count { occur(.earlyEnd) }
      answer = .prepared(
        chunk,
        worker: worker,
        upTo: chunk.lowerBound + count,
        holding: count * scenario.rowBytes,
        took: .microseconds(time)
      )
    }
    schedule(.answer(answer), after: time, for: process)
  }

  // MARK: Events

  /// Accounts for the events so far, and ends the process if its run has ended.
  private func account(_ process: SimulatedProcess) async {
    let happened = process.events
    process.events.removeAll()
    for event in happened {
      guard process.isAlive, violation == nil else { return }
      do throws(BatchError) {
        try await observe(event, process)
      } catch {
        note("cannot account for \(event): \(error.message)", process)
        tell(.failed(error), to: process)
      }
    }
    guard process.isAlive, violation == nil, let ending = process.ending else { return }
    await conclude(process, ending)
  }

  private func observe(
    _ event: RunLogic.Event,
    _ process: SimulatedProcess
  ) async throws(BatchError) {
    guard let session = process.session else { return }
    let interval = scenario.policy.checkpoint.interval
    switch event {
    case .committed(let chunk, let commit):
      let isNew = process.retried != nil || !session.done.overlaps(chunk)
      guard demand(isNew, "\(chunk) is committed twice") else { return }
      session.committed(chunk, commit)
      demandPace(chunk, process)
      demand(session.done.count <= scenario.count, "more is done than there is")
      if session.isDue(after: interval) {
        try await session.recordProgress()
      }
    case .held(let hold):
      note("is held: \(hold.reason)", process)
      occur(hold.isPace ? .pace : hold.cause == .maximumWAL ? .longLog : .hold)
      _ = try session.hold(hold)
    case .released:
      note("is released", process)
      try session.release()
    case .looked: try session.pass(recordingEvery: interval)
    case .retrying(let retry):
      occur(.retry)
      demand(retry.attempt <= retry.limit, "\(retry.positions) is tried too often")
    case .message, .granted, .lost: break
    }
  }

  /// Checks that a process is no faster than allowed, unless somebody has changed that.
  private func demandPace(_ chunk: Range<Int>, _ process: SimulatedProcess) {
    process.committedCount += chunk.count
    process.largestChunk = max(process.largestChunk, chunk.count)
    guard let rate = scenario.policy.throttle.identifiersPerSecond, !paceWasChanged else { return }
    // Lost time is made up for by a tenth of a second.
    let most = rate * (Double(now - process.start) / 1e6 + 0.1) + 2 * Double(process.largestChunk)
    demand(
      Double(process.committedCount) <= most,
      "it does \(process.committedCount), faster than \(rate) a second"
    )
  }

  // MARK: Ends

  private func conclude(
    _ process: SimulatedProcess,
    _ ending: RunStateMachine.Ending
  ) async {
    guard let session = process.session, let logic = process.logic else { return }
    note("has ended: \(ending)", process)
    queue.removeAll { $0.process == process.id }
    demand(
      process.outstanding.isEmpty && process.ready.isEmpty && process.waiting.isEmpty,
      "it has ended, and \(process.outstanding) is going on"
    )
    demand(session.done == process.ledger, "what is committed was not told")
    do throws(BatchError) {
      switch ending {
      case .completed:
        demand(session.isComplete, "it is completed, and \(session.remaining) is left")
        demandAllTried(process)
        try await complete(process, session)
        try tell(process, session.checkpoint)
      case .stopped:
        demand(process.mayStop, "it has stopped, and nobody has asked for it")
        try await session.stop(because: logic.stopReason)
        close(process)
      case .failed:
        demand(process.mayFail && logic.failure != nil, "it has failed for no reason")
        try await session.record(.failed, failure: logic.failure)
        close(process)
      }
    } catch {
      if process.isAlive { session.fail(error) }
      close(process, because: error)
    }
  }

  /// Checks that a retry of failed identifiers has retried all.
  private func demandAllTried(_ process: SimulatedProcess) {
    // A backup with the same ledger cannot be told from what was left, though it counts fewer tries.
    guard let retried = process.retried, process.restoresAtStart == store.restores else { return }
    // A process that has taken over the run since may have retried them before this one learns of
    // its own retry.
    let isTakenOver = store.content.owner != process.id
    for (position, attempt) in zip(retried.positions, retried.attempts) {
      let attempts = store.content.failed[position] ?? attempt + 1
      let isOneMore = attempts == attempt + 1 || isTakenOver && attempts > attempt
      demand(isOneMore, "identifier \(position) was not tried again")
    }
    occur(.secondTry)
  }

  private func complete(
    _ process: SimulatedProcess,
    _ session: RunSession
  ) async throws(BatchError) {
    var attempt = 0
    while true {
      do throws(BatchError) {
        return try await session.complete()
      } catch {
        attempt += 1
        guard error.isTransient, attempt <= scenario.policy.retry.limit else { throw error }
      }
    }
  }

  /// Tells the caller that the run is finished, and notes that.
  private func tell(
    _ process: SimulatedProcess,
    _ checkpoint: Checkpoint
  ) throws(BatchError) {
    try verify(process, store.content)
    note("tells the end", process)
    demand(!store.content.fates.contains(.none), "an identifier has no outcome")
    demand(
      file.failedAttempts == store.content.failed || file.restores != store.restores,
      "the file says that \(file.failedAttempts.keys.sorted()) have failed"
    )
    try mayCrash(process)
    try checkpoint.acknowledge()
    occur(.completion)
    if !isRetryAsked, !store.content.failed.isEmpty, choices.once(in: 2) {
      note("somebody asks for the failed identifiers to be tried again")
      isRetryAsked = true
      // For some of them the action works by now.
      poison = Set(poison.sorted().filter { _ in choices.once(in: 2) })
    } else {
      isOver = true
    }
    close(process)
  }

  /// Ends a process, after which another takes its place if there is something left to do.
  func close(_ process: SimulatedProcess, because error: BatchError? = nil) {
    if let error { note("is over: \(error.message)", process) }
    process.isAlive = false
    queue.removeAll { $0.process == process.id }
    // Some identifiers fail whenever they are tried; others may succeed after a few retries.
    if process.isPoisoned {
      occur(.tooManyFailures)
      if faultsLeft == 0 { isOver = true }
      faultsLeft = max(0, faultsLeft - 1)
    }
    let isAwaited = queue.contains { if case .boot = $0.happening { true } else { false } }
    guard !isOver, !isAwaited, !processes.contains(where: \.isAlive) else { return }
    schedule(.boot(isBlind: false), after: moment(upTo: 100))
  }
}
