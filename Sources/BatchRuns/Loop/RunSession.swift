package import BatchIdentifiers
import BatchPlatform
import SystemPackage

/// One process's part of a run: what it has seen committed, and what it reports.
package final class RunSession {
  package let checkpoint: Checkpoint
  /// What knows which chunks are done.
  package var ledger: any RunLedger
  let host: RunEnvironment
  /// When this process began to process chunks.
  package let start: ContinuousClock.Instant
  /// The failed identifiers being retried; nil in a first run.
  private let retried: RetriedIdentifiers?
  /// The number of identifiers for this process to do, and of those done.
  private let toDo: Int
  private var doneHere = 0
  private var speed = WorkSpeed()
  package internal(set) var progress: RunProgress
  /// The done positions.
  package private(set) var done: DoneRanges
  private var recordedAt: ContinuousClock.Instant
  private var toldAt: ContinuousClock.Instant
  private let elapsedBefore: Double
  /// How long this process selected before it began with the chunks.
  private let selection: Duration
  /// How long the run was held, except for the current hold.
  private var throttledBefore: Double
  /// How long this process was held by anything but a pace, except for the current hold.
  private var idleBefore = Duration.zero
  /// Whether the previous process of the run was killed before recording its end.
  package let followsKill: Bool
  var failure: BatchError?
  /// What holds the run, and since when it has been held, for any reason.
  private var held: (by: RunThrottle.Hold, since: ContinuousClock.Instant)?
  /// The passed-over identifiers that no record lists yet, if the file is the ledger.
  var passedOver = PassedOverRecord()
  private var toldPaces: Set<RunThrottle.Hold.Cause> = []

  /// Makes a session that begins after a selection, resumes after the done positions, or retries failed
  /// identifiers.
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
    toDo = retried?.positions.count ?? checkpoint.list.count - done.count
    start = host.now()
    recordedAt = start
    toldAt = start
    progress = checkpoint.progress
    followsKill = isResumed && progress.state.isGoingOn
    // The file may lag behind.
    elapsedBefore = max(progress.elapsedSeconds, elapsedSeconds)
    self.selection = selection
    throttledBefore = progress.throttledSeconds ?? 0
    progress.goOn()
    progress.isRetry = retried == nil ? nil : true
    if selection > .zero { progress.selectionSeconds = selection / .seconds(1) }
    if isResumed { progress.resumedAt = done.count }
  }

  /// The run's UUID.
  package var run: String { checkpoint.metadata.run }

  /// The positions still to do, or the indexes of the failed identifiers to retry.
  package var remaining: [Range<Int>] {
    retried?.parts ?? done.remaining(of: checkpoint.list.count)
  }

  package var isComplete: Bool { done.count == checkpoint.list.count }

  /// The average size of the done chunks; nil if there are none.
  package var meanChunkSize: Int? { done.chunks > 0 ? done.count / done.chunks : nil }

  /// What happens when identifiers of the run fail; all retried ones may fail again.
  package func failurePolicy(_ skip: RunPolicy.Skip) -> FailurePolicy {
    retried == nil ? skip.failurePolicy(of: checkpoint.list.count) : .skip(upTo: .max)
  }

  /// Notes that a chunk is committed, and records that if the last record is older than `interval`.
  package func committed(
    _ chunk: Range<Int>,
    _ commit: Commit,
    recordingEvery interval: Duration
  ) async throws(BatchError) {
    note(chunk, commit)
    if isDue(after: interval) { try await recordProgress() }
  }

  private func note(_ chunk: Range<Int>, _ commit: Commit) {
    doneHere += chunk.count
    speed.note(doneHere, after: worked)
    if let retried {
      let first = retried.positions[chunk.lowerBound]
      _ = done.replaceFailures(chunk.count, at: first, with: commit.outcomes)
      return
    }
    done.insert(.init(chunk, outcomes: commit.outcomes, chunks: 1))
    if checkpoint.metadata.ledger == .file {
      passedOver.append(commit.passedOver, from: chunk.lowerBound)
    }
  }

  /// Whether the last record is older than `interval`, or there is much to record.
  ///
  /// Where only the file knows what is done, the first records come sooner: whoever looks at a run in its
  /// first seconds, or kills it, finds most of what it has done.
  private func isDue(after interval: Duration) -> Bool {
    let now = host.now()
    let isOnlyRecord = checkpoint.metadata.ledger == .file
    let soon = max(Self.firstRecord, start.duration(to: now) / 4)
    return recordedAt.duration(to: now) >= (isOnlyRecord ? min(interval, soon) : interval)
      || passedOver.pieces.count > PassedOverRecord.byteLimit
  }

  /// When a file that is a run's only record gets its first record at the latest.
  private static let firstRecord = Duration.milliseconds(500)

  /// Whether nothing was reported for `interval`; if so, notes a report.
  package func shouldTell(every interval: Duration) -> Bool {
    guard toldAt.duration(to: host.now()) >= interval else { return false }
    toldAt = host.now()
    return true
  }

  /// Records that the run continues, even if the file says that it is finished: from now on, the
  /// store counts.
  package func reopen() throws(BatchError) {
    try write(.running)
  }

  /// Appends the progress of a running run to the checkpoint.
  ///
  /// If the database is locked, the record waits until the next one is due.
  private func recordProgress() async throws(BatchError) {
    do throws(BatchError) {
      try await record(progress.state)
    } catch {
      guard error.isTransient else { throw error }
      recordedAt = host.now()
    }
  }

  /// Notes that the run is held.
  ///
  /// - Returns: Whether to report it; a mere pace is reported only the first time.
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
    endHold()
    if isRecorded { try write(.running) }
  }

  /// Notes that time passes, and what the run waits for, nil for nothing.
  ///
  /// A wait, or a pace that holds the run for long, must reach the file.
  ///
  /// - Returns: Whether to report it: a wait has begun or ended.
  /// - Throws: Errors of the file.
  package func pass(
    waitingFor what: String?,
    recordingEvery interval: Duration
  ) throws(BatchError) -> Bool {
    let isNew = (progress.waiting == nil) != (what == nil)
    progress.waiting = what
    let isUnrecorded = held != nil && !holdIsRecorded || what != nil
    if isNew || isUnrecorded && isDue(after: interval) { try write(progress.state) }
    return isNew
  }

  /// How long a wait goes untold.
  package static let untoldWait = Duration.seconds(2)

  /// Notes that settings have changed: the speed is measured from now on.
  package func tune(_ throttle: RunPolicy.Throttle) {
    speed.tune(pace: throttle.identifiersPerSecond, after: worked)
    // So that the status tells the new speed. If it cannot be written, the next record will.
    if doneHere > 0 { try? write(progress.state) }
  }

  /// Whether the checkpoint says that the run is held.
  private var holdIsRecorded: Bool { held.map { recordedAt >= $0.since } ?? false }

  private func endHold() {
    throttledBefore = throttledSeconds
    idleBefore = idle
    held = nil
    progress.throttle = nil
  }

  /// How long the run has been held so far.
  private var throttledSeconds: Double {
    throttledBefore + (held.map { $0.since.duration(to: host.now()) / .seconds(1) } ?? 0)
  }

  /// How long this process was held by anything but a pace so far.
  private var idle: Duration {
    guard let held, !held.by.isPace else { return idleBefore }
    return idleBefore + held.since.duration(to: host.now())
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
    case .completed: try await stop()
    case .stopped: try await stop(because: reason)
    case .failed: try await record(.failed, failure: failure)
    }
  }

  /// Records that the run was stopped, and why if not by request.
  ///
  /// A locked database does not keep a run from stopping: the ledger in the store has what the file
  /// then lacks.
  private func stop(because reason: String? = nil) async throws(BatchError) {
    progress.stopReason = reason
    do throws(BatchError) {
      try await record(.stopped)
    } catch {
      guard error.isTransient || error.code == .interrupted else { throw error }
      try write(.stopped)
    }
  }

  /// Notes that the run failed outside its chunks.
  package func fail(_ error: BatchError) {
    failure = failure ?? error
    // If even this cannot be recorded, the last record and the ledger still say what is done. If
    // another process has taken over the run, only that one may write to the record.
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
    progress.throttledSeconds = throttledSeconds > 0 ? throttledSeconds : nil
    progress.recordedAt = Date.now.timeIntervalSince1970
    progress.peakResidentBytes = max(progress.peakResidentBytes, host.peakBytes())
    try checkpoint.record(progress)
    progress.passedOver = nil
    recordedAt = host.now()
  }

  private var elapsedSeconds: Double {
    elapsedBefore + (selection + start.duration(to: host.now())) / .seconds(1)
  }

  /// The speed of the last minute; at the end, of this process.
  private var identifiersPerSecond: Double? {
    if progress.state.isGoingOn { return speed.perSecond(after: worked) }
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
    if let speed = identifiersPerSecond {
      summary.identifiersPerSecond = speed
      if progress.state == .running, progress.waiting == nil {
        summary.etaSeconds = Double(toDo - doneHere) / speed
      }
    }
    return summary
  }
}
