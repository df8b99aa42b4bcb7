/// The logic of a run: which chunk is prepared by whom, which is committed next, when it ends.
///
/// It performs nothing. Each input returns the actions to perform, and whoever performs them says
/// what came of it with another input. So the whole of it can be tested without a database, a task
/// or a clock.
///
/// Bounds: at most one chunk a worker is being prepared, and at most ``Limits/inFlight`` chunks
/// exist between "handed to a worker" and "committed", however slow the writer is.
struct RunStateMachine {
  /// How much may go on at once.
  struct Limits {
    /// How many chunks are prepared at once.
    var workers: Int
    /// How many chunks may be handed to the writer before it has answered.
    var committing: Int
    /// How many chunks may be anywhere between worker and committed.
    var inFlight: Int
    /// Whether chunks are committed in the order of their positions.
    var inOrder: Bool

    /// Limits for a number of workers.
    init(workers: Int, inOrder: Bool) {
      self.workers = workers
      self.inOrder = inOrder
      // The second one waits at the writer, which goes on without asking. In order, one at a time:
      // two tasks that call the writer may arrive the other way round.
      committing = inOrder ? 1 : 2
      inFlight = 2 * workers + committing
    }
  }

  /// What is to be done.
  enum Action: Hashable {
    /// Have a worker read and compute the chunk; answer with `prepared` or `failed`.
    case prepare(Range<Int>, worker: Int)
    /// Have the writer commit the prepared chunk; answer with `committed` or `failed`.
    case commit(Range<Int>)
    /// Drop what was prepared: it will not be committed.
    case discard(Range<Int>)
    /// Nothing is going on any more.
    case end(Ending)
  }

  /// How a run ends.
  enum Ending: Hashable {
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

  private let limits: Limits
  private var sizing: ChunkSizing
  private var phase = Phase.running
  private var remaining: [Range<Int>]
  private var idleWorkers: [Int]
  private var preparing: [Int: Range<Int>] = [:]
  /// Prepared chunks that wait for the writer.
  private var waiting: [Range<Int>] = []
  private var committing: Set<Range<Int>> = []
  /// The first positions of chunks that are handed out and not committed, for the order.
  private var uncommitted: [Int] = []

  /// A run over positions, ascending, in chunks of at most the size that `sizing` says.
  init(remaining: [Range<Int>], sizing: ChunkSizing, limits: Limits) {
    precondition(limits.workers > 0, "a run without workers")
    self.limits = limits
    self.sizing = sizing
    self.remaining = remaining.reversed()
    idleWorkers = Array((0..<limits.workers).reversed())
  }

  // MARK: Inputs

  /// Begins.
  mutating func start() -> [Action] { next() }

  /// A worker has prepared its chunk.
  mutating func prepared(_ chunk: Range<Int>, worker: Int) -> [Action] {
    release(worker, chunk)
    if case .stopping(.failed) = phase { return [.discard(chunk)] + next() }
    waiting.insert(
      chunk,
      at: waiting.firstIndex { $0.lowerBound > chunk.lowerBound } ?? waiting.count
    )
    return next()
  }

  /// A worker could not prepare its chunk.
  mutating func failedToPrepare(_ chunk: Range<Int>, worker: Int) -> [Action] {
    release(worker, chunk)
    return fail()
  }

  /// The writer has committed a chunk, which took so long.
  mutating func committed(_ chunk: Range<Int>, took duration: Duration) -> [Action] {
    settle(chunk)
    sizing.observe(chunk.count, took: duration)
    return next()
  }

  /// The writer could not commit a chunk; it is as if it had not been tried.
  mutating func failedToCommit(_ chunk: Range<Int>) -> [Action] {
    settle(chunk)
    return fail()
  }

  /// Begins nothing new; what is in flight is finished.
  mutating func stop() -> [Action] {
    guard case .running = phase else { return [] }
    phase = .stopping(.stopped)
    return next()
  }

  // MARK: Decisions

  private mutating func release(_ worker: Int, _ chunk: Range<Int>) {
    precondition(preparing.removeValue(forKey: worker) == chunk, "a chunk nobody prepares")
    idleWorkers.append(worker)
  }

  private mutating func settle(_ chunk: Range<Int>) {
    precondition(committing.remove(chunk) != nil, "a chunk nobody commits")
    uncommitted.removeAll { $0 == chunk.lowerBound }
  }

  /// Something beside the chunks went wrong: what is prepared is dropped.
  mutating func fail() -> [Action] {
    if case .ended = phase { return [] }
    phase = .stopping(.failed)
    let dropped = waiting.map(Action.discard)
    waiting.removeAll()
    return dropped + next()
  }

  private mutating func next() -> [Action] {
    var actions: [Action] = []
    while committing.count < limits.committing, let chunk = nextToCommit() {
      waiting.removeFirst()
      committing.insert(chunk)
      actions.append(.commit(chunk))
    }
    if case .running = phase {
      while uncommitted.count < limits.inFlight, !idleWorkers.isEmpty, let chunk = nextChunk() {
        let worker = idleWorkers.removeLast()
        preparing[worker] = chunk
        uncommitted.append(chunk.lowerBound)
        actions.append(.prepare(chunk, worker: worker))
      }
    }
    if let ending = ending() {
      phase = .ended
      actions.append(.end(ending))
    }
    return actions
  }

  private func nextToCommit() -> Range<Int>? {
    guard let chunk = waiting.first else { return nil }
    if limits.inOrder, chunk.lowerBound != uncommitted.first { return nil }
    return chunk
  }

  private mutating func nextChunk() -> Range<Int>? {
    guard let gap = remaining.popLast() else { return nil }
    let chunk = gap.prefix(sizing.size)
    if chunk.endIndex < gap.upperBound { remaining.append(chunk.endIndex..<gap.upperBound) }
    return gap.lowerBound..<chunk.endIndex
  }

  private func ending() -> Ending? {
    guard preparing.isEmpty, waiting.isEmpty, committing.isEmpty else { return nil }
    switch phase {
    case .running: return remaining.isEmpty ? .completed : nil
    // Told to stop when nothing was left to do: it is complete.
    case .stopping(.stopped): return remaining.isEmpty ? .completed : .stopped
    case .stopping(let ending): return ending
    case .ended: return nil
    }
  }
}
