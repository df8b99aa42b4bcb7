import BatchIdentifiers

/// The logic of a run: who prepares which chunk, which is committed next, when the run ends.
///
/// It performs nothing. Each input returns actions; whoever performs them reports the result as
/// another input. So all of it can be tested without a database, a task or a clock.
///
/// Bounds: each worker prepares at most one chunk, and at most ``Limits/inFlight`` chunks are
/// between "handed to a worker" and "committed", however slow the writer is. There are fewer if
/// sizes follow a target, since each of them has an outdated size, and if rows are large, down to
/// one, since all of them are in memory. A worker hands over the first positions of its chunk when
/// they hold enough; the others are handed out again before any later ones.
///
/// A chunk that fails transiently waits and is prepared again. It keeps its place among those in
/// flight, and its partial result; the others continue as far as the order allows.
///
/// All positions are known at the start or, if several processes share the run, granted in spans
/// during the run. A span that is lost takes its chunks with it.
package struct RunStateMachine {
  /// How much may be in flight.
  package struct Limits {
    /// The maximum number of chunks being prepared.
    package var workers: Int
    /// The maximum number of chunks handed to the writer and not yet committed.
    package var committing: Int
    /// The maximum number of chunks between worker and commit.
    package var inFlight: Int
    /// Whether chunks are committed in the order of their positions.
    package var inOrder: Bool
    /// How often a chunk is retried after transient failures.
    package var retries: Int
    /// Whether each worker commits the chunks that it prepared, each in a transaction; otherwise
    /// one writer does, and chunks that wait for it share a transaction.
    package let workersCommit: Bool
    /// Whether positions are granted during the run, besides the initial ones.
    package var isGranted = false
    /// The first positions of units that chunks must not split, ascending; empty if chunks may end
    /// anywhere.
    package var units: [Int] = []

    /// Makes limits for a number of workers.
    package init(workers: Int, inOrder: Bool, retries: Int = 0, workersCommit: Bool = false) {
      self.workers = workers
      self.inOrder = inOrder
      self.retries = retries
      self.workersCommit = workersCommit
      // While one chunk is committed, the others wait at the writer and share its next transaction.
      // In order, only one at a time: two tasks that call the writer may arrive in the wrong order.
      committing = inOrder ? 1 : workersCommit ? Self.held * workers : 8
      inFlight = 2 * workers + committing
    }

    /// How many chunks a worker that commits holds at most: one at its commit, and the next.
    package static let held = 2

    /// How long chunks share a transaction of the writer; see `GroupCommit`.
    package static let sharing = Duration.milliseconds(20)
  }

  /// What to do.
  package enum Action: Hashable {
    /// Have a worker read and compute the chunk; answer with `prepared` or `failed`.
    case prepare(Range<Int>, worker: Int)
    /// Have the writer commit the prepared chunk; answer with `committed` or `failed`.
    case commit(Range<Int>)
    /// Delay the chunk before this retry; answer with `rested`.
    case rest(Range<Int>, attempt: Int)
    /// Drop a prepared chunk, which will not be committed.
    case discard(Range<Int>)
    /// Claim a span other than these, which the run still holds; answer with `grant`, `claimLater`
    /// or `exhausted`.
    case claim(besides: [Range<Int>])
    /// Record a span as done; answer with `closed`.
    case close(Range<Int>)
    /// Everything has ended.
    case end(Ending)
  }

  /// How a run ends.
  package enum Ending: Hashable {
    /// Every position is done.
    case completed
    /// The run was stopped, and the chunks in flight are committed.
    case stopped
    /// A chunk could not be done.
    case failed
  }

  private enum Phase {
    case running
    case stopping(Ending)
    case ended
  }

  /// A chunk that was handed out and is not committed.
  private struct Chunk {
    enum State: Equatable {
      /// New, or waited for its retry: a worker prepares it next.
      case due
      case preparing
      /// Prepared, and waiting for the writer.
      case ready
      case committing
      /// Failed transiently, and waiting for its retry.
      case resting
      /// Failed permanently, and the run with it.
      case failed
    }

    var positions: Range<Int>
    var state: State
    /// The worker that prepares it, or has prepared it.
    var worker: Int?
    /// The number of transient failures.
    var failures = 0
    /// The bytes it holds while waiting for the writer or its retry.
    var bytes = 0

    /// Whether no worker or writer is busy with it.
    var isWaiting: Bool { [.due, .ready, .resting].contains(state) }
  }

  private var limits: Limits
  private var sizing: ChunkSizing
  private var phase = Phase.running
  /// Whether nothing may be handed out.
  private var isHeld = false
  /// Whether the run ends, or has ended, with a failure.
  package private(set) var hasFailed = false
  /// The positions to hand out, the next ones last.
  private var remaining: [Range<Int>]
  private var idleWorkers: [Int]
  /// How many workers are given chunks: the first ones.
  private var allowedWorkers: Int
  /// The chunks handed out and not committed, ascending.
  private var chunks: [Chunk] = []
  /// The granted spans; none if all positions are known at the start.
  private var spans = GrantedSpans()
  /// The first position that will no longer be committed; in order, nothing after it will be.
  private var givenUp = Int.max

  /// The size of the next chunk.
  package var chunkSize: Int { sizing.size }

  /// What is known of the memory that chunks hold.
  package var chunkBytes: ChunkBytes { sizing.bytes }

  /// Makes a run over ascending positions, in chunks of at most the size given by `sizing`.
  package init(remaining: [Range<Int>], sizing: ChunkSizing, limits: Limits) {
    precondition(limits.workers > 0, "a run without workers")
    self.limits = limits
    self.sizing = sizing
    self.remaining = remaining.reversed()
    allowedWorkers = limits.workers
    idleWorkers = Array(0..<limits.workers)
    if !limits.workersCommit { idleWorkers.reverse() }
  }

  // MARK: Inputs

  package mutating func start() -> [Action] { next() }

  /// A worker has prepared its chunk, or as many of its first positions as may be held at once.
  ///
  /// - Parameters:
  ///   - chunk: The chunk as handed out; from now on it ends at `end`.
  ///   - worker: The worker.
  ///   - end: The first position not reached; nil if all were.
  ///   - byteCount: The bytes held for it.
  ///   - duration: How long it took.
  /// - Returns: What to do.
  package mutating func prepared(
    _ chunk: Range<Int>,
    worker: Int,
    upTo end: Int? = nil,
    holding byteCount: Int = 0,
    took duration: Duration
  ) -> [Action] {
    let place = release(worker, chunk)
    let reached = chunk.lowerBound..<(end ?? chunk.upperBound)
    let rest = reached.upperBound..<chunk.upperBound
    precondition(!reached.isEmpty, "an empty prepared chunk")
    if isLost(chunk) {
      chunks.remove(at: place)
      return [.discard(reached)] + next()
    }
    sizing.observe(reached.count, preparedIn: duration, bytes: byteCount)
    guard canCommit(reached) else { return [.discard(reached)] + giveUp([chunk]) + next() }
    chunks[place].positions = reached
    chunks[place].bytes = byteCount
    chunks[place].state = .ready
    return (rest.isEmpty ? [] : takeBack(rest)) + next()
  }

  /// A worker could not prepare its chunk, transiently or permanently; the bytes of its partial
  /// result are kept.
  package mutating func failedToPrepare(
    _ chunk: Range<Int>,
    worker: Int,
    holding byteCount: Int = 0,
    isTransient: Bool = false
  ) -> [Action] {
    let place = release(worker, chunk)
    if isLost(chunk) {
      chunks.remove(at: place)
      return [.discard(chunk)] + next()
    }
    chunks[place].bytes = byteCount
    return isTransient ? retry(place) : fail(place)
  }

  /// The writer has committed a chunk.
  package mutating func committed(_ chunk: Range<Int>, took duration: Duration) -> [Action] {
    chunks.remove(at: settle(chunk))
    sizing.observe(chunk.count, took: duration)
    return next()
  }

  /// The writer could not commit a chunk, transiently or permanently; nothing of it is done.
  package mutating func failedToCommit(_ chunk: Range<Int>, isTransient: Bool = false) -> [Action] {
    let place = settle(chunk)
    if isLost(chunk) {
      chunks.remove(at: place)
      return next()
    }
    return isTransient ? retry(place) : fail(place)
  }

  /// A chunk's delay is over.
  package mutating func rested(_ chunk: Range<Int>) -> [Action] {
    // It may have been given up meanwhile.
    let place = chunks.firstIndex { $0.positions == chunk && $0.state == .resting }
    guard let place else { return [] }
    chunks[place].state = .due
    return next()
  }

  /// Begins nothing new; what is in flight is finished, or dropped if the run is held.
  package mutating func stop() -> [Action] {
    guard case .running = phase else { return [] }
    phase = .stopping(.stopped)
    // In order, nothing is committed after positions that a worker did not reach.
    givenUp = min(givenUp, remaining.last?.lowerBound ?? .max)
    return giveUp(positions { $0 == .resting || $0 == .due }) + next()
  }

  /// Hands nothing out, neither to workers nor to the writer, until ``release()``.
  ///
  /// If the run stops, prepared chunks are dropped instead of waiting for that.
  package mutating func hold() -> [Action] {
    if isHeld { return [] }
    isHeld = true
    guard case .stopping = phase else { return [] }
    return giveUp([]) + next()
  }

  /// Continues after ``hold()``.
  package mutating func release() -> [Action] {
    isHeld = false
    return next()
  }

  /// Replaces the sizing of chunks to come, and the number of chunks allowed at the writer.
  package mutating func tune(_ sizing: ChunkSizing, committing: Int) {
    self.sizing = sizing
    limits.committing = committing
  }

  /// Gives later chunks to the first workers only; what the others have is finished.
  package mutating func allow(workers count: Int) { allowedWorkers = count }

  /// Whether the run is held and everything handed out has returned.
  package var isQuiet: Bool { isHeld && preparingCount == 0 && count(.committing) == 0 }

  /// The number of a chunk's transient failures.
  package func tries(of chunk: Range<Int>) -> Int {
    chunks.first { $0.positions == chunk }?.failures ?? 0
  }

  // MARK: Spans

  /// The run holds a span; these parts of it are still to do.
  package mutating func grant(_ span: Range<Int>, remaining parts: [Range<Int>]) -> [Action] {
    spans.insert(span)
    for part in parts { remaining.insert(part, at: place(before: part)) }
    return next()
  }

  /// No span is free now; claims again after ``claimAgain()``.
  package mutating func claimLater() -> [Action] {
    spans.claim = .resting
    return next()
  }

  /// The delay before the next claim is over.
  package mutating func claimAgain() -> [Action] {
    if spans.claim == .resting { spans.claim = .idle }
    return next()
  }

  /// All positions of the run are done, by any process.
  package mutating func exhausted() -> [Action] {
    spans.claim = .exhausted
    return next()
  }

  /// A span is recorded as done, or belongs to another process.
  package mutating func closed(_ span: Range<Int>) -> [Action] {
    spans.remove(span)
    return next()
  }

  /// The span of a chunk; nil if all positions were known at the start, or it was lost.
  package func openSpan(of chunk: Range<Int>) -> Range<Int>? { spans.span(.open, of: chunk) }

  /// A chunk was not committed, nor will anything of its span be: another process has the span.
  ///
  /// Chunks of the span that are in use are dropped when they return.
  package mutating func lost(_ chunk: Range<Int>) -> [Action] {
    precondition(limits.isGranted, "a lost span was not granted")
    chunks.remove(at: settle(chunk))
    guard let span = openSpan(of: chunk) else { return next() }
    spans.set(span, .lost)
    remaining.removeAll { $0.overlaps(span) }
    let dropped = chunks.filter { $0.isWaiting && $0.positions.overlaps(span) }.map(\.positions)
    chunks.removeAll { dropped.contains($0.positions) }
    return dropped.map(Action.discard) + next()
  }

  private func isLost(_ chunk: Range<Int>) -> Bool { spans.span(.lost, of: chunk) != nil }

  /// Closes spans that are done, forgets lost ones once all their chunks have returned, and claims
  /// another.
  private mutating func tendSpans() -> [Action] {
    guard limits.isGranted, !hasFailed else { return [] }
    var actions: [Action] = []
    for (span, state) in spans.all
    where !remaining.contains(where: span.overlaps)
      && !chunks.contains(where: { $0.positions.overlaps(span) })
    {
      switch state {
      case .open:
        spans.set(span, .closing)
        actions.append(.close(span))
      case .closing: break
      case .lost: spans.remove(span)
      }
    }
    if spans.claim == .idle, wantsSpan {
      spans.claim = .asked
      actions.append(.claim(besides: spans.positions))
    }
    return actions
  }

  /// Whether another span is needed: less than a chunk per worker is left.
  ///
  /// In order, spans are done one after another.
  private var wantsSpan: Bool {
    guard case .running = phase, !isHeld else { return false }
    if limits.inOrder { return remaining.isEmpty && chunks.isEmpty && spans.all.isEmpty }
    return remaining.reduce(0) { $0 + $1.count } < limits.workers * sizing.size
  }

  /// The index of positions among the remaining ones, the next of which are last.
  private func place(before positions: Range<Int>) -> Int {
    remaining.lastIndex { $0.lowerBound > positions.lowerBound }.map { $0 + 1 } ?? 0
  }

  // MARK: Decisions

  private func count(_ state: Chunk.State) -> Int { chunks.count { $0.state == state } }

  private func first(_ state: Chunk.State) -> Int? { chunks.firstIndex { $0.state == state } }

  private func positions(_ isMeant: (Chunk.State) -> Bool) -> [Range<Int>] {
    chunks.filter { isMeant($0.state) }.map(\.positions)
  }

  private var preparingCount: Int { limits.workers - idleWorkers.count }

  /// The index of a chunk that a worker has returned.
  private mutating func release(_ worker: Int, _ chunk: Range<Int>) -> Int {
    let place = chunks.firstIndex {
      $0.positions == chunk && $0.state == .preparing && $0.worker == worker
    }
    guard let place else { preconditionFailure("no worker prepares the chunk") }
    idleWorkers.append(worker)
    return place
  }

  /// The index of a chunk that the writer has answered.
  private mutating func settle(_ chunk: Range<Int>) -> Int {
    let place = chunks.firstIndex { $0.positions == chunk && $0.state == .committing }
    guard let place else { preconditionFailure("the writer does not have the chunk") }
    chunks[place].bytes = 0
    return place
  }

  /// Whether a prepared chunk may still be committed.
  private func canCommit(_ chunk: Range<Int>) -> Bool {
    if isHeld, case .stopping = phase { return false }
    return !hasFailed && !(limits.inOrder && chunk.lowerBound > givenUp)
  }

  /// Lets a chunk that failed transiently wait, unless it was tried often enough or the run is
  /// about to end.
  private mutating func retry(_ place: Int) -> [Action] {
    chunks[place].failures += 1
    let (positions, attempt) = (chunks[place].positions, chunks[place].failures)
    switch phase {
    case .running where attempt <= limits.retries:
      chunks[place].state = .resting
      chunks[place].worker = nil
      return [.rest(positions, attempt: attempt)] + next()
    case .stopping(.stopped): return giveUp([positions]) + next()
    default: return fail(place)
    }
  }

  /// Leaves chunks to the next run, with what was prepared and can no longer be committed.
  private mutating func giveUp(_ positions: [Range<Int>]) -> [Action] {
    givenUp = positions.map(\.lowerBound).reduce(givenUp, min)
    let dropped = self.positions { $0 == .ready }.filter { !canCommit($0) }
    givenUp = dropped.map(\.lowerBound).reduce(givenUp, min)
    chunks.removeAll { (positions + dropped).contains($0.positions) }
    remaining += positions + dropped
    return dropped.map(Action.discard)
  }

  /// Takes back positions that a worker did not reach: they are handed out next, or left to the
  /// next run.
  private mutating func takeBack(_ rest: Range<Int>) -> [Action] {
    guard case .running = phase else { return giveUp([rest]) }
    let place = place(before: rest)
    if place > 0, remaining[place - 1].lowerBound == rest.upperBound,
      !spans.beginsOne(at: rest.upperBound)
    {
      remaining[place - 1] = rest.lowerBound..<remaining[place - 1].upperBound
    } else {
      remaining.insert(rest, at: place)
    }
    return []
  }

  private mutating func fail(_ place: Int) -> [Action] {
    chunks[place].state = .failed
    return fail()
  }

  /// Something other than a chunk failed: prepared chunks are dropped.
  package mutating func fail() -> [Action] {
    if case .ended = phase { return [] }
    phase = .stopping(.failed)
    hasFailed = true
    let dropped = positions { $0 == .ready }
    chunks.removeAll(where: \.isWaiting)
    return dropped.map(Action.discard) + next()
  }

  /// The current limits of chunks at the writer, and in flight.
  ///
  /// A chunk that takes as long as a target gains nothing from sharing a transaction, and chunks
  /// sized before a change of size are still to come: one at the writer and those ready for its
  /// next transaction are enough. Exports have no writer to wait for.
  private var depth: (committing: Int, inFlight: Int) {
    guard sizing.hasTarget, !limits.inOrder, !limits.workersCommit else {
      return (limits.committing, limits.inFlight)
    }
    guard let together = sizing.count(writtenIn: Limits.sharing) else {
      return (1, min(limits.workers + 1, limits.inFlight))
    }
    let committing = Int(max(1, min(together, Double(limits.committing))))
    // Twice what is written while one is prepared, since preparation times vary.
    let ready = (2 * (sizing.countWrittenDuringPreparation ?? 0)).rounded(.up)
    let inFlight = Double(committing) + max(ready, Double(committing))
    return (committing, Int(min(inFlight, Double(limits.inFlight))))
  }

  private mutating func next() -> [Action] {
    var actions: [Action] = []
    while !isHeld, count(.committing) < depth.committing, let place = nextToCommit() {
      chunks[place].state = .committing
      actions.append(.commit(chunks[place].positions))
    }
    if case .running = phase, !isHeld {
      while let index = nextWorker(), let place = nextToPrepare() {
        let worker = idleWorkers.remove(at: index)
        chunks[place].state = .preparing
        chunks[place].worker = worker
        actions.append(.prepare(chunks[place].positions, worker: worker))
      }
    }
    actions += tendSpans()
    if let ending = ending() {
      phase = .ended
      actions.append(.end(ending))
    }
    return actions
  }

  /// The index, among the idle workers, of the one to prepare the next chunk.
  ///
  /// One that commits is given no more chunks than it holds, so that none waits behind a slow one
  /// while another worker has nothing to do. In order, a chunk to retry must find a worker, however
  /// many later chunks are prepared.
  private func nextWorker() -> Int? {
    let allowed = idleWorkers.indices.filter { idleWorkers[$0] < allowedWorkers }
    guard limits.workersCommit else { return allowed.last }
    let held = allowed.map { index in chunks.count { $0.worker == idleWorkers[index] } }
    guard let least = held.min(), least < Limits.held || limits.inOrder else { return nil }
    return held.firstIndex(of: least).map { allowed[$0] }
  }

  private func nextToCommit() -> Int? {
    guard let place = first(.ready) else { return nil }
    guard limits.inOrder else { return place }
    // Positions that a worker did not reach come first; if the run stops, such chunks are given up.
    if case .running = phase, let next = remaining.last,
      next.lowerBound < chunks[place].positions.lowerBound
    {
      return nil
    }
    return place == 0 ? place : nil
  }

  /// Whether there is memory for another chunk.
  ///
  /// One chunk is always allowed: in order, it may be what those that hold the memory wait for.
  private var hasRoom: Bool {
    if preparingCount == 0, count(.committing) == 0 { return true }
    let expected = sizing.expectedBytes
    let held = Double(chunks.reduce(0) { $0 + $1.bytes }) + Double(preparingCount) * expected
    return held + expected <= Double(ChunkBytes.totalLimit)
  }

  /// The index of the chunk to prepare next.
  private mutating func nextToPrepare() -> Int? {
    guard hasRoom else { return nil }
    if let place = first(.due) { return place }
    // Resting chunks block nobody, but their number is limited too.
    guard chunks.count - count(.resting) < depth.inFlight, chunks.count < limits.inFlight,
      let positions = nextChunk()
    else { return nil }
    let place =
      chunks.lastIndex { $0.positions.lowerBound < positions.lowerBound }.map { $0 + 1 } ?? 0
    chunks.insert(Chunk(positions: positions, state: .due), at: place)
    return place
  }

  private mutating func nextChunk() -> Range<Int>? {
    guard let gap = remaining.popLast() else { return nil }
    var end = gap.prefix(sizing.next()).endIndex
    if !limits.units.isEmpty {
      let next = limits.units.partitioningIndex { $0 >= end }
      end = next < limits.units.count ? min(limits.units[next], gap.upperBound) : gap.upperBound
    }
    if end < gap.upperBound { remaining.append(end..<gap.upperBound) }
    return gap.lowerBound..<end
  }

  private func ending() -> Ending? {
    guard chunks.allSatisfy({ $0.state == .failed }) else { return nil }
    let hasAll = !limits.isGranted || spans.claim == .exhausted && spans.all.isEmpty
    let isComplete = remaining.isEmpty && hasAll
    switch phase {
    case .running: return isComplete ? .completed : nil
    // Stopped when nothing was left to do: it is complete.
    case .stopping(.stopped): return isComplete ? .completed : .stopped
    case .stopping(let ending): return ending
    case .ended: return nil
    }
  }
}
