package import BatchIdentifiers
import BatchPlatform
import SystemPackage

/// The part of a run that one process executes: its committed chunks and its reports.
package final class RunSession {
  package let checkpoint: Checkpoint
  package var ledger: any RunLedger
  let host: RunEnvironment
  package let start: ContinuousClock.Instant
  /// The failed identifiers that are being retried; nil in any other run.
  private let retried: RetriedIdentifiers?
  /// How many identifiers this process has to do, and how many it has done.
  private let toDo: Int
  private var doneHere = 0
  private var speed = WorkSpeed()
  package internal(set) var progress: RunProgress
  package internal(set) var done: DoneRanges
  private var recordedAt: ContinuousClock.Instant
  /// When a record last had all that was done.
  private var countedAt: ContinuousClock.Instant
  /// Until when records come once a second, since something has just changed.
  private var settlesAt: ContinuousClock.Instant
  private var toldAt: ContinuousClock.Instant
  private let elapsedBefore: Double
  /// How long this process took for the selection.
  private let selection: Duration
  /// How long the run has been held, without the current hold.
  private var throttledBefore: Double
  /// How long this process was held by anything but a pace, except for the current hold.
  private var idleBefore = Duration.zero
  /// Since when the lock of another program has kept this process from committing, up to its next commit.
  private var lockedSince: ContinuousClock.Instant?
  /// Whether the previous process of the run was killed before recording its end.
  package let followsKill: Bool
  /// How this process came to work on a run that had begun before; nil if it began it.
  package let entry: OperatorAction?
  var failure: BatchError?
  /// The current reason of the hold, and when the hold began, for whatever reason.
  private var held: (by: RunThrottle.Hold, since: ContinuousClock.Instant)?
  /// Not recorded yet; used only if the file is the ledger.
  var passedOver = PassedOverRecord()
  var trial: CanaryTrial?
  /// How often the run had been asked to continue when its canary was done.
  var resumptionsBefore: Int?
  private var toldPaces: Set<RunThrottle.Hold.Cause> = []

  package init(
    checkpoint: Checkpoint,
    done: DoneRanges,
    isResumed: Bool,
    after elapsedSeconds: Double = 0,
    retrying retried: RetriedIdentifiers? = nil,
    selectedIn selection: Duration = .zero,
    by ledger: any RunLedger = UnrecordedLedger(),
    on host: RunEnvironment = RunEnvironment()
  ) {
    self.ledger = ledger
    self.host = host
    self.checkpoint = checkpoint
    self.done = done
    self.retried = retried
    toDo = retried?.positions.count ?? checkpoint.total - done.count
    start = host.now()
    recordedAt = start
    countedAt = start
    settlesAt = start
    toldAt = start
    progress = checkpoint.progress
    followsKill = isResumed && progress.state.isGoingOn
    entry = isResumed ? OperatorAction(retried == nil ? .resumed : .retried) : nil
    // The file may lag behind.
    elapsedBefore = max(progress.elapsedSeconds, elapsedSeconds)
    self.selection = selection
    throttledBefore = progress.throttledSeconds ?? 0
    // A retry that was killed goes on.
    if retried != nil, !progress.state.isGoingOn {
      let attempt = FailedAttempt(
        endedAt: progress.endedAt,
        failed: progress.done.outcomes.failed,
        reasons: (try? checkpoint.failureCounts(atMost: 3)) ?? []
      )
      progress.failedAttempts = progress.failedAttempts ?? []
      progress.failedAttempts?.note(attempt)
    }
    progress.goOn()
    progress.isRetry = retried == nil ? nil : true
    if selection > .zero { progress.selectionSeconds = selection / .seconds(1) }
    if isResumed { progress.resumedAt = done.count }
  }

  package var run: String { checkpoint.metadata.run }

  /// The positions still to do, or the indexes of the failed identifiers to retry.
  package var remaining: [Range<Int>] {
    retried?.parts ?? done.remaining(of: total)
  }

  var isRetry: Bool { retried != nil }

  private var total: Int { progress.total ?? checkpoint.list.count }

  package var isComplete: Bool { done.count == total }

  package var meanChunkSize: Int? { done.chunks > 0 ? done.count / done.chunks : nil }

  /// The failure policy; in a retry, all identifiers may fail again.
  package func failurePolicy(_ skip: RunPolicy.Skip) -> FailurePolicy {
    retried == nil ? skip.failurePolicy(of: total) : .skip(upTo: .max)
  }

  /// Counts a committed chunk, and records progress if the last record is older than `interval`.
  package func committed(
    _ chunk: Range<Int>,
    _ commit: Commit,
    recordingEvery interval: Duration
  ) async throws(BatchError) {
    note(chunk, commit)
    if isDue(after: interval, since: countedAt) { try await recordProgress() }
  }

  /// Notes that a loaded sequence has ended.
  package func end(at position: Int) { progress.total = position }

  private func note(_ chunk: Range<Int>, _ commit: Commit) {
    doneHere += chunk.count
    endLock()
    speed.note(doneHere, after: worked)
    if let retried {
      let first = retried.positions[chunk.lowerBound]
      _ = done.replaceFailures(chunk.count, at: first, with: commit.outcomes)
      return
    }
    done.insert(.init(chunk, outcomes: commit.outcomes, chunks: 1))
    if let hash = commit.readHash { progress.read = .init(count: chunk.upperBound, hash: hash) }
    if checkpoint.metadata.ledger == .file {
      passedOver.append(commit.passedOver, from: chunk.lowerBound)
    }
  }

  /// Whether the last record is older than `interval`, or there is much to record.
  ///
  /// The first records, and those after a change, are written sooner, so that `batch status` tells
  /// the present speed; and if the file is the only record, so that a kill then costs little.
  private func isDue(after interval: Duration, since last: ContinuousClock.Instant) -> Bool {
    let now = host.now()
    let age = start.duration(to: now)
    var soon =
      checkpoint.metadata.ledger == .file
      ? max(.milliseconds(500), age / 4) : max(.seconds(1), age / 2)
    if now < settlesAt { soon = min(soon, .seconds(1)) }
    return last.duration(to: now) >= min(interval, soon)
      || passedOver.pieces.count > PassedOverRecord.byteLimit
  }

  /// How long records come sooner after a change.
  private static let settling = Duration.seconds(10)

  private func settle() { settlesAt = host.now() + Self.settling }

  /// Notes that a record has all that is done.
  func noteCounted() { countedAt = host.now() }

  /// Whether nothing was reported for `interval`; if so, a report is assumed to follow.
  package func shouldTell(every interval: Duration) -> Bool {
    guard toldAt.duration(to: host.now()) >= interval else { return false }
    toldAt = host.now()
    return true
  }

  /// Records what people have done.
  ///
  /// If it cannot be written, the next record has it.
  package func note(_ actions: [OperatorAction]) {
    let before = progress.actions
    progress.note(actions)
    if progress.actions != before { try? write(progress.state) }
  }

  /// Records that space is being given back, or what came of it.
  package func note(_ space: ReturnedSpace) {
    progress.afterwards = space
    let isOver = space.bytesAfter != nil || space.error != nil
    progress.waiting = isOver ? nil : "\(space.by), after the last row"
    try? write(progress.state)
  }

  /// Records that the run continues, even if the file says that it is finished: now the store is
  /// the authority.
  package func reopen() throws(BatchError) {
    try write(.running)
  }

  /// Records the progress of a running run; if the database is locked, the next record makes up for
  /// it.
  private func recordProgress() async throws(BatchError) {
    do throws(BatchError) {
      try await record(progress.state)
    } catch {
      guard error.isTransient else { throw error }
      (recordedAt, countedAt) = (host.now(), host.now())
    }
  }

  /// Registers a hold; returns whether to report it, which for a mere pace is only the first time.
  package func hold(_ hold: RunThrottle.Hold) throws(BatchError) -> Bool {
    let isNew = held?.by.cause != hold.cause
    if isNew { endHold() }
    held = (hold, held?.since ?? host.now())
    progress.throttle = hold.reason
    guard isNew else { return false }
    if hold.isPace {
      if progress.state != .running { try write(.running) }
      return toldPaces.insert(hold.cause).inserted
    }
    try write(hold.cause == .pause ? .paused : .throttled)
    return true
  }

  package func release() throws(BatchError) {
    let isRecorded = holdIsRecorded
    if held?.by.isPace == false { settle() }
    endHold()
    if isRecorded { try write(.running) }
  }

  /// Called on every tick with what the run waits for; returns whether a wait has begun or ended.
  ///
  /// A wait or a hold is written to the file as long as it lasts: after a kill, its time counts up to the
  /// last record.
  ///
  /// - Parameters:
  ///   - what: What the run waits for; nil if it works, or is held.
  ///   - isLocked: Whether that is the lock of another program.
  ///   - interval: The time between two records.
  /// - Returns: Whether a wait has begun or ended.
  /// - Throws: An error of the file.
  package func pass(
    waitingFor what: String?,
    isLocked: Bool = false,
    recordingEvery interval: Duration
  ) throws(BatchError) -> Bool {
    let isNew = (progress.waiting == nil) != (what == nil)
    if isNew { settle() }
    progress.waiting = what
    if isLocked, lockedSince == nil { lockedSince = host.now() - Self.untoldWait }
    let isPassing = held != nil || what != nil
    if isNew || isPassing && isDue(after: max(interval, .seconds(1)), since: recordedAt) {
      try write(progress.state)
    }
    return isNew
  }

  /// The duration after which a wait is reported.
  package static let untoldWait = Duration.seconds(2)

  /// Notes that settings have changed: the speed is measured from now on.
  package func tune(_ throttle: RunPolicy.Throttle) {
    speed.tune(pace: throttle.identifiersPerSecond, after: worked)
    settle()
    // So that the status tells the new speed. If it cannot be written, the next record will.
    if doneHere > 0 { try? write(progress.state) }
  }

  /// Whether the checkpoint says that the run is held.
  private var holdIsRecorded: Bool { held.map { recordedAt >= $0.since } ?? false }

  private func endLock() {
    idleBefore = idle
    lockedSince = nil
  }

  private func endHold() {
    throttledBefore = throttledSeconds
    endLock()
    held = nil
    progress.throttle = nil
  }

  /// How long the run has been held, including the current hold.
  private var throttledSeconds: Double {
    throttledBefore + (held.map { $0.since.duration(to: host.now()) / .seconds(1) } ?? 0)
  }

  /// How long this process was held so far, by anything but a pace.
  private var idle: Duration {
    let holds = held.flatMap { $0.by.isPace ? nil : $0.since }
    // Both may last at once.
    guard let since = [holds, lockedSince].compactMap(\.self).min() else { return idleBefore }
    return idleBefore + since.duration(to: host.now())
  }

  /// How long this process has worked on chunks.
  private var worked: Duration { start.duration(to: host.now()) - idle }

  /// Records how the chunks have ended.
  ///
  /// - Parameters:
  ///   - ending: How.
  ///   - failure: The error that ended them.
  ///   - reason: Why they were stopped, if not by a request.
  ///   - backoff: How often to try to record that all is done.
  /// - Throws: Errors of the ledger or of the file.
  package func record(
    _ ending: RunStateMachine.Ending,
    _ failure: BatchError?,
    because reason: String?,
    trying backoff: Backoff
  ) async throws(BatchError) {
    switch ending {
    case .completed where isComplete:
      try await backoff.repeating(on: host) { () throws(BatchError) in try await complete() }
    // The retry of an unfinished run.
    case .completed:
      try await stop(because: "the failed identifiers were retried; the others are left")
    case .stopped: try await stop(because: reason)
    case .failed: try await record(.failed, failure: failure)
    }
  }

  /// Records that the run was stopped, and why if not by request.
  ///
  /// A locked database does not keep a run from stopping: the ledger in the store has the chunks
  /// that the file lacks.
  private func stop(because reason: String? = nil) async throws(BatchError) {
    progress.stopReason = reason
    do throws(BatchError) {
      try await record(.stopped)
    } catch {
      guard error.isTransient || error.code == .interrupted else { throw error }
      try write(.stopped)
    }
  }

  /// Records that the run failed outside its chunks.
  package func fail(_ error: BatchError) {
    failure = failure ?? error
    // If this cannot be recorded, the last record and the ledger still say what is done. If another
    // process has taken over the run, only that process may write.
    if error.code != .alreadyRunning { try? write(.failed) }
    progress.state = .failed
  }

  func write(_ state: RunState) throws(BatchError) {
    if !state.isGoingOn {
      endHold()
      progress.waiting = nil
    }
    progress.state = state
    progress.error = failure?.description
    progress.elapsedSeconds = elapsedSeconds
    progress.processSeconds = elapsedSeconds - elapsedBefore
    progress.identifiersPerSecond = identifiersPerSecond
    progress.remaining = retried == nil ? nil : toDo - doneHere
    progress.throttledSeconds = throttledSeconds > 0 ? throttledSeconds : nil
    progress.recordedAt = host.date()
    progress.peakResidentBytes = max(progress.peakResidentBytes, host.peakBytes())
    try checkpoint.record(progress)
    progress = progress.repeatable
    recordedAt = host.now()
  }

  private var elapsedSeconds: Double {
    elapsedBefore + (selection + start.duration(to: host.now())) / .seconds(1)
  }

  /// The speed of the last minute; at the end, of this process.
  private var identifiersPerSecond: Double? {
    if progress.state.isGoingOn {
      return lockedSince == nil ? speed.perSecond(after: worked) : nil
    }
    return doneHere > 0 && worked > .zero ? Double(doneHere) / (worked / .seconds(1)) : nil
  }

  /// The current state of the run.
  package func summary() -> RunSummary {
    var summary = RunSummary(checkpoint.metadata, progress, checkpoint: checkpoint)
    summary.stopReason = progress.state == .stopped ? progress.stopReason : nil
    summary.outcomes = done.outcomes
    summary.chunks = done.chunks
    summary.throttledSeconds = throttledSeconds
    summary.elapsedSeconds = elapsedSeconds
    summary.processSeconds = elapsedSeconds - elapsedBefore
    summary.peakResidentBytes = max(progress.peakResidentBytes, host.peakBytes())
    summary.failure = failure
    summary.setSpeed(identifiersPerSecond, remaining: toDo - doneHere)
    return summary
  }
}
