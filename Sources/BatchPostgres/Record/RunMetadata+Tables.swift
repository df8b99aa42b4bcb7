#if PostgreSQL
import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchPlatform

extension RunMetadata {
  /// - Throws: `BatchError` of code `damagedFile` if it cannot be read.
  init(ofSharedRun run: TableRun) throws(BatchError) {
    do throws(BatchError) {
      try self.init(run.metadata, at: "_batch_run")
    } catch {
      guard error.code == .damagedFile else { throw error }
      throw BatchError(
        .damagedFile,
        "the metadata of run \(run.run) in _batch_run cannot be read",
        advice: "the tables were changed by hand; \(.beginAnew)",
        underlying: error.underlying
      )
    }
  }
}

extension LastIncrement {
  /// The increment of a run in tables; nil if it has none.
  init?(_ run: TableRun, startingOver isFresh: Bool) throws(BatchError) {
    self.init(
      try run.described(),
      isFinished: run.state == .finished || run.state == .acknowledged,
      startingOver: isFresh,
      at: "run \(run.run)"
    )
  }
}

extension RunIdentity {
  /// The identity of the run that a command would begin after others, or of the unfinished increment that it would
  /// resume.
  init(after runs: [TableRun], of job: Job, _ options: RunOptions) throws(BatchError) {
    guard job.source.isIncremental, let last = runs.last else {
      self.init()
      return
    }
    if last.state == .running, !options.fresh {
      self.init(try last.described())
    } else {
      self.init(after: try LastIncrement(last, startingOver: options.fresh))
    }
  }
}

extension RunSummary {
  init(_ snapshot: TableRunSnapshot) {
    let run = snapshot.run
    let described = try? run.described()
    var metadata = RunMetadata(
      run: run.run,
      job: run.job,
      startedAt: described?.startedAt ?? run.startedAt,
      fingerprint: "",
      schema: [],
      ledger: .store
    )
    metadata.runID = run.runID
    (metadata.planned, metadata.increment) = (described?.planned, described?.increment)
    self.init(metadata, RunProgress(), total: run.total, path: "")
    outcomes = snapshot.outcomes
    chunks = snapshot.chunks
    resumedAt = snapshot.resumedAt
    elapsedSeconds = snapshot.elapsedSeconds
    throttledSeconds = snapshot.heldSeconds
    peakResidentBytes = snapshot.peakBytes
    if snapshot.files > 0 { (outputFiles, outputBytes) = (snapshot.files, snapshot.bytes) }
    endedAt = snapshot.endedAt
    reasons = snapshot.reasons
    afterwards = snapshot.course.afterwards
    failedAttempts = snapshot.failedAttempts
    switch run.state {
    case .running: state = .running
    case .finished, .acknowledged:
      state = outcomes.failed > 0 ? .completedWithFailures : .completed
    // When it was set aside is not when it ended.
    case .setAside: (state, isSetAside, endedAt) = (.stopped, true, nil)
    }
    if run.state != .running { setSpeedOfAll() }
  }

  /// Sets the speed over all the work that was done.
  private mutating func setSpeedOfAll() {
    let seconds = elapsedSeconds - throttledSeconds
    setSpeed(done > 0 && seconds > 0 ? Double(done) / seconds : nil, isLive: false)
  }

  /// The summary of a shared run that may have no live process; an unfinished run without one has
  /// ended as its last process did, and so has a run that was set aside.
  init(_ snapshot: TableRunSnapshot, of hosts: [HostSnapshot], lease: Duration) {
    self.init(snapshot)
    guard !state.isFinished else { return }
    let last = hosts.min { $0.silence < $1.silence }
    lastSeenAt = last?.seenAt
    guard !hosts.contains(where: { $0.isAlive(within: lease) }) else { return }
    state = .stopped
    setSpeedOfAll()
    guard let last else { return }
    switch last.exit?.state {
    // A process that stops removes its row.
    case nil, .silent: wasKilled = true
    case .stopped: (endedAt, stopReason) = (last.seenAt, last.exit?.reason)
    case .failed: (endedAt, state, error) = (last.seenAt, .failed, last.exit?.reason)
    // It finished its part before the failures were retried.
    case .finished: endedAt = last.seenAt
    }
  }
}
#endif
