import BatchIdentifiers

/// The logic of a run: which chunk is prepared by whom, which is committed next, when it ends.
///
/// It performs nothing. Each input returns the actions to perform, and whoever performs them says
/// what came of it with another input. So the whole of it can be tested without a database, a task
/// or a clock.
///
/// Bounds: at most one chunk a worker is being prepared, and at most ``Limits/inFlight`` chunks
/// exist between "handed to a worker" and "committed", however slow the writer is. Where sizes
/// follow a target there are fewer, since each of them has a size of the past, and where rows are large,
/// down to one, since all of them are in memory. A worker hands over the first positions of its chunk
/// when they hold enough; the others are handed out again before any later ones.
///
/// A chunk that fails transiently waits and is prepared again; it keeps its place among those in
/// flight, and what it holds, and the others go on as far as the order allows.
///
/// Positions are all there from the beginning, or are granted in spans while the run goes on, where
/// several processes share it. A span that is lost takes its chunks with it.
package struct RunStateMachine {
  /// How much may go on at once.
  package struct Limits {
    /// How many chunks are prepared at once.
    package var workers: Int
    /// How many chunks may be handed to the writer before it has answered.
    package var committing: Int
    /// How many chunks may be anywhere between worker and committed.
    package var inFlight: Int
    /// Whether chunks are committed in the order of their positions.
    package var inOrder: Bool
    /// How often a chunk is retried after transient failures.
    package var retries: Int
    /// Whether chunks that are committed at once share one transaction of one writer.
    package var sharesTransactions = true
    /// Whether positions are granted while the run goes on, beside those that it begins with.
    package var isGranted = false
    /// The first positions of what no chunk is cut within, ascending; none if chunks may end anywhere.
    package var units: [Int] = []

    /// Limits for a number of workers, and of writers if each has transactions of its own.
    package init(workers: Int, inOrder: Bool, retries: Int = 0, writers: Int? = nil) {
      self.workers = workers
      self.inOrder = inOrder
      self.retries = retries
      sharesTransactions = writers == nil
      // While one is committed the others wait at the writer, which goes on without asking, and
      // share its next transaction. In order, one at a time: two tasks that call the writer may
      // arrive the other way round.
      committing = inOrder ? 1 : writers ?? 8
      inFlight = 2 * workers + committing
    }

    /// How long chunks share a transaction of the writer; see `GroupCommit`.
    package static let sharing = Duration.milliseconds(20)
  }

  /// What is to be done.
  package enum Action: Hashable {
    /// Have a worker read and compute the chunk; answer with `prepared` or `failed`.
    case prepare(Range<Int>, worker: Int)
    /// Have the writer commit the prepared chunk; answer with `committed` or `failed`.
    case commit(Range<Int>)
    /// Let the chunk rest before its `attempt`th further try; answer with `rested`.
    case rest(Range<Int>, attempt: Int)
    /// Drop what was prepared: it will not be committed.
    case discard(Range<Int>)
    /// Ask for a span besides these, which the run has something of; answer with `grant`, `claimLater` or
    /// `exhausted`.
    case claim(besides: [Range<Int>])
    /// Record that all of a span is done; answer with `closed`.
    case close(Range<Int>)
    /// Nothing is going on any more.
    case end(Ending)
  }

  /// How a run ends.
  package enum Ending: Hashable {
    /// Every position is done.
    case completed
    /// It was told to stop and the chunks in flight are committed.
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
      /// New, or has rested: a worker prepares it next.
      case due
      case preparing(worker: Int)
      /// Prepared, and waits for the writer.
      case ready
      case committing
      /// Failed transiently, and waits for its retry.
      case resting
      /// Failed for good, and the run with it.
      case failed
    }

    var positions: Range<Int>
    var state: State
    /// How often it has failed transiently.
    var failures = 0
    /// What it holds while it waits for the writer, or for its next try.
    var bytes = 0

    /// Whether nobody is at work on it.
    var isWaiting: Bool { [.due, .ready, .resting].contains(state) }
  }

  private var limits: Limits
  private var sizing: ChunkSizing
  private var phase = Phase.running
  /// Whether nothing may be handed out.
  private var isHeld = false
  /// Whether the run ends, or has ended, with a failure.
  package private(set) var hasFailed = false
  /// What is to be handed out, the next positions last.
  private var remaining: [Range<Int>]
  private var idleWorkers: [Int]
  /// The chunks that are handed out and not committed, ascending.
  private var chunks: [Chunk] = []
  /// The spans that were granted; none where all positions are there from the beginning.
  private var spans = GrantedSpans()
  /// The first position that will not be committed any more; in order, nothing after it will be.
  private var givenUp = Int.max

  /// The size of the next chunk.
  package var chunkSize: Int { sizing.size }

  /// What is known of what chunks hold.
  package var chunkBytes: ChunkBytes { sizing.bytes }

  /// A run over positions, ascending, in chunks of at most the size that `sizing` says.
  package init(remaining: [Range<Int>], sizing: ChunkSizing, limits: Limits) {
    precondition(limits.workers > 0, "a run without workers")
    self.limits = limits
    self.sizing = sizing
    self.remaining = remaining.reversed()
    idleWorkers = Array((0..<limits.workers).reversed())
  }

  // MARK: Inputs

  /// Begins.
  package mutating func start() -> [Action] { next() }

  /// A worker has prepared its chunk, or as many of its first positions as are to be held at once,
  /// which took so long.
  ///
  /// - Parameters:
  ///   - chunk: The chunk as it was handed out; from here on it ends at `end`.
  ///   - worker: The worker.
  ///   - end: The first position that was not reached; nil if all were.
  ///   - byteCount: What is held for it.
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
    precondition(!reached.isEmpty, "a chunk of which nothing was prepared")
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

  /// A worker could not prepare its chunk, transiently or for good; so many bytes are kept of what it
  /// could.
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

  /// The writer has committed a chunk, which took so long.
  package mutating func committed(_ chunk: Range<Int>, took duration: Duration) -> [Action] {
    chunks.remove(at: settle(chunk))
    sizing.observe(chunk.count, took: duration)
    return next()
  }

  /// The writer could not commit a chunk, transiently or for good; it is as if it had not been
  /// tried.
  package mutating func failedToCommit(_ chunk: Range<Int>, isTransient: Bool = false) -> [Action] {
    let place = settle(chunk)
    if isLost(chunk) {
      chunks.remove(at: place)
      return next()
    }
    return isTransient ? retry(place) : fail(place)
  }

  /// A chunk has rested.
  package mutating func rested(_ chunk: Range<Int>) -> [Action] {
    // It may have been given up meanwhile.
    let place = chunks.firstIndex { $0.positions == chunk && $0.state == .resting }
    guard let place else { return [] }
    chunks[place].state = .due
    return next()
  }

  /// Begins nothing new; what is in flight is finished, or dropped where the run is held.
  package mutating func stop() -> [Action] {
    guard case .running = phase else { return [] }
    phase = .stopping(.stopped)
    // In order, nothing is committed that comes after positions that a worker did not reach.
    givenUp = min(givenUp, remaining.last?.lowerBound ?? .max)
    return giveUp(positions { $0 == .resting || $0 == .due }) + next()
  }

  /// Hands nothing out any more, neither to workers nor to the writer, until ``release()``; what is
  /// prepared is dropped where the run stops, which need not wait for that.
  package mutating func hold() -> [Action] {
    if isHeld { return [] }
    isHeld = true
    guard case .stopping = phase else { return [] }
    return giveUp([]) + next()
  }

  /// Goes on after ``hold()``.
  package mutating func release() -> [Action] {
    isHeld = false
    return next()
  }

  /// Sizes the chunks to come anew, and lets so many be at the writer.
  package mutating func tune(_ sizing: ChunkSizing, committing: Int) {
    self.sizing = sizing
    limits.committing = committing
  }

  /// Whether the run is held and what had been handed out has come back.
  package var isQuiet: Bool { isHeld && preparingCount == 0 && count(.committing) == 0 }

  /// How often a chunk has failed transiently.
  package func tries(of chunk: Range<Int>) -> Int {
    chunks.first { $0.positions == chunk }?.failures ?? 0
  }

  // MARK: Spans

  /// A span is the run's own, of which some positions are still to do.
  package mutating func grant(_ span: Range<Int>, remaining parts: [Range<Int>]) -> [Action] {
    spans.insert(span)
    for part in parts { remaining.insert(part, at: place(before: part)) }
    return next()
  }

  /// There is no span to be had now; asks again after ``claimAgain()``.
  package mutating func claimLater() -> [Action] {
    spans.claim = .resting
    return next()
  }

  /// Time has gone by since there was no span to be had.
  package mutating func claimAgain() -> [Action] {
    if spans.claim == .resting { spans.claim = .idle }
    return next()
  }

  /// All positions of the run are done, by whomever.
  package mutating func exhausted() -> [Action] {
    spans.claim = .exhausted
    return next()
  }

  /// It is recorded that all of a span is done, or the span is another process's.
  package mutating func closed(_ span: Range<Int>) -> [Action] {
    spans.remove(span)
    return next()
  }

  /// The span that a chunk is of; nil if all positions were there from the beginning, or it was lost.
  package func openSpan(of chunk: Range<Int>) -> Range<Int>? { spans.span(.open, of: chunk) }

  /// A chunk was not committed, and nothing of its span will be: another process has it.
  ///
  /// What is in other hands of it is dropped when it comes back.
  package mutating func lost(_ chunk: Range<Int>) -> [Action] {
    precondition(limits.isGranted, "a span is lost that nobody granted")
    chunks.remove(at: settle(chunk))
    guard let span = openSpan(of: chunk) else { return next() }
    spans.set(span, .lost)
    remaining.removeAll { $0.overlaps(span) }
    let dropped = chunks.filter { $0.isWaiting && $0.positions.overlaps(span) }.map(\.positions)
    chunks.removeAll { dropped.contains($0.positions) }
    return dropped.map(Action.discard) + next()
  }

  private func isLost(_ chunk: Range<Int>) -> Bool { spans.span(.lost, of: chunk) != nil }

  /// Closes the spans of which all is done, forgets those that are lost once nobody has anything of them,
  /// and asks for another one.
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

  /// Whether another span is wanted: there is less left than a chunk for each worker.
  ///
  /// In order, one span is done after the other.
  private var wantsSpan: Bool {
    guard case .running = phase, !isHeld else { return false }
    if limits.inOrder { return remaining.isEmpty && chunks.isEmpty && spans.all.isEmpty }
    return remaining.reduce(0) { $0 + $1.count } < limits.workers * sizing.size
  }

  /// Where positions stand among those that remain, the next of which are last.
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

  /// The place of a chunk that a worker has come back with.
  private mutating func release(_ worker: Int, _ chunk: Range<Int>) -> Int {
    guard let place = first(.preparing(worker: worker)), chunks[place].positions == chunk else {
      preconditionFailure("a chunk nobody prepares")
    }
    idleWorkers.append(worker)
    return place
  }

  /// The place of a chunk that the writer has answered.
  private mutating func settle(_ chunk: Range<Int>) -> Int {
    let place = chunks.firstIndex { $0.positions == chunk && $0.state == .committing }
    guard let place else { preconditionFailure("a chunk nobody commits") }
    chunks[place].bytes = 0
    return place
  }

  /// Whether a prepared chunk may still be committed.
  private func canCommit(_ chunk: Range<Int>) -> Bool {
    if isHeld, case .stopping = phase { return false }
    return !hasFailed && !(limits.inOrder && chunk.lowerBound > givenUp)
  }

  /// Lets a chunk that failed transiently wait, unless it has been tried often enough or the run
  /// is about to end.
  private mutating func retry(_ place: Int) -> [Action] {
    chunks[place].failures += 1
    let (positions, attempt) = (chunks[place].positions, chunks[place].failures)
    switch phase {
    case .running where attempt <= limits.retries:
      chunks[place].state = .resting
      return [.rest(positions, attempt: attempt)] + next()
    case .stopping(.stopped): return giveUp([positions]) + next()
    default: return fail(place)
    }
  }

  /// Leaves chunks to the next run, and what was prepared and cannot be committed now.
  private mutating func giveUp(_ positions: [Range<Int>]) -> [Action] {
    givenUp = positions.map(\.lowerBound).reduce(givenUp, min)
    let dropped = self.positions { $0 == .ready }.filter { !canCommit($0) }
    givenUp = dropped.map(\.lowerBound).reduce(givenUp, min)
    chunks.removeAll { (positions + dropped).contains($0.positions) }
    remaining += positions + dropped
    return dropped.map(Action.discard)
  }

  /// Takes positions back that a worker did not reach: they are the next to be handed out, or left to
  /// the next run.
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

  /// Something beside the chunks went wrong: what is prepared is dropped.
  package mutating func fail() -> [Action] {
    if case .ended = phase { return [] }
    phase = .stopping(.failed)
    hasFailed = true
    let dropped = positions { $0 == .ready }
    chunks.removeAll(where: \.isWaiting)
    return dropped.map(Action.discard) + next()
  }

  /// How many chunks may be at the writer, and how many anywhere, as things go.
  ///
  /// A chunk that takes as long as a target gains nothing from company, and all that were sized
  /// before a size changed are still to come: one at the writer and what is ready for its next
  /// transaction are enough. Exports have no writer to wait for.
  private var depth: (committing: Int, inFlight: Int) {
    guard sizing.hasTarget, !limits.inOrder, limits.sharesTransactions else {
      return (limits.committing, limits.inFlight)
    }
    guard let together = sizing.count(writtenIn: Limits.sharing) else {
      return (1, min(limits.workers + 1, limits.inFlight))
    }
    let committing = Int(max(1, min(together, Double(limits.committing))))
    // Twice what is written while one is prepared, since preparations are not even.
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
      while let worker = idleWorkers.last, let place = nextToPrepare() {
        idleWorkers.removeLast()
        chunks[place].state = .preparing(worker: worker)
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

  private func nextToCommit() -> Int? {
    guard let place = first(.ready) else { return nil }
    guard limits.inOrder else { return place }
    // What a worker did not reach comes first; when the run stops such chunks are given up.
    if case .running = phase, let next = remaining.last,
      next.lowerBound < chunks[place].positions.lowerBound
    {
      return nil
    }
    return place == 0 ? place : nil
  }

  /// Whether there is memory for one chunk more.
  ///
  /// One there may always be: in order, it may be what those that hold the memory wait for.
  private var hasRoom: Bool {
    if preparingCount == 0, count(.committing) == 0 { return true }
    let expected = sizing.expectedBytes
    let held = Double(chunks.reduce(0) { $0 + $1.bytes }) + Double(preparingCount) * expected
    return held + expected <= Double(ChunkBytes.totalLimit)
  }

  /// The place of the chunk that a worker prepares next.
  private mutating func nextToPrepare() -> Int? {
    guard hasRoom else { return nil }
    if let place = first(.due) { return place }
    // Those that rest are in nobody's way, but they are bounded too.
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
    // Told to stop when nothing was left to do: it is complete.
    case .stopping(.stopped): return isComplete ? .completed : .stopped
    case .stopping(let ending): return ending
    case .ended: return nil
    }
  }
}
