@testable import BatchRuns
import BatchIdentifiers

/// A worker of a simulation.
final class SimulatedWorker: ChunkWorker, @unchecked Sendable {
  let id: Int
  /// The wait of its call; nil if it has none.
  var call: Sleeper?
  private(set) var isInterrupted = false

  init(_ id: Int) {
    self.id = id
  }

  func interrupt() {
    isInterrupted = true
    call?.end()
  }

  func close() {}
}

/// A chunk on its way through the lane.
final class LaneCall: @unchecked Sendable {
  let chunk: Range<Int>
  let answered = Sleeper()
  var answer: Result<Commit, BatchError>?

  init(_ chunk: Range<Int>) {
    self.chunk = chunk
  }
}

/// Prepares chunks, and has the lane commit them.
extension SimulatedProcess: ChunkProcessor {
  var inOrder: Bool { simulation.scenario.inOrder }
  var handlerTimeLimit: Duration? { nil }

  func makeWorker(_ label: String) -> SimulatedWorker {
    workerCount += 1
    return SimulatedWorker(workerCount - 1)
  }

  /// - Returns: The positions as content, so that it can be seen which content is committed.
  func prepare(
    _ chunk: Range<Int>,
    _ attempt: Attempt<Range<Int>>,
    in worker: SimulatedWorker
  ) async throws(BatchError) -> PreparedChunk<Range<Int>> {
    if !isAlive { throw .crashed }
    note("prepares \(chunk) by worker \(worker.id)")
    demand(chunk, attempt, in: worker)
    outstanding.append(chunk)
    callCount += 1
    defer { returned() }
    let call = Sleeper()
    worker.call = call
    var time = simulation.moment(upTo: 30)
    if simulation.choices.once(in: 24) { time += 100 * simulation.moment(upTo: 100) }
    await simulation.sleep(worker.isInterrupted ? 0 : time, call)
    worker.call = nil
    if !isAlive { throw .crashed }
    outstanding.removeAll { $0 == chunk }
    let rowBytes = simulation.scenario.rowBytes
    if worker.isInterrupted {
      simulation.occur(.interrupt)
      throw .interrupted
    }
    if simulation.goesWrong(oncePer: 20) {
      let error = simulation.choices.one(of: [BatchError.busy, .busy, .busy, .broken, .interrupted])
      throw failed(chunk, error)
    }
    if !attempt.isLast, simulation.choices.once(in: 20) {
      simulation.occur(.postponement)
      let error = failed(chunk, .away)
      let held = simulation.choices.below(chunk.count) * rowBytes
      return PreparedChunk(content: chunk, count: 0, byteCount: held, postponement: error)
    }
    // It may hand over the first positions only.
    let isEarly = simulation.choices.once(in: 8)
    let reached = chunk.dropLast(isEarly ? simulation.choices.below(chunk.count) : 0)
    if reached != chunk { simulation.occur(.earlyEnd) }
    note("has prepared \(reached) of \(chunk)")
    outstanding.append(reached)
    return PreparedChunk(
      content: reached,
      count: reached.count,
      byteCount: reached.count * rowBytes
    )
  }

  /// Sees that a chunk may be prepared.
  private func demand(
    _ chunk: Range<Int>,
    _ attempt: Attempt<Range<Int>>,
    in worker: SimulatedWorker
  ) {
    demandUnheld()
    demand(
      retried != nil || simulation.canary.allows(chunk, simulation.now),
      "\(chunk) is handed out, and the canary is not over"
    )
    demand(worker.call == nil, "worker \(worker.id) has a chunk already")
    demand(!outstanding.contains { $0.overlaps(chunk) }, "\(chunk) is handed out twice")
    demand(retried != nil || !ledger.overlaps(chunk), "\(chunk) is handed out, and is done")
    demand(outstanding.count < 2 * workerCount + 8, "too much is in flight")
    let isLast = tries[chunk.lowerBound, default: 0] >= policy.retry.limit
    demand(attempt.isLast == isLast, "\(chunk) is not told which try is its last")
    demand(attempt.earlier ?? chunk == chunk, "\(chunk) is continued with the rows of another")
  }

  func commit(_ content: Range<Int>, at chunk: Range<Int>) async throws(BatchError) -> Commit {
    if !isAlive { throw .crashed }
    note("commits \(chunk)")
    demandUnheld()
    demand(content == chunk, "\(chunk) is committed with the rows of \(content)")
    callCount += 1
    defer { returned() }
    let commit = LaneCall(chunk)
    waiting.append(commit)
    beginTransaction()
    await commit.answered.sleep()
    guard isAlive, let answer = commit.answer else { throw .crashed }
    outstanding.removeAll { $0 == chunk }
    do throws(BatchError) {
      let commit = try answer.get()
      tries[chunk.lowerBound] = nil
      return commit
    } catch {
      // What was interrupted after a stop has not failed.
      throw error.code == .interrupted ? error : failed(chunk, error)
    }
  }

  /// Notes that a chunk has failed.
  private func failed(_ chunk: Range<Int>, _ error: BatchError) -> BatchError {
    note("\(chunk) fails: \(error.message)")
    tries[chunk.lowerBound, default: 0] += 1
    if !error.isTransient || tries[chunk.lowerBound, default: 0] > policy.retry.limit {
      mayFail = true
      simulation.occur(.failure)
    }
    return error
  }

  /// Notes that a call of a worker or the lane returns.
  private func returned() {
    callCount -= 1
    lastReturn = simulation.now
  }
}

/// The lane, as `WriterLane` has it.
extension SimulatedProcess: ChunkWriter {
  var logRemedy: String { "" }

  func emptyLog() async throws(BatchError) -> Int {
    callCount += 1
    defer { returned() }
    try await passInLane(upTo: 20)
    // Somebody may be reading from it.
    if !simulation.goesWrong(oncePer: 3) { simulation.store.logBytes = 0 }
    return simulation.store.logBytes
  }

  /// Waits for the lane, which may be interrupted.
  func passInLane(upTo milliseconds: Int) async throws(BatchError) {
    let call = Sleeper()
    laneCalls.append(call)
    try await pass(upTo: milliseconds, call)
    guard let index = laneCalls.firstIndex(where: { $0 === call }) else { throw .interrupted }
    laneCalls.remove(at: index)
  }

  /// Ends what the lane does, unless that is not running.
  func interrupt() {
    guard isAlive, !simulation.choices.once(in: 4) else { return }
    for call in laneCalls { call.end() }
    laneCalls.removeAll()
    guard isCommitting else { return }
    simulation.queue.removeAll {
      if case .transaction(let other) = $0.happening { other === self } else { false }
    }
    isCommitting = false
    answer(takeWaiting(), .interrupted)
    beginTransaction()
  }

  private func beginTransaction() {
    guard !isCommitting, !waiting.isEmpty else { return }
    isCommitting = true
    simulation.schedule(.transaction(self), after: simulation.moment(upTo: 20))
  }

  /// Commits the first chunks that wait, in one transaction.
  func commitWaiting() {
    guard isAlive else { return }
    isCommitting = false
    let commits = takeWaiting()
    if simulation.goesWrong(oncePer: 12) {
      answer(commits, simulation.choices.one(of: [.busy, .busy, .busy, .broken]))
    } else {
      commit(commits)
    }
    beginTransaction()
  }

  private func takeWaiting() -> [LaneCall] {
    let most = 1 + simulation.choices.below(simulation.scenario.together)
    defer { waiting.removeFirst(min(waiting.count, most)) }
    return Array(waiting.prefix(most))
  }

  private func commit(_ commits: [LaneCall]) {
    let simulation = simulation
    var content = simulation.store.content
    var entered = ledger
    var outcomes: [Outcomes] = []
    var isApplying = false
    do throws(BatchError) {
      try verify()
      isApplying = true
      for commit in commits { outcomes.append(try apply(commit.chunk, &content, &entered)) }
    } catch {
      if simulation.flaw == .changesUndoneRows, isApplying {
        simulation.store.commit(content, synced: false)
      }
      if commits.count > 1, isApplying {
        // One of them cannot be done, and the others are not to suffer for it.
        for one in commits { commit([one]) }
      } else {
        if isApplying { isPoisoned = true }
        answer(commits, error)
      }
      return
    }
    if commits.count > 1 { simulation.occur(.sharedTransaction) }
    if simulation.flaw != .losesLedger { content.ledger = entered }
    simulation.store.commit(content, synced: simulation.scenario.isFull)
    simulation.canary.look(at: content.fates, simulation.now)
    ledger = entered
    versionSeen = simulation.store.version
    simulation.store.logBytes += commits.reduce(0) { $0 + $1.chunk.count }
    if simulation.choices.once(in: 6) { simulation.store.logBytes = 0 }
    note("the store has \(commits.map { "\($0.chunk)" }.joined(separator: ", "))")
    for (commit, outcomes) in zip(commits, outcomes) {
      if simulation.flaw == .losesAnswer, !simulation.hasLostAnswer {
        simulation.hasLostAnswer = true
        returned()
        continue
      }
      let time = Duration.microseconds(simulation.moment(upTo: 10))
      let length = simulation.store.logBytes
      commit.answer = .success(Commit(outcomes: outcomes, duration: time, logBytes: length))
      simulation.schedule(.wake(commit.answered), after: simulation.moment(upTo: 8))
    }
  }

  private func answer(_ commits: [LaneCall], _ error: BatchError) {
    for commit in commits {
      commit.answer = .failure(error)
      simulation.schedule(.wake(commit.answered), after: simulation.moment(upTo: 5))
    }
  }

  /// Changes the rows of a chunk and enters it, within a transaction.
  private func apply(
    _ chunk: Range<Int>,
    _ content: inout SimulatedStore.Content,
    _ entered: inout DoneRanges
  ) throws(BatchError) -> Outcomes {
    let total = simulation.scenario.count
    let onFailure = retried == nil ? policy.skip.failurePolicy(of: total) : .skip(upTo: .max)
    var bisection = Bisection(chunk, onFailure.after(entered.outcomes.failed))
    var outcomes = Outcomes()
    while let part = bisection.next() {
      let positions = part.map { retried?.positions[$0] ?? $0 }
      if positions.contains(where: simulation.poison.contains) {
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
      simulation.occur(.skippedIdentifier)
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
    if simulation.scenario.inOrder {
      let next = ledger.remaining(of: total).first?.lowerBound
      demand(chunk.lowerBound == next, "\(chunk) is committed before \(next ?? 0)")
    }
    entered.insert(.init(chunk, outcomes: outcomes, chunks: 1))
    return outcomes
  }
}
