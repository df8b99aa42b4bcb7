#if PostgreSQL
import BatchJobs
import BatchRuns
import BatchIdentifiers

/// The state of one process's part of a shared run: its commits, the state of the whole run on the
/// server, and its events.
final class TableProgress: Sendable {
  private struct State {
    /// The run's state when the server was last asked.
    var snapshot: TableRunSnapshot
    var askedAt = ContinuousClock.now
    /// What this process had done by then (`counted…`), and has done by now (`…Here`).
    var countedHere = Outcomes()
    var countedHeld = Duration.zero
    var countedChunks = 0
    var doneHere = Outcomes()
    var chunksHere = 0
    var toldAt: ContinuousClock.Instant
    var state = RunState.running
    var hold: RunThrottle.Hold?
    /// What the process waits for beside the server, in words.
    var wait: String?
    var isWaiting = false
    var heldSince: ContinuousClock.Instant?
    var heldBefore = Duration.zero
    /// How long it was held by anything but a pace, except for the current hold.
    var idleBefore = Duration.zero
    /// Since when the process has had no span, since others have them all.
    var spanlessSince: ContinuousClock.Instant?
    /// The speed of this process.
    var speed = WorkSpeed()
    /// The speed of all processes.
    var commonSpeed = WorkSpeed()

    /// How long the process has been held, including the current hold.
    var held: Duration { heldBefore + (heldSince?.duration(to: .now) ?? .zero) }

    /// The number of identifiers done by all processes, as far as is known.
    var done: Int { snapshot.outcomes.total + doneHere.total - countedHere.total }

    /// How long the process has worked since `start`.
    func worked(since start: ContinuousClock.Instant) -> Duration {
      var idle = idleBefore
      if let hold, !hold.isPace, let heldSince {
        idle += heldSince.duration(to: .now)
      } else if let spanlessSince {
        idle += spanlessSince.duration(to: .now)
      }
      return start.duration(to: .now) - idle
    }
    var toldPaces: Set<RunThrottle.Hold.Cause> = []
  }

  package let start = ContinuousClock.now
  private let doneBefore: Int
  private let state: Lock<State>
  private let waits: ServerWaits

  init(_ snapshot: TableRunSnapshot, _ waits: ServerWaits) {
    self.waits = waits
    doneBefore = snapshot.outcomes.total
    state = Lock(State(snapshot: snapshot, toldAt: start))
  }

  func update(_ snapshot: TableRunSnapshot) {
    state.withLock { state in
      (state.snapshot, state.askedAt) = (snapshot, .now)
      (state.countedHere, state.countedChunks) = (state.doneHere, state.chunksHere)
      state.countedHeld = state.held
    }
  }

  func committed(_ commit: Commit) {
    state.withLock { state in
      state.doneHere += commit.outcomes
      state.chunksHere += 1
      let worked = state.worked(since: start)
      state.speed.note(state.doneHere.total, after: worked)
      state.commonSpeed.note(state.done - doneBefore, after: worked)
    }
  }

  /// Whether nothing was reported for `interval`; if so, counts this moment as a report.
  func shouldTell(every interval: Duration) -> Bool {
    state.withLock { state in
      guard state.toldAt.duration(to: .now) >= interval else { return false }
      state.toldAt = .now
      return true
    }
  }

  /// Records a hold or its end; returns whether to report it, since a pace is reported only once.
  func hold(_ hold: RunThrottle.Hold?) -> Bool {
    state.withLock { state in
      let isNew = state.hold?.cause != hold?.cause
      if let since = state.heldSince, isNew {
        state.heldBefore += since.duration(to: .now)
        if state.hold?.isPace == false { state.idleBefore += since.duration(to: .now) }
        state.heldSince = nil
      }
      if hold != nil { state.heldSince = state.heldSince ?? .now }
      state.hold = hold
      guard let hold else {
        state.state = .running
        return false
      }
      if hold.isPace { return isNew && state.toldPaces.insert(hold.cause).inserted }
      state.state = hold.cause == .pause ? .paused : .throttled
      return isNew
    }
  }

  /// Notes whether the process has a span to work on.
  func note(hasSpan: Bool) {
    state.withLock { state in
      if let since = state.spanlessSince, hasSpan {
        if state.heldSince == nil { state.idleBefore += since.duration(to: .now) }
        state.spanlessSince = nil
      } else if !hasSpan, state.spanlessSince == nil {
        state.spanlessSince = .now
      }
    }
  }

  /// Notes what the process waits for beside the server; returns whether a wait for anything has
  /// begun or ended.
  func note(wait: String?) -> Bool {
    let isWaiting = (waits.words ?? wait) != nil
    return state.withLock { state in
      defer { (state.wait, state.isWaiting) = (wait, isWaiting) }
      return state.isWaiting != isWaiting
    }
  }

  /// Notes that settings have changed: the speed is measured from now on.
  func tune(_ throttle: RunPolicy.Throttle) {
    state.withLock { state in
      let worked = state.worked(since: start)
      state.speed.tune(pace: throttle.identifiersPerSecond, after: worked)
      // The other processes have paces of their own.
      state.commonSpeed.tune(pace: nil, after: worked)
    }
  }

  /// What this process tells the others.
  var report: HostHeartbeat.Report {
    let wait = waits.words
    return state.withLock { state in
      var report = HostHeartbeat.Report()
      report.rate = state.speed.perSecond(after: state.worked(since: start))
      report.hold = state.hold.flatMap { $0.isPace ? nil : $0.reason }
      report.waiting = wait ?? state.wait
      report.done = state.doneHere.total
      report.heldSeconds = state.held / .seconds(1)
      report.peakBytes = peakResidentBytes()
      return report
    }
  }

  /// How often a process adds a point to the pace of the run.
  private static let paceInterval = Duration.seconds(10)

  /// How soon others learn that a hold or a wait has begun or ended.
  private static let shortestInterval = Duration.milliseconds(100)

  /// Sends heartbeats and asks for the state of the run, until the task is cancelled.
  func watch(
    _ run: String,
    in tables: RunTables,
    by connection: PostgresConnection,
    as presence: HostPresence
  ) async {
    var (told, toldAt, pacedAt) = (report, ContinuousClock.now, ContinuousClock.now)
    while !Task.isCancelled {
      try? await Task.sleep(for: Self.shortestInterval)
      if Task.isCancelled { return }
      let report = report
      let isNew = report.hold != told.hold || (report.waiting == nil) != (told.waiting == nil)
      guard toldAt.duration(to: .now) >= presence.interval || isNew else { continue }
      (told, toldAt) = (report, .now)
      await presence.beat(report)
      let snapshot = try? await connection.perform { session throws(BatchError) in
        try tables.snapshot(ofRun: run, in: session)
      }
      guard let snapshot else { continue }
      update(snapshot)
      guard pacedAt.duration(to: .now) >= Self.paceInterval else { continue }
      pacedAt = .now
      try? await connection.perform { session throws(BatchError) in
        try tables.changeCourse(ofRun: run, in: session) { $0.pace.add(snapshot) }
      }
    }
  }

  func summary() -> RunSummary {
    let wait = waits.words
    return state.withLock { state in
      var summary = RunSummary(state.snapshot)
      let seconds = start.duration(to: .now) / .seconds(1)
      summary.processSeconds = seconds
      summary.peakResidentBytes = max(summary.peakResidentBytes, peakResidentBytes())
      guard !summary.state.isFinished else { return summary }
      summary.elapsedSeconds += state.askedAt.duration(to: .now) / .seconds(1)
      summary.state = state.state
      summary.throttledSeconds += (state.held - state.countedHeld) / .seconds(1)
      summary.throttle = state.hold?.reason
      summary.waiting = wait ?? state.wait
      summary.outcomes.add(state.doneHere, since: state.countedHere)
      summary.chunks += state.chunksHere - state.countedChunks
      summary.setSpeed(state.commonSpeed.perSecond(after: state.worked(since: start)))
      return summary
    }
  }
}

extension Outcomes {
  fileprivate mutating func add(_ now: Outcomes, since then: Outcomes) {
    succeeded += now.succeeded - then.succeeded
    unchanged += now.unchanged - then.unchanged
    vanished += now.vanished - then.vanished
    noLongerMatching += now.noLongerMatching - then.noLongerMatching
    failed += now.failed - then.failed
  }
}

extension RunPace {
  /// Adds what a run has done.
  mutating func add(_ snapshot: TableRunSnapshot) {
    add(seconds: snapshot.elapsedSeconds, done: snapshot.outcomes.total)
  }
}
#endif
