@testable import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import SystemPackage

extension BatchError {
  /// The messages for a process that is gone.
  static let crashed = BatchError(.init(rawValue: "crashed"), "the process is no more")
  static let busy = BatchError(.busy, "the store is locked")
  static let away = BatchError(.retryLater, "what rows depend on is away")
  static let interrupted = BatchError(.interrupted, "the statement was interrupted")
  static let broken = BatchError(.init(rawValue: "broken"), "the disk is broken")
}

/// The life of a process: what its driver does.
extension Simulation {
  private static let files = RunFiles(ofJob: "job", checkpoint: "checkpoint", store: "store")

  func boot(isBlind: Bool) {
    guard !isOver else { return }
    // The lock beside the checkpoint.
    if !isBlind, processes.contains(where: \.isAlive) {
      note("another process is refused")
      occur(.refusal)
      return
    }
    // Whoever has the lock removes the requests to an earlier run.
    if !isBlind { control = RunControl() }
    if processes.contains(where: \.isAlive) { occur(.takeover) }
    var policy = scenario.policy
    // The last processes have all the time that they need, so that it ends.
    if processes.count >= 3 { policy.limits.runtime = nil }
    let process = SimulatedProcess(processes.count, policy, of: self)
    processes.append(process)
    if control.isCancelled { process.stoppedAt = now }
    note(isBlind ? "begins, blind for others" : "begins", process)
    process.task = Task(executorPreference: executor) { [self] in await drive(process) }
  }

  private func drive(_ process: SimulatedProcess) async {
    let isDone = store.content.ledger.map { $0.count >= scenario.count } ?? false
    let request = RunRequest(runID: metadata.runID, retriesFailures: isRetryAsked && isDone)
    let terms = RunTerms(
      name: "job",
      policy: process.policy,
      workerCount: scenario.workers,
      files: Self.files,
      progressInterval: .milliseconds(200),
      phrase: { $0 },
      on: process.host
    )
    let driver = RunDriver(process, terms, stop: process.stop) { [self] event in
      observe(event, process)
    }
    do throws(BatchError) {
      let summary = try await driver.run(request) { summary throws(BatchError) in
        try hear(summary, from: process)
      }
      if process.isAlive, summary.state.isFinished, summary.unacknowledged == nil { acknowledged() }
      close(process, because: summary.failure ?? summary.unacknowledged)
    } catch {
      close(process, because: error)
    }
  }

  private func observe(_ event: RunEvent, _ process: SimulatedProcess) {
    switch event {
    case .retrying(let retry):
      occur(.retry)
      demand(retry.attempt <= retry.limit, "\(retry.positions) is tried too often")
    case .message(let message): note("says: \(message)", process)
    default: break
    }
  }

  /// Hears how a process has ended, or fails to.
  private func hear(_ summary: RunSummary, from process: SimulatedProcess) throws(BatchError) {
    try process.mayCrash()
    guard summary.state.isFinished else { return }
    note("tells the end", process)
    demand(!store.content.fates.contains(.none), "an identifier has no outcome")
    if file.restores == store.restores {
      demand(
        file.failedAttempts == store.content.failed,
        "the file says that \(file.failedAttempts.keys.sorted()) have failed"
      )
      demand(
        summary.outcomes == store.content.ledger?.outcomes,
        "it tells \(summary.outcomes), and that is not what was done"
      )
    }
    if goesWrong(oncePer: 24) { throw .broken }
    isDelivered = true
  }

  private func acknowledged() {
    guard !isOver else { return }
    occur(.completion)
    if !isRetryAsked, !store.content.failed.isEmpty, choices.once(in: 2) {
      note("somebody asks for the failed identifiers to be tried again")
      isRetryAsked = true
      isDelivered = false
      // For some of them the action works by now.
      poison = Set(poison.sorted().filter { _ in choices.once(in: 2) })
    } else {
      isOver = true
    }
  }

  /// Ends a process, after which another takes its place if there is something left to do.
  func close(_ process: SimulatedProcess, because error: BatchError? = nil) {
    guard process.isAlive else { return }
    if let error { note("is over: \(error.message)", process) }
    process.isAlive = false
    // Whatever its tasks wait for, they come to an end.
    process.task?.cancel()
    process.stop.stop()
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
