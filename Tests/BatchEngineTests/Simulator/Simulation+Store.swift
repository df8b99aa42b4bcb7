@testable import BatchEngine
import BatchIdentifiers

/// The lane, the disk and the log, as `WriterLane` has them.
extension Simulation {
  // MARK: Transactions

  func beginTransaction(_ process: SimulatedProcess) {
    guard !process.isCommitting, !process.waiting.isEmpty else { return }
    process.isCommitting = true
    schedule(.transaction, after: moment(upTo: 20), for: process)
  }

  /// Commits the first chunks that wait, in one transaction.
  func commitWaiting(_ process: SimulatedProcess) {
    process.isCommitting = false
    let chunks = takeWaiting(process)
    if goesWrong(oncePer: 12) {
      answer(chunks, choices.one(of: [.busy, .busy, .busy, .broken]), process)
    } else {
      commit(chunks, process)
    }
    beginTransaction(process)
  }

  private func takeWaiting(_ process: SimulatedProcess) -> [Range<Int>] {
    let count = min(process.waiting.count, 1 + choices.below(scenario.together))
    defer { process.waiting.removeFirst(count) }
    return Array(process.waiting.prefix(count))
  }

  private func commit(_ chunks: [Range<Int>], _ process: SimulatedProcess) {
    var content = store.content
    var entered = process.ledger
    var outcomes: [Outcomes] = []
    var isApplying = false
    do throws(BatchError) {
      try verify(process, content)
      isApplying = true
      for chunk in chunks { outcomes.append(try apply(chunk, &content, &entered, process)) }
    } catch {
      if flaw == .changesUndoneRows, isApplying { store.commit(content, synced: false) }
      if chunks.count > 1, isApplying {
        // One of them cannot be done, and the others are not to suffer for it.
        for chunk in chunks { commit([chunk], process) }
      } else {
        if isApplying { process.isPoisoned = true }
        answer(chunks, error, process)
      }
      return
    }
    if chunks.count > 1 { occur(.sharedTransaction) }
    if flaw != .losesLedger { content.ledger = entered }
    store.commit(content, synced: scenario.isFull)
    process.ledger = entered
    process.versionSeen = store.version
    store.logBytes += chunks.reduce(0) { $0 + $1.count }
    if choices.once(in: 6) { store.logBytes = 0 }
    note("the store has \(chunks.map { "\($0)" }.joined(separator: ", "))", process)
    for (chunk, outcomes) in zip(chunks, outcomes) {
      if flaw == .losesAnswer, !hasLostAnswer {
        hasLostAnswer = true
        continue
      }
      let time = Duration.microseconds(moment(upTo: 10))
      let commit = Commit(outcomes: outcomes, duration: time, logBytes: store.logBytes)
      schedule(.answer(.committed(chunk, commit)), after: moment(upTo: 8), for: process)
    }
  }

  private func answer(_ chunks: [Range<Int>], _ error: BatchError, _ process: SimulatedProcess) {
    for chunk in chunks {
      schedule(.answer(.failedToCommit(chunk, error)), after: moment(upTo: 5), for: process)
    }
  }

  /// Changes the rows of a chunk and enters it, within a transaction.
  private func apply(
    _ chunk: Range<Int>,
    _ content: inout SimulatedStore.Content,
    _ entered: inout DoneRanges,
    _ process: SimulatedProcess
  ) throws(BatchError) -> Outcomes {
    let retried = process.retried
    let policy =
      retried == nil ? scenario.policy.skip.failurePolicy(of: scenario.count) : .skip(upTo: .max)
    var bisection = Bisection(chunk, policy.after(entered.outcomes.failed))
    var outcomes = Outcomes()
    while let part = bisection.next() {
      let positions = part.map { retried?.positions[$0] ?? $0 }
      if positions.contains(where: poison.contains) {
        try bisection.failed(part, .broken)
        continue
      }
      for position in positions {
        content.failed[position] = nil
        // Some rows already have the desired values.
        if position % 7 == 3 {
          outcomes.unchanged += 1
          content.fates[position] = .unchanged
        } else {
          outcomes.succeeded += 1
          content.fates[position] = .succeeded
          content.changes[position] += 1
        }
      }
    }
    for failure in bisection.failures {
      occur(.skippedIdentifier)
      outcomes.failed += 1
      let position = retried?.positions[failure.position] ?? failure.position
      content.fates[position] = .failed
      content.failed[position, default: 0] += 1
    }
    if let retried {
      let first = retried.positions[chunk.lowerBound]
      let row = entered.replaceFailures(chunk.count, at: first, with: outcomes)
      demand(row != nil, "\(chunk.map { retried.positions[$0] }) did not fail, and is tried again")
      return outcomes
    }
    guard demand(!entered.overlaps(chunk), "\(chunk) is committed twice") else { return outcomes }
    if scenario.inOrder {
      let next = process.ledger.remaining(of: scenario.count).first?.lowerBound
      demand(chunk.lowerBound == next, "\(chunk) is committed before \(next ?? 0)")
    }
    entered.insert(.init(chunk, outcomes: outcomes, chunks: 1))
    return outcomes
  }

  /// Sees that the run is still a process's own, and its ledger as it left it.
  func verify(
    _ process: SimulatedProcess,
    _ content: SimulatedStore.Content
  ) throws(BatchError) {
    guard flaw != .ignoresOwner, store.version != process.versionSeen else { return }
    if let stored = content.ledger, content.owner != process.id,
      stored.count >= process.ledger.count
    {
      process.mayFail = true
      throw BatchError(.init(rawValue: "alreadyRunning"), "the run was taken over")
    }
    guard content.ledger == process.ledger else {
      process.mayFail = true
      throw BatchError(.init(rawValue: "storeChanged"), "the store is not as it was left")
    }
    process.versionSeen = store.version
  }

  // MARK: The disk

  /// Makes everything committed durable, and returns it.
  func synchronize(
    _ process: SimulatedProcess,
    _ progress: inout RunProgress,
    failedCount: Int?
  ) throws(BatchError) -> [FailedIdentifier]? {
    try mayCrash(process)
    if goesWrong(oncePer: 12) { throw .busy }
    // The lane may have continued until this point.
    if process.isCommitting, choices.once(in: 3),
      let index = queue.firstIndex(where: { isTransaction($0, of: process) })
    {
      queue.remove(at: index)
      commitWaiting(process)
    }
    try verify(process, store.content)
    if flaw != .liesAboutDisk { store.synchronize() }
    process.restores = store.restores
    progress.done = process.ledger
    try mayCrash(process)
    guard process.ledger.outcomes.failed != failedCount else { return nil }
    return failures(of: store.content)
  }

  /// The identifiers that failed, ascending.
  func failures(of content: SimulatedStore.Content) -> [FailedIdentifier] {
    content.failed.sorted { $0.key < $1.key }.map {
      FailedIdentifier(
        position: $0.key,
        code: "broken",
        message: "",
        attempt: $0.value,
        failedAt: ""
      )
    }
  }

  private func isTransaction(_ scheduled: Scheduled, of process: SimulatedProcess) -> Bool {
    guard scheduled.process == process.id, case .transaction = scheduled.happening else {
      return false
    }
    return true
  }

  /// Records in the store that all is done.
  func finish(_ process: SimulatedProcess) throws(BatchError) {
    try verify(process, store.content)
    var content = store.content
    content.hasEnded = true
    store.commit(content, synced: scenario.isFull)
    process.versionSeen = store.version
    try mayCrash(process)
  }

  /// Appends to the checkpoint file.
  func append(
    _ entry: CheckpointEntry,
    _ sync: Bool,
    by process: SimulatedProcess
  ) throws(BatchError) {
    try mayCrash(process)
    if goesWrong(oncePer: 24) {
      process.mayFail = true
      throw .broken
    }
    if case .progress(let progress) = entry {
      note("records \(progress.state), \(progress.done.count) done", process)
      if process.restores == store.restores {
        demand(
          store.durable.ledger?.covers(progress.done) ?? false,
          "the file is told of more than the ledger has durably"
        )
      }
      if progress.state.isFinished {
        demand(progress.done.count == scenario.count, "it is finished, and not all is done")
      }
    }
    file.append(entry, synced: sync, restores: process.restores)
    try mayCrash(process)
  }

  // MARK: The log and interrupts

  func emptyLog(_ process: SimulatedProcess) async {
    // Somebody may be reading from it.
    if !goesWrong(oncePer: 3) { store.logBytes = 0 }
    await hear(.emptiedLog(store.logBytes), process)
  }

  func beginGrace(_ process: SimulatedProcess) {
    process.mayStop = true
    let end = now + Self.microseconds(scenario.grace)
    guard end < process.graceEnd ?? .max else { return }
    process.graceEnd = end
    schedule(.interrupt, after: end - now, for: process)
  }

  /// Ends the work of workers and lane, except what is not running.
  func interrupt(_ process: SimulatedProcess) {
    var interrupted: [RunLogic.Answer] = []
    var hasTransaction = false
    queue.removeAll { scheduled in
      guard scheduled.process == process.id, scheduled.time > now else { return false }
      switch scheduled.happening {
      case .answer(.prepared(let chunk, let worker, _, _, _)),
        .answer(.failedToPrepare(let chunk, let worker, _, _)):
        interrupted.append(.failedToPrepare(chunk, worker: worker, .interrupted, holding: 0))
        return true
      case .transaction where !choices.once(in: 4):
        hasTransaction = true
        return true
      default: return false
      }
    }
    for answer in interrupted { schedule(.answer(answer), after: 1, for: process) }
    if hasTransaction {
      process.isCommitting = false
      answer(takeWaiting(process), .interrupted, process)
      beginTransaction(process)
    }
    schedule(.interrupt, after: 10_000, for: process)
  }
}
