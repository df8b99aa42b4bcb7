package import BatchIdentifiers

/// The logic of a run's loop: decides what follows from each answer, from the throttle, from the
/// delays before retries, and from an operator's requests.
///
/// It has no side effects and no hidden inputs. ``RunLoop`` performs its effects with tasks and a
/// clock; a test can do without either, a million times. A ``RunStateMachine`` decides which chunk
/// is next.
package struct RunLogic {
  /// The result of an effect, or an external event.
  package enum Answer: Sendable {
    /// A worker has prepared its chunk up to a position, and holds this many bytes of it.
    case prepared(Range<Int>, worker: Int, upTo: Int, holding: Int, took: Duration)
    /// A worker could not prepare its chunk; this many bytes of a partial result are kept.
    case failedToPrepare(Range<Int>, worker: Int, BatchError, holding: Int)
    case committed(Range<Int>, Commit)
    case failedToCommit(Range<Int>, BatchError)
    case claimed(SpanClaim)
    case failedToClaim(BatchError)
    /// The delay before claiming a span again is over.
    case claimAgain
    /// A span was recorded as done.
    case closed(Range<Int>)
    case failedToClose(Range<Int>, BatchError)
    /// The delay before recording a span again is over.
    case closeAgain(Range<Int>)
    /// The delay before retrying a chunk is over.
    case rested(Range<Int>)
    /// A pace allows the run to continue.
    case look
    /// A tick of the clock, so that the conditions are checked.
    case tick
    /// The log was emptied, and this many bytes remain.
    case emptiedLog(Int)
    /// Something other than a chunk failed.
    case failed(BatchError)
    /// A stop was requested.
    case stop
    case outOfTime
  }

  /// The circumstances under which an answer is handled.
  package struct Moment {
    /// Counted from the beginning of the run.
    package var now: Duration
    /// Includes an operator's changes.
    package var policy: RunPolicy
    package var conditions = RunThrottle.Conditions()
    package var isCancelled = false
    /// Whether the grace period after a stop is over, so that statements are interrupted.
    package var isGraceOver = false
    /// Why an operator's request is ignored, if not reported yet.
    package var complaint: String?

    package init(now: Duration, policy: RunPolicy) {
      self.now = now
      self.policy = policy
    }
  }

  /// The effects are performed in order.
  package enum Effect {
    /// Tell a worker to prepare a chunk; answer with `prepared` or `failedToPrepare`.
    case prepare(Range<Int>, worker: Int, isLastTry: Bool)
    /// Tell the writer to commit a prepared chunk; answer with `committed` or `failedToCommit`.
    case commit(Range<Int>)
    case discard(Range<Int>)
    /// Claim a span that is not among these, which the run holds; answer with `claimed` or
    /// `failedToClaim`.
    case claim(besides: [Range<Int>])
    /// Record a span as done; answer with `closed` or `failedToClose`.
    case close(Range<Int>)
    case answer(Answer, after: Duration)
    /// Tell the writer to empty its log; answer with `emptiedLog` or `failed`.
    case emptyLog
    /// Limit the remaining time of chunks in flight.
    case beginGrace
    /// Report an event before the next answer is handled.
    case tell(Event)
    /// Everything has ended; no further answer is handled.
    case end(RunStateMachine.Ending)
  }

  package enum Event {
    case committed(Range<Int>, Commit)
    /// There is nothing to do from this position on.
    case ended(Int)
    case retrying(ChunkRetry)
    /// This process now holds the span.
    case granted(Range<Int>)
    /// Another process now holds the span.
    case lost(Range<Int>)
    case held(RunThrottle.Hold)
    case released
    /// Settings have changed.
    case tuned(RunPolicy.Throttle)
    /// Somebody has asked for something; the same may be told again.
    case asked([OperatorAction])
    case message(String)
    /// A tick of the clock, and the chunk that takes longest, if that is unusually long.
    case looked(StalledChunk?)
  }

  /// What the logic must know about the code that performs its effects.
  package struct Setting {
    /// The maximum number of chunks that are prepared at once.
    package var workers: Int
    package var inOrder: Bool
    /// The time limit for external code per chunk; nil if no such code is called.
    package var handlerTimeLimit: Duration?
    /// How to fix a log that cannot be emptied; nil if no log is written.
    package var logRemedy: String?
    /// The first positions of units that chunks must not split, ascending; empty if there are none.
    package var units: [Int]
    /// Whether each worker commits its own chunks; otherwise one writer commits all.
    package var workersCommit: Bool
    /// Whether further positions are granted during the run.
    package var isGranted: Bool

    package init(
      workers: Int,
      inOrder: Bool = false,
      handlerTimeLimit: Duration? = nil,
      logRemedy: String? = nil,
      units: [Int] = [],
      workersCommit: Bool = false,
      isGranted: Bool = false
    ) {
      self.workers = workers
      self.inOrder = inOrder
      self.handlerTimeLimit = handlerTimeLimit
      self.logRemedy = logRemedy
      self.units = units
      self.workersCommit = workersCommit
      self.isGranted = isGranted
    }
  }

  /// Why a run stops whose time is over.
  static let outOfTime = "the time of limits.runtime is over"

  private let setting: Setting
  private let backoff: Backoff
  private var generator: any RandomNumberGenerator
  private var machine: RunStateMachine
  /// The policy at the last answer.
  private var policy: RunPolicy
  private var throttle: RunThrottle
  /// The errors of chunks waiting for a retry, by first position.
  private var errors: [Int: BatchError] = [:]
  /// The consecutive failures to claim a span, and to record one as done, by first position.
  private var failedClaims = 0
  private var failedCloses: [Int: Int] = [:]
  package private(set) var held: RunThrottle.Hold?
  /// Whether an answer is already scheduled for when the pace allows the run to continue.
  private var willLook = false
  /// Whether a lack of room for some workers was reported.
  private var hasToldRoom = false
  /// Whether the log may be emptied: once per tick, and when its length begins to hold the run.
  private var mayEmptyLog = false
  private var isCancelled = false
  /// Whether a chunk was begun, and whether the run is claiming a span and stops after that.
  private var hasBegun = false
  private var isClaiming = false
  private var stopsWhenClaimed = false
  private var hasEnded = false
  /// What chunks in flight are busy with, by first position, and since when.
  private var steps: [Int: (positions: Range<Int>, phase: StalledChunk.Phase, since: Duration)] =
    [:]
  private var now = Duration.zero
  private var lastCommit = Duration.zero
  /// The effects not yet returned.
  private var effects: [Effect] = []
  package private(set) var failure: BatchError?
  /// Why the run was stopped, if not by request.
  package private(set) var stopReason: String?

  /// Makes the logic for the remaining positions of a list; the generator randomizes delays.
  package init(
    remaining: [Range<Int>],
    sizing: ChunkSizing,
    policy: RunPolicy,
    setting: Setting,
    generator: any RandomNumberGenerator = SystemRandomNumberGenerator()
  ) {
    self.setting = setting
    self.policy = policy
    self.generator = generator
    backoff = Backoff(policy.retry)
    throttle = RunThrottle(policy.throttle, logRemedy: setting.logRemedy ?? "")
    var limits = RunStateMachine.Limits(
      workers: setting.workers,
      inOrder: setting.inOrder,
      retries: backoff.limit,
      workersCommit: setting.workersCommit
    )
    if throttle.setsPace { limits.committing = 1 }
    limits.units = setting.units
    limits.isGranted = setting.isGranted
    machine = RunStateMachine(remaining: remaining, sizing: sizing, limits: limits)
  }

  // MARK: Inputs

  package mutating func begin(at moment: Moment) -> [Effect] {
    if let complaint = moment.complaint { tell(.message(complaint)) }
    tick()
    regulate(moment)
    perform(machine.start())
    return handOver()
  }

  package mutating func hear(_ answer: Answer, at moment: Moment) -> [Effect] {
    now = moment.now
    if let complaint = moment.complaint { tell(.message(complaint)) }
    switch answer {
    case .prepared(let chunk, let worker, let end, let byteCount, let duration):
      steps[chunk.lowerBound] = nil
      if end == chunk.lowerBound { tell(.ended(end)) }
      regulate(moment)
      perform(
        machine.prepared(chunk, worker: worker, upTo: end, holding: byteCount, took: duration)
      )
    case .failedToPrepare(let chunk, let worker, let error, let byteCount):
      steps[chunk.lowerBound] = nil
      note(error, of: chunk)
      // Once the grace period of a stop is over, a handler that was ended or is late is not at
      // fault.
      let isLate = moment.isGraceOver && [.handlerFailed, .handlerTimeout].contains(error.code)
      let isTransient = error.isTransient || isExcused(error, moment) || isLate
      settle(
        chunk,
        machine.failedToPrepare(
          chunk,
          worker: worker,
          holding: byteCount,
          isTransient: isTransient
        )
      )
    case .committed(let chunk, let commit):
      steps[chunk.lowerBound] = nil
      lastCommit = moment.now
      tell(.committed(chunk, commit))
      errors[chunk.lowerBound] = nil
      throttle.committed(chunk.count, took: commit.duration, at: moment.now)
      throttle.logBytes = commit.logBytes
      regulate(moment)
      perform(machine.committed(chunk, took: commit.duration))
    case .failedToCommit(let chunk, let error) where error.code == .leaseLost:
      steps[chunk.lowerBound] = nil
      lose(chunk)
    case .failedToCommit(let chunk, let error):
      steps[chunk.lowerBound] = nil
      note(error, of: chunk)
      let isTransient = error.isTransient || isExcused(error, moment)
      settle(chunk, machine.failedToCommit(chunk, isTransient: isTransient))
    case .rested(let chunk): perform(machine.rested(chunk))
    case .claimed(let claim): hear(claim)
    case .failedToClaim(let error):
      failedClaims += 1
      claimed()
      if let delay = rest(before: failedClaims, error) {
        claim(after: delay)
      } else if !isExcused(error, moment) {
        fail(error)
      }
    case .claimAgain: perform(machine.claimAgain())
    case .closed(let span): closed(span)
    case .failedToClose(let span, let error) where error.code == .leaseLost: closed(span)
    case .failedToClose(let span, let error):
      let attempt = failedCloses[span.lowerBound, default: 0] + 1
      failedCloses[span.lowerBound] = attempt
      if let delay = rest(before: attempt, error) {
        effects.append(.answer(.closeAgain(span), after: delay))
      } else if !isExcused(error, moment) {
        fail(error)
      }
    case .closeAgain(let span): effects.append(.close(span))
    case .look:
      willLook = false
      regulate(moment)
    case .tick:
      mayEmptyLog = true
      regulate(moment)
      tell(.looked(stalled))
      tick()
    case .emptiedLog(let bytes):
      throttle.emptiedLog(to: bytes)
      regulate(moment)
    case .failed(let error):
      if !isExcused(error, moment) { fail(error) }
    case .stop: perform(machine.stop())
    case .outOfTime:
      stopReason = stopReason ?? Self.outOfTime
      // However short the time, a chunk is done: a run with less time than a claim takes would
      // never end.
      if isClaiming, !hasBegun { stopsWhenClaimed = true } else { perform(machine.stop()) }
    }
    emptyLogIfQuiet()
    return handOver()
  }

  private mutating func handOver() -> [Effect] {
    defer { effects.removeAll() }
    return effects
  }

  private mutating func tell(_ event: Event) { effects.append(.tell(event)) }

  private var stalled: StalledChunk? {
    guard let oldest = steps.values.min(by: { $0.since < $1.since }) else { return nil }
    // Chunks that one writer commits wait for one another.
    let isInTurn = oldest.phase == .committing && !setting.workersCommit
    let since = isInTurn ? max(oldest.since, lastCommit) : oldest.since
    guard now - since >= StalledChunk.limit else { return nil }
    return StalledChunk(positions: oldest.positions, phase: oldest.phase, time: now - since)
  }

  /// Schedules the next check of the conditions, even if a chunk takes long.
  private mutating func tick() {
    effects.append(.answer(.tick, after: RunThrottle.lookInterval))
  }

  // MARK: Failures

  /// Whether the end of the grace period caused the error: the chunk was undone and is not at
  /// fault.
  private func isExcused(_ error: BatchError, _ moment: Moment) -> Bool {
    moment.isGraceOver && error.code == .interrupted
  }

  private mutating func fail(_ error: BatchError) {
    failure = failure ?? error
    perform(machine.fail())
  }

  /// The delay before a retry of anything but a chunk; nil if it is not retried.
  private mutating func rest(before attempt: Int, _ error: BatchError) -> Duration? {
    guard error.isTransient, attempt <= backoff.limit else { return nil }
    return backoff.delay(before: attempt, using: &generator)
  }

  private mutating func note(_ error: BatchError, of chunk: Range<Int>) {
    var error = error
    let positions = "positions \(chunk.lowerBound) to \(chunk.upperBound - 1)"
    error.place = error.place.map { "\($0): \(positions)" } ?? positions
    errors[chunk.lowerBound] = error
  }

  /// Performs the actions after a failure, and keeps the error if it ends the run.
  private mutating func settle(_ chunk: Range<Int>, _ actions: [RunStateMachine.Action]) {
    if machine.hasFailed, failure == nil {
      failure = errors[chunk.lowerBound]
      let tries = machine.tries(of: chunk)
      if tries > 1 { failure?.message += " (tried \(tries) times)" }
    }
    perform(actions)
  }

  // MARK: Spans

  private mutating func hear(_ answer: SpanClaim) {
    failedClaims = 0
    switch answer {
    case .granted(let span, let parts):
      tell(.granted(span))
      perform(machine.grant(span, remaining: parts))
    case .noneFree(let delay): claim(after: delay)
    case .exhausted: perform(machine.exhausted())
    }
    claimed()
  }

  private mutating func claimed() {
    isClaiming = false
    if stopsWhenClaimed { perform(machine.stop()) }
    stopsWhenClaimed = false
  }

  private mutating func claim(after delay: Duration) {
    perform(machine.claimLater())
    effects.append(.answer(.claimAgain, after: delay))
  }

  private mutating func closed(_ span: Range<Int>) {
    failedCloses[span.lowerBound] = nil
    perform(machine.closed(span))
  }

  /// Gives up the span of a chunk.
  private mutating func lose(_ chunk: Range<Int>) {
    errors[chunk.lowerBound] = nil
    if let span = machine.openSpan(of: chunk) {
      errors = errors.filter { !span.contains($0.key) }
      tell(.lost(span))
    }
    perform(machine.lost(chunk))
  }

  // MARK: The throttle

  /// Holds or releases the run according to the throttle.
  private mutating func regulate(_ moment: Moment) {
    obey(moment)
    makeRoom(moment.conditions.workers)
    if let reason = throttle.end(moment.conditions) {
      if stopReason == nil { effects.append(.beginGrace) }
      stopReason = stopReason ?? reason
      perform(machine.stop())
      return
    }
    guard let hold = throttle.hold(at: moment.now, moment.conditions) else {
      guard held != nil else { return }
      held = nil
      tell(.released)
      perform(machine.release())
      return
    }
    if hold.cause != held?.cause { mayEmptyLog = true }
    if hold.isKnown, hold.reason != held?.reason || held?.isKnown == false { tell(.held(hold)) }
    held = hold
    perform(machine.hold())
    guard !willLook, hold.duration < RunThrottle.lookInterval else { return }
    willLook = true
    effects.append(.answer(.look, after: hold.duration))
  }

  /// Applies an operator's requests.
  private mutating func obey(_ moment: Moment) {
    if moment.isCancelled, !isCancelled {
      isCancelled = true
      stopReason = stopReason ?? RunSummary.cancellation
      effects.append(.beginGrace)
      perform(machine.stop())
    }
    guard moment.policy != policy else { return }
    policy = moment.policy
    throttle.settings = policy.throttle
    tell(.tuned(policy.throttle))
    let unpaced = RunStateMachine.Limits(
      workers: setting.workers,
      inOrder: setting.inOrder,
      workersCommit: setting.workersCommit
    )
    machine.tune(
      ChunkSizing(
        policy,
        preparedWithin: setting.handlerTimeLimit,
        startingAt: machine.chunkSize,
        bytes: machine.chunkBytes
      ),
      committing: throttle.setsPace ? 1 : unpaced.committing
    )
  }

  /// Uses only as many workers as the store has room for.
  private mutating func makeRoom(_ room: Int?) {
    let workers = max(1, min(room ?? setting.workers, setting.workers))
    machine.allow(workers: workers)
    guard workers < setting.workers, !hasToldRoom else { return }
    hasToldRoom = true
    tell(.message("the database has room for \(workers) of \(setting.workers) workers for now"))
  }

  /// Empties the log if its length holds the run and none of the run's readers is active.
  private mutating func emptyLogIfQuiet() {
    guard held?.cause == .maximumWAL, mayEmptyLog, machine.isQuiet, !hasEnded,
      setting.logRemedy != nil
    else { return }
    mayEmptyLog = false
    effects.append(.emptyLog)
  }

  // MARK: Actions

  private mutating func perform(_ actions: [RunStateMachine.Action]) {
    for action in actions {
      switch action {
      case .prepare(let chunk, let worker):
        hasBegun = true
        steps[chunk.lowerBound] = (chunk, .preparing, now)
        let isLastTry = machine.tries(of: chunk) >= backoff.limit
        effects.append(.prepare(chunk, worker: worker, isLastTry: isLastTry))
      case .commit(let chunk):
        steps[chunk.lowerBound] = (chunk, .committing, now)
        effects.append(.commit(chunk))
      case .rest(let chunk, let attempt): rest(chunk, before: attempt)
      case .discard(let chunk): effects.append(.discard(chunk))
      case .claim(let own):
        isClaiming = true
        effects.append(.claim(besides: own))
      case .close(let span): effects.append(.close(span))
      case .end(let ending):
        hasEnded = true
        effects.append(.end(ending))
      }
    }
  }

  private mutating func rest(_ chunk: Range<Int>, before attempt: Int) {
    guard let error = errors[chunk.lowerBound] else {
      preconditionFailure("a resting chunk has not failed")
    }
    let delay = backoff.delay(before: attempt, using: &generator)
    tell(
      .retrying(
        ChunkRetry(
          positions: chunk,
          error: error,
          attempt: attempt,
          limit: backoff.limit,
          delay: delay
        )
      )
    )
    effects.append(.answer(.rested(chunk), after: delay))
  }
}
