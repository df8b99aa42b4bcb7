import BatchIdentifiers

/// The logic of a run: which worker prepares which chunk, which chunk is committed next, and when
/// the run ends.
///
/// It performs nothing. Each input returns actions, and the caller reports their results as further
/// inputs. So all of it can be tested without a database, a task or a clock.
///
/// Bounds: each worker prepares at most one chunk, and at most ``Limits/inFlight`` chunks are
/// between "given to a worker" and "committed", however slow the writer is. There are fewer of them
/// if sizes follow a target, since each has an outdated size, and if rows are large, down to a
/// single one, since all are in memory. A worker ends its chunk when the positions it has prepared
/// hold enough bytes; the others are given out again before any later ones.
///
/// A chunk that fails transiently waits and is prepared again. It keeps its place among those in
/// flight, and its partial result; the others continue as far as the order allows.
///
/// All positions are known at the start or, if several processes share the run, granted in spans
/// during the run. A lost span takes its chunks with it.
package struct RunStateMachine {
  /// The limits of the chunks in flight.
  package struct Limits {
    /// The maximum number of chunks that are prepared at once.
    package var workers: Int
    /// The maximum number of chunks given to the writer but not yet committed.
    package var committing: Int
    /// The maximum number of chunks given to a worker but not yet committed.
    package var inFlight: Int
    package var inOrder: Bool
    /// The maximum number of retries of a chunk after transient failures.
    package var retries: Int
    /// Whether each worker commits its own chunks, each in a transaction; otherwise one writer
    /// commits all, and chunks waiting for it share a transaction.
    package let workersCommit: Bool
    /// Whether further positions are granted during the run.
    package var isGranted = false
    /// The first positions of units that chunks must not split, ascending; empty if there are none.
    package var units: [Int] = []

    package init(workers: Int, inOrder: Bool, retries: Int = 0, workersCommit: Bool = false) {
      self.workers = workers
      self.inOrder = inOrder
      self.retries = retries
      self.workersCommit = workersCommit
      // While one chunk is committed, the others wait at the writer and share its next transaction.
      // In order, there is only one at a time, since two tasks that call the writer may arrive in
      // the wrong order.
      committing = inOrder ? 1 : workersCommit ? Self.held * workers : 8
      inFlight = 2 * workers + committing
    }

    /// How many chunks a committing worker holds: one at its commit, and the next one.
    package static let held = 2

    /// How long chunks may share a transaction of the writer; see `GroupCommit`.
    package static let sharing = Duration.milliseconds(20)
  }

  package enum Action: Hashable {
    /// Tell a worker to read and compute the chunk; answer with `prepared` or `failed`.
    case prepare(Range<Int>, worker: Int)
    /// Tell the writer to commit the prepared chunk; answer with `committed` or `failed`.
    case commit(Range<Int>)
    /// Delay the chunk before this retry; answer with `rested`.
    case rest(Range<Int>, attempt: Int)
    /// Drop a prepared chunk, which will not be committed.
    case discard(Range<Int>)
    /// Claim a span that is not among these, which the run holds; answer with `grant`, `claimLater`
    /// or `exhausted`.
    case claim(besides: [Range<Int>])
    /// Record a span as done; answer with `closed`.
    case close(Range<Int>)
    /// Everything has ended.
    case end(Ending)
  }

  package enum Ending: Hashable {
    case completed
    /// The run was stopped, and the chunks in flight are committed.
    case stopped
    case failed
  }

  private enum Phase {
    case running
    case stopping(Ending)
    case ended
  }

  /// A chunk that was given to a worker and is not committed.
  private struct Chunk {
    enum State: Equatable {
      /// New, or after the delay before its retry: a worker prepares it next.
      case due
      case preparing
      case ready
      case committing
      /// Failed transiently, and waiting for its retry.
      case resting
      /// Failed permanently, and the run with it.
      case failed
    }

    var positions: Range<Int>
    var state: State
    /// The worker that is preparing the chunk or has prepared it.
    var worker: Int?
    var failures = 0
    /// The bytes that it holds while waiting for the writer or its retry.
    var bytes = 0

    var isWaiting: Bool { [.due, .ready, .resting].contains(state) }
  }

  private var limits: Limits
  private var sizing: ChunkSizing
  private var phase = Phase.running
  private var isHeld = false
  /// Whether the run ends, or has ended, with a failure.
  package private(set) var hasFailed = false
  /// The positions not given out yet; the next ones are last.
  private var remaining: [Range<Int>]
  private var idleWorkers: [Int]
  /// Only the workers with lower numbers get chunks.
  private var allowedWorkers: Int
  /// The chunks given out but not committed, ascending.
  private var chunks: [Chunk] = []
  /// The granted spans; none if all positions are known at the start.
  private var spans = GrantedSpans()
  /// The first position that will no longer be committed; in order, nothing after it will be.
  private var givenUp = Int.max

  package var chunkSize: Int { sizing.size }

  /// The estimate of the memory that chunks hold.
  package var chunkBytes: ChunkBytes { sizing.bytes }

  /// Makes the logic for ascending positions.
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

  /// A worker has prepared its chunk, or as many of its first positions as may be held at once; none
  /// of them if the work has ended before.
  ///
  /// - Parameters:
  ///   - chunk: The chunk as it was given out; from now on it ends at `end`.
  ///   - worker: The worker that prepared it.
  ///   - end: The first position that is not prepared; nil if all are.
  ///   - byteCount: The bytes that the chunk holds.
  ///   - duration: How long the preparation took.
  /// - Returns: The actions to perform.
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
    if reached.isEmpty { remaining.removeAll() }
    if isLost(chunk) || reached.isEmpty {
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

  /// A worker could not prepare its chunk, transiently or permanently; its partial result is kept.
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

  package mutating func committed(_ chunk: Range<Int>, took duration: Duration) -> [Action] {
    chunks.remove(at: settle(chunk))
    sizing.observe(chunk.count, took: duration)
    return next()
  }

  /// The writer could not commit a chunk, transiently or permanently; none of it is done.
  package mutating func failedToCommit(_ chunk: Range<Int>, isTransient: Bool = false) -> [Action] {
    let place = settle(chunk)
    if isLost(chunk) {
      chunks.remove(at: place)
      return next()
    }
    return isTransient ? retry(place) : fail(place)
  }

  /// The delay before the retry of a chunk is over.
  package mutating func rested(_ chunk: Range<Int>) -> [Action] {
    // The chunk may have been given up in the meantime.
    let place = chunks.firstIndex { $0.positions == chunk && $0.state == .resting }
    guard let place else { return [] }
    chunks[place].state = .due
    return next()
  }

  /// Begins nothing new; chunks in flight are finished, or dropped if the run is held.
  package mutating func stop() -> [Action] {
    guard case .running = phase else { return [] }
    phase = .stopping(.stopped)
    // In order, nothing is committed after positions that a worker has not prepared.
    givenUp = min(givenUp, remaining.last?.lowerBound ?? .max)
    return giveUp(positions { $0 == .resting || $0 == .due }) + next()
  }

  /// Gives nothing to workers or to the writer until ``release()``.
  ///
  /// If the run stops meanwhile, prepared chunks are dropped rather than waiting for the release.
  package mutating func hold() -> [Action] {
    if isHeld { return [] }
    isHeld = true
    guard case .stopping = phase else { return [] }
    return giveUp([]) + next()
  }

  package mutating func release() -> [Action] {
    isHeld = false
    return next()
  }

  /// Replaces the sizing of future chunks, and the number of chunks allowed at the writer.
  package mutating func tune(_ sizing: ChunkSizing, committing: Int) {
    self.sizing = sizing
    limits.committing = committing
  }

  /// Gives future chunks only to the first workers; the others finish theirs.
  package mutating func allow(workers count: Int) { allowedWorkers = count }

  /// Whether the run is held and no worker or writer is busy.
  package var isQuiet: Bool { isHeld && preparingCount == 0 && count(.committing) == 0 }

  package func tries(of chunk: Range<Int>) -> Int {
    chunks.first { $0.positions == chunk }?.failures ?? 0
  }

  // MARK: Spans

  /// The run now holds a span; the given parts of it are still to do.
  package mutating func grant(_ span: Range<Int>, remaining parts: [Range<Int>]) -> [Action] {
    spans.insert(span)
    for part in parts { remaining.insert(part, at: place(before: part)) }
    return next()
  }

  /// No span is free; the run claims again after ``claimAgain()``.
  package mutating func claimLater() -> [Action] {
    spans.claim = .resting
    return next()
  }

  /// The delay before the next claim is over.
  package mutating func claimAgain() -> [Action] {
    if spans.claim == .resting { spans.claim = .idle }
    return next()
  }

  /// All positions of the run are done, by this or other processes.
  package mutating func exhausted() -> [Action] {
    spans.claim = .exhausted
    return next()
  }

  /// A span was recorded as done, or belongs to another process.
  package mutating func closed(_ span: Range<Int>) -> [Action] {
    spans.remove(span)
    return next()
  }

  /// The span of a chunk; nil if it was lost, or if all positions were known at the start.
  package func openSpan(of chunk: Range<Int>) -> Range<Int>? { spans.span(.open, of: chunk) }

  /// A chunk was not committed since another process holds its span, so none of the span will be.
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

  /// Closes completed spans, removes lost ones whose chunks have all returned, and claims another.
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

  /// Whether another span is needed because less than a chunk per worker is left.
  ///
  /// A run in order processes spans one after another.
  private var wantsSpan: Bool {
    guard case .running = phase, !isHeld else { return false }
    if limits.inOrder { return remaining.isEmpty && chunks.isEmpty && spans.all.isEmpty }
    return remaining.reduce(0) { $0 + $1.count } < limits.workers * sizing.size
  }

  /// The index among the remaining positions, where the next ones are last.
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

  /// Releases a worker from its chunk, and returns the index of the chunk.
  private mutating func release(_ worker: Int, _ chunk: Range<Int>) -> Int {
    let place = chunks.firstIndex {
      $0.positions == chunk && $0.state == .preparing && $0.worker == worker
    }
    guard let place else { preconditionFailure("no worker prepares the chunk") }
    idleWorkers.append(worker)
    return place
  }

  /// Returns the index of a chunk that the writer has answered.
  private mutating func settle(_ chunk: Range<Int>) -> Int {
    let place = chunks.firstIndex { $0.positions == chunk && $0.state == .committing }
    guard let place else { preconditionFailure("the writer does not have the chunk") }
    chunks[place].bytes = 0
    return place
  }

  private func canCommit(_ chunk: Range<Int>) -> Bool {
    if isHeld, case .stopping = phase { return false }
    return !hasFailed && !(limits.inOrder && chunk.lowerBound > givenUp)
  }

  /// Schedules the retry of a chunk, unless it was tried often enough or the run is about to end.
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

  /// Leaves chunks to the next run, as well as prepared ones that can no longer be committed.
  private mutating func giveUp(_ positions: [Range<Int>]) -> [Action] {
    givenUp = positions.map(\.lowerBound).reduce(givenUp, min)
    let dropped = self.positions { $0 == .ready }.filter { !canCommit($0) }
    givenUp = dropped.map(\.lowerBound).reduce(givenUp, min)
    chunks.removeAll { (positions + dropped).contains($0.positions) }
    remaining += positions + dropped
    return dropped.map(Action.discard)
  }

  /// Takes back positions that a worker has not prepared: they are next, or left to the next run.
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

  /// Something other than a chunk failed, so prepared chunks are dropped.
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
  /// With a target, a chunk takes so long that sharing a transaction gains nothing, and chunks in
  /// flight have sizes from before a change. So one chunk at the writer, and those ready for its
  /// next transaction, are enough. Exports have no writer to wait for.
  private var depth: (committing: Int, inFlight: Int) {
    guard sizing.hasTarget, !limits.inOrder, !limits.workersCommit else {
      return (limits.committing, limits.inFlight)
    }
    guard let together = sizing.count(writtenIn: Limits.sharing) else {
      return (1, min(limits.workers + 1, limits.inFlight))
    }
    let committing = Int(max(1, min(together, Double(limits.committing))))
    // Twice the number written while one is prepared, since preparation times vary.
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

  /// The index, among the idle workers, of the one that prepares the next chunk.
  ///
  /// A worker that commits gets no more chunks than it may hold, so that no chunk waits behind a
  /// slow one while another worker is idle. In order, a chunk to retry must find a worker, however
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
    // Positions that a worker has not prepared come first; if the run stops, such chunks are given
    // up.
    if case .running = phase, let next = remaining.last,
      next.lowerBound < chunks[place].positions.lowerBound
    {
      return nil
    }
    return place == 0 ? place : nil
  }

  /// Whether there is memory for another chunk.
  ///
  /// One chunk is always allowed: in order, the chunks that hold the memory may be waiting for it.
  private var hasRoom: Bool {
    if preparingCount == 0, count(.committing) == 0 { return true }
    let expected = sizing.expectedBytes
    let held = Double(chunks.reduce(0) { $0 + $1.bytes }) + Double(preparingCount) * expected
    return held + expected <= Double(ChunkBytes.totalLimit)
  }

  private mutating func nextToPrepare() -> Int? {
    guard hasRoom else { return nil }
    if let place = first(.due) { return place }
    // Chunks waiting for their retry block no others, but their number is limited too.
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
    // The run was stopped when nothing was left to do, so it is complete.
    case .stopping(.stopped): return isComplete ? .completed : .stopped
    case .stopping(let ending): return ending
    case .ended: return nil
    }
  }
}
