package import BatchIdentifiers

/// The logic of a loop: what follows from each answer, with the throttle, the rests before further tries
/// and what an operator asks for.
///
/// It performs nothing and looks at nothing. ``RunLoop`` performs its effects with tasks and a clock; a
/// test can do so with neither, a million times. Which chunk is whose turn it leaves to a
/// ``RunStateMachine``.
package struct RunLogic {
  /// What has come of an effect, or from outside.
  package enum Answer: Sendable {
    /// A worker has prepared its chunk up to a position, and holds so many bytes of it.
    case prepared(Range<Int>, worker: Int, upTo: Int, holding: Int, took: Duration)
    /// A worker could not prepare its chunk, and so many bytes are kept of what it could.
    case failedToPrepare(Range<Int>, worker: Int, BatchError, holding: Int)
    case committed(Range<Int>, Commit)
    case failedToCommit(Range<Int>, BatchError)
    case claimed(SpanClaim)
    case failedToClaim(BatchError)
    /// The run has rested before it asks for a span again.
    case claimAgain
    /// It is recorded that all of a span is done.
    case closed(Range<Int>)
    case failedToClose(Range<Int>, BatchError)
    /// The run has rested before it tries again to record that all of a span is done.
    case closeAgain(Range<Int>)
    /// A chunk has rested before it is tried again.
    case rested(Range<Int>)
    /// A pace lets the run go on.
    case look
    /// Time goes by.
    case tick
    /// The log was emptied, or is still so many bytes long.
    case emptiedLog(Int)
    /// Something beside the chunks went wrong.
    case failed(BatchError)
    /// Somebody asks the run to stop.
    case stop
    case outOfTime
  }

  /// How things stand when an answer is heard.
  package struct Moment {
    /// The time since the run began.
    package var now: Duration
    /// What the job wants, as an operator has changed it.
    package var policy: RunPolicy
    package var conditions = RunThrottle.Conditions()
    /// Whether an operator has asked for the end of the run.
    package var isCancelled = false
    /// Whether statements are interrupted, since the run was told to stop long ago.
    package var isGraceOver = false
    /// Why the operator is not obeyed, if nobody was told yet.
    package var complaint: String?

    package init(now: Duration, policy: RunPolicy) {
      self.now = now
      self.policy = policy
    }
  }

  /// What is to be done, in this order.
  package enum Effect {
    /// Have a worker prepare a chunk, for the last time if that fails; answer with `prepared` or
    /// `failedToPrepare`.
    case prepare(Range<Int>, worker: Int, isLastTry: Bool)
    /// Have the writer commit what was prepared; answer with `committed` or `failedToCommit`.
    case commit(Range<Int>)
    /// Drop what was prepared.
    case discard(Range<Int>)
    /// Ask for a span besides these, which the run has something of; answer with `claimed` or
    /// `failedToClaim`.
    case claim(besides: [Range<Int>])
    /// Record that all of a span is done; answer with `closed` or `failedToClose`.
    case close(Range<Int>)
    /// Give the answer once the time has gone by.
    case answer(Answer, after: Duration)
    /// Have the writer empty its log; answer with `emptiedLog` or `failed`.
    case emptyLog
    /// From here on chunks in flight have a bounded time to end.
    case beginGrace
    /// Tell what has happened, before the next answer is heard.
    case tell(Event)
    /// Nothing goes on any more, and no further answer is heard.
    case end(RunStateMachine.Ending)
  }

  /// What happens in a run.
  package enum Event {
    case committed(Range<Int>, Commit)
    case retrying(ChunkRetry)
    /// A span is the process's own.
    case granted(Range<Int>)
    /// A span is another process's by now.
    case lost(Range<Int>)
    case held(RunThrottle.Hold)
    case released
    case message(String)
    /// Nothing but that time goes by.
    case looked
  }

  /// What the logic has to know of who performs its effects.
  package struct Setting {
    /// How many chunks may be prepared at once.
    package var workers: Int
    /// Whether chunks must be committed in the order of their positions.
    package var inOrder: Bool
    /// How long somebody else's code has for a chunk; nil if a chunk is prepared without any.
    package var patience: Duration?
    /// What there is to do about a log that cannot be emptied; nil if no log is written.
    package var logRemedy: String?
    /// The first positions of what no chunk is cut within, ascending; none if chunks may end anywhere.
    package var units: [Int]
    /// How many chunks are committed at once, each in a transaction of its own; nil where one writer shares
    /// its transactions between them.
    package var writers: Int?
    /// Whether positions are granted while the run goes on, beside those that it begins with.
    package var isGranted: Bool

    package init(
      workers: Int,
      inOrder: Bool = false,
      patience: Duration? = nil,
      logRemedy: String? = nil,
      units: [Int] = [],
      writers: Int? = nil,
      isGranted: Bool = false
    ) {
      self.workers = workers
      self.inOrder = inOrder
      self.patience = patience
      self.logRemedy = logRemedy
      self.units = units
      self.writers = writers
      self.isGranted = isGranted
    }
  }

  private let setting: Setting
  private let backoff: Backoff
  private var generator: any RandomNumberGenerator
  private var machine: RunStateMachine
  /// What the job wants, as it was at the last look.
  private var policy: RunPolicy
  private var throttle: RunThrottle
  /// The errors of chunks that are tried again, by their first positions.
  private var errors: [Int: BatchError] = [:]
  /// How often in turn no span could be asked for, and how often it could not be recorded that all of one
  /// is done, by its first position.
  private var failedClaims = 0
  private var failedCloses: [Int: Int] = [:]
  /// What holds the run.
  package private(set) var held: RunThrottle.Hold?
  /// Whether the answer is on its way that a pace lets the run go on, which is before the next tick.
  private var willLook = false
  /// Whether the log may be emptied: once each time that its length was looked at.
  private var mayEmptyLog = false
  private var isCancelled = false
  private var hasEnded = false
  /// What is to be done and was not handed over yet.
  private var effects: [Effect] = []
  /// The first error, which ended the run.
  package private(set) var failure: BatchError?
  /// Why the run was stopped, if not by a request to stop.
  package private(set) var stopReason: String?

  /// The logic of a run over the remaining positions of a list; the generator makes the random part of
  /// rests.
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
      writers: setting.writers
    )
    if throttle.setsPace { limits.committing = 1 }
    limits.units = setting.units
    limits.isGranted = setting.isGranted
    machine = RunStateMachine(remaining: remaining, sizing: sizing, limits: limits)
  }

  // MARK: Inputs

  /// Begins.
  package mutating func begin(at moment: Moment) -> [Effect] {
    if let complaint = moment.complaint { tell(.message(complaint)) }
    tick()
    regulate(moment)
    perform(machine.start())
    return handOver()
  }

  /// Hears an answer.
  ///
  /// - Returns: What to do.
  package mutating func hear(_ answer: Answer, at moment: Moment) -> [Effect] {
    if let complaint = moment.complaint { tell(.message(complaint)) }
    switch answer {
    case .prepared(let chunk, let worker, let end, let byteCount, let duration):
      regulate(moment)
      perform(
        machine.prepared(chunk, worker: worker, upTo: end, holding: byteCount, took: duration)
      )
    case .failedToPrepare(let chunk, let worker, let error, let byteCount):
      note(error, of: chunk)
      // A handler that is too late, or was ended, is no failure of a run that was told to stop.
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
      tell(.committed(chunk, commit))
      errors[chunk.lowerBound] = nil
      throttle.committed(chunk.count, took: commit.duration, at: moment.now)
      throttle.logBytes = commit.logBytes
      regulate(moment)
      perform(machine.committed(chunk, took: commit.duration))
    case .failedToCommit(let chunk, let error) where error.code == .leaseLost: lose(chunk)
    case .failedToCommit(let chunk, let error):
      note(error, of: chunk)
      let isTransient = error.isTransient || isExcused(error, moment)
      settle(chunk, machine.failedToCommit(chunk, isTransient: isTransient))
    case .rested(let chunk): perform(machine.rested(chunk))
    case .claimed(let claim): hear(claim)
    case .failedToClaim(let error):
      failedClaims += 1
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
      tell(.looked)
      tick()
    case .emptiedLog(let bytes):
      throttle.logBytes = bytes
      regulate(moment)
    case .failed(let error):
      if !isExcused(error, moment) { fail(error) }
    case .stop: perform(machine.stop())
    case .outOfTime:
      stopReason = stopReason ?? "the time of limits.runtime is over"
      perform(machine.stop())
    }
    emptyLogIfQuiet()
    return handOver()
  }

  private mutating func handOver() -> [Effect] {
    defer { effects.removeAll() }
    return effects
  }

  private mutating func tell(_ event: Event) { effects.append(.tell(event)) }

  /// Has the run look around in a moment, whatever goes on then: a chunk may take long.
  private mutating func tick() {
    effects.append(.answer(.tick, after: RunThrottle.lookInterval))
  }

  // MARK: Failures

  /// Whether an error comes of the end of the grace: the chunk was undone, and nothing is wrong with it.
  private func isExcused(_ error: BatchError, _ moment: Moment) -> Bool {
    moment.isGraceOver && error.code == .interrupted
  }

  /// Fails the run because of something beside its chunks.
  private mutating func fail(_ error: BatchError) {
    failure = failure ?? error
    perform(machine.fail())
  }

  /// How long to rest before something is tried again that is beside the chunks; nil if it is not.
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

  /// Performs what follows from a failure, and keeps the error if it is what the run fails of.
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
  }

  private mutating func claim(after delay: Duration) {
    perform(machine.claimLater())
    effects.append(.answer(.claimAgain, after: delay))
  }

  private mutating func closed(_ span: Range<Int>) {
    failedCloses[span.lowerBound] = nil
    perform(machine.closed(span))
  }

  /// Gives up what is left of the span that a chunk is of.
  private mutating func lose(_ chunk: Range<Int>) {
    errors[chunk.lowerBound] = nil
    if let span = machine.openSpan(of: chunk) {
      errors = errors.filter { !span.contains($0.key) }
      tell(.lost(span))
    }
    perform(machine.lost(chunk))
  }

  // MARK: The throttle

  /// Holds the run or lets it go on, as the throttle has it now.
  private mutating func regulate(_ moment: Moment) {
    obey(moment)
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
    if hold.reason != held?.reason { tell(.held(hold)) }
    held = hold
    perform(machine.hold())
    guard !willLook, hold.duration < RunThrottle.lookInterval else { return }
    willLook = true
    effects.append(.answer(.look, after: hold.duration))
  }

  /// Does what an operator asks for.
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
    let unpaced = RunStateMachine.Limits(
      workers: setting.workers,
      inOrder: setting.inOrder,
      writers: setting.writers
    )
    machine.tune(
      ChunkSizing(
        policy,
        preparedWithin: setting.patience,
        startingAt: machine.chunkSize,
        bytes: machine.chunkBytes
      ),
      committing: throttle.setsPace ? 1 : unpaced.committing
    )
  }

  /// Empties the log when it is what holds the run and none of the run's readers is in the way.
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
        let isLastTry = machine.tries(of: chunk) >= backoff.limit
        effects.append(.prepare(chunk, worker: worker, isLastTry: isLastTry))
      case .commit(let chunk): effects.append(.commit(chunk))
      case .rest(let chunk, let attempt): rest(chunk, before: attempt)
      case .discard(let chunk): effects.append(.discard(chunk))
      case .claim(let own): effects.append(.claim(besides: own))
      case .close(let span): effects.append(.close(span))
      case .end(let ending):
        hasEnded = true
        effects.append(.end(ending))
      }
    }
  }

  private mutating func rest(_ chunk: Range<Int>, before attempt: Int) {
    guard let error = errors[chunk.lowerBound] else {
      preconditionFailure("a chunk rests that has not failed")
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
