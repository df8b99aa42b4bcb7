@testable import BatchRuns
import BatchTestSupport
import Testing

/// The run's logic under drivers that do everything that a machine and a user may do.
@Suite struct RunStateMachineTests {
  /// Performs actions in random order and keeps an account of them.
  private struct Driver {
    var machine: RunStateMachine
    var random: SeededGenerator
    let limits: RunStateMachine.Limits
    /// The effects handed out and not answered.
    var preparing: [(chunk: Range<Int>, worker: Int)] = []
    var committing: [Range<Int>] = []
    /// Chunks that rest, and when their rest is over on the driver's own clock.
    var resting: [(chunk: Range<Int>, until: Duration)] = []
    var now = Duration.zero
    /// How often each chunk was prepared, by its first position.
    var tries: [Int: Int] = [:]
    let backoff: Backoff
    /// Whether workers hand over as many of the first positions of a chunk as they like.
    var arePartial = false
    var prepared: Set<Range<Int>> = []
    var committed: [Range<Int>] = []
    var discarded: Set<Range<Int>> = []
    var ending: RunStateMachine.Ending?
    var isHeld = false
    var isStopped = false
    var hasFailed = false
    var problems: [String] = []

    init(
      remaining: [Range<Int>],
      sizing: ChunkSizing,
      limits: RunStateMachine.Limits,
      random: SeededGenerator
    ) {
      machine = RunStateMachine(
        remaining: remaining,
        sizing: sizing,
        limits: limits
      )
      self.limits = limits
      self.random = random
      backoff = Backoff(
        RunPolicy.Retry(
          limit: limits.retries,
          backoff: .milliseconds(10),
          maximumBackoff: .milliseconds(50)
        )
      )
      perform(machine.start())
    }

    private mutating func require(_ condition: Bool, _ problem: String) {
      if !condition { problems.append(problem) }
    }

    private mutating func perform(_ actions: [RunStateMachine.Action]) {
      for action in actions {
        require(ending == nil, "an action after the end")
        switch action {
        case .prepare(let chunk, let worker):
          require(!preparing.contains { $0.worker == worker }, "a worker has two chunks")
          require((0..<limits.workers).contains(worker), "there is no such worker")
          require(!isStopped && !hasFailed, "something new after the stop")
          require(!isHeld, "something new while held")
          require(!resting.contains { $0.chunk == chunk }, "a chunk is tried while it rests")
          tries[chunk.lowerBound, default: 0] += 1
          require(tries[chunk.lowerBound] ?? 0 <= limits.retries + 1, "tried too often")
          preparing.append((chunk, worker))
        case .commit(let chunk):
          require(prepared.remove(chunk) != nil, "a chunk is committed that is not prepared")
          require(!isHeld, "a chunk is handed to the writer while held")
          require(!hasFailed, "a chunk is handed to the writer after a failure")
          if limits.inOrder, let last = (committing + committed).map(\.lowerBound).max() {
            require(chunk.lowerBound > last, "out of order")
          }
          committing.append(chunk)
        case .rest(let chunk, let attempt):
          require(!isStopped && !hasFailed, "a rest that is of no use")
          require(attempt == tries[chunk.lowerBound], "tries are counted wrong")
          resting.append((chunk, now + backoff.delay(before: attempt, using: &random)))
        case .claim, .close: require(false, "a run asks for spans that has all")
        case .discard(let chunk):
          require(prepared.remove(chunk) != nil, "a chunk is dropped that is not prepared")
          require(
            hasFailed || isStopped && (limits.inOrder || isHeld),
            "a chunk is dropped without need"
          )
          discarded.insert(chunk)
        case .end(let ending):
          require(preparing.isEmpty && committing.isEmpty && prepared.isEmpty, "an early end")
          self.ending = ending
        }
      }
      require(committing.count <= limits.committing, "too much at the writer")
      require(
        hasFailed || isStopped
          || preparing.count + prepared.count + committing.count + resting.count
            <= limits.inFlight,
        "too much in flight"
      )
    }

    /// Reports that a chunk failed, transiently if it may be retried.
    private mutating func fail(
      _ chunk: Range<Int>,
      _ isTransient: Bool,
      _ actions: [RunStateMachine.Action]
    ) {
      let rests = actions.contains { if case .rest = $0 { true } else { false } }
      if isTransient, !isStopped, !hasFailed {
        require(
          rests == (tries[chunk.lowerBound] ?? 0 <= limits.retries),
          "a wrong number of tries"
        )
      } else {
        require(!rests, "a chunk rests that failed for good")
      }
      if !rests, !isTransient || !isStopped { hasFailed = true }
      perform(actions)
    }

    /// Runs to the end, failing and stopping with the given chances in a thousand.
    mutating func run(failing: Int, stopping: Int) {
      var steps = 0
      while ending == nil {
        steps += 1
        let isIdle = preparing.isEmpty && committing.isEmpty
        guard steps < 10_000, !isIdle || !resting.isEmpty || isHeld else {
          problems.append("nothing is going on and there is no end")
          return
        }
        if Int.random(in: 0..<1_000, using: &random) < stopping {
          isStopped = true
          resting.removeAll()
          perform(machine.stop())
          continue
        }
        if isHeld ? isIdle || .random(using: &random) : Int.random(in: 0..<12, using: &random) == 0
        {
          isHeld.toggle()
          perform(isHeld ? machine.hold() : machine.release())
          require(machine.isQuiet == (isHeld && isIdle), "quiet is told wrong")
          continue
        }
        // Time passes when nothing else can happen, and now and then before.
        if isIdle || Int.random(in: 0..<8, using: &random) == 0,
          let next = resting.indices.min(by: { resting[$0].until < resting[$1].until })
        {
          let (chunk, until) = resting.remove(at: next)
          now = max(now, until)
          perform(machine.rested(chunk))
          continue
        }
        let isFailing = Int.random(in: 0..<1_000, using: &random) < failing
        let isFault = isFailing && Int.random(in: 0..<4, using: &random) == 0
        let isTransient = Int.random(in: 0..<4, using: &random) > 0
        if isFault {
          hasFailed = true
          resting.removeAll()
          perform(machine.fail())
          continue
        }
        let index = Int.random(in: 0..<(preparing.count + committing.count), using: &random)
        if index < preparing.count {
          let (chunk, worker) = preparing.remove(at: index)
          if isFailing {
            fail(
              chunk,
              isTransient,
              machine.failedToPrepare(chunk, worker: worker, isTransient: isTransient)
            )
          } else {
            let isPartial = arePartial && .random(using: &random)
            let end = isPartial ? Int.random(in: chunk, using: &random) + 1 : chunk.upperBound
            prepared.insert(chunk.lowerBound..<end)
            let bytes =
              arePartial ? Int.random(in: 0...2 * ChunkBytes.chunkLimit, using: &random) : 0
            let duration = Duration.microseconds(Int.random(in: 0...100_000, using: &random))
            perform(
              machine.prepared(chunk, worker: worker, upTo: end, holding: bytes, took: duration)
            )
          }
        } else {
          let chunk = committing.remove(at: index - preparing.count)
          if isFailing {
            fail(
              chunk,
              isTransient,
              machine.failedToCommit(chunk, isTransient: isTransient)
            )
          } else {
            committed.append(chunk)
            let duration = Duration.microseconds(Int.random(in: 0...100_000, using: &random))
            perform(machine.committed(chunk, took: duration))
          }
        }
      }
      // A late process is heard and gets nothing to do.
      perform(machine.stop())
      perform(machine.fail())
    }
  }

  private func remaining(using random: inout SeededGenerator) -> [Range<Int>] {
    var ranges: [Range<Int>] = []
    var start = 0
    for _ in 0..<Int.random(in: 0...4, using: &random) {
      start += Int.random(in: 0...5, using: &random)
      let end = start + Int.random(in: 1...40, using: &random)
      ranges.append(start..<end)
      start = end + 1
    }
    return ranges
  }

  @Test(
    arguments: [(0, 0), (0, 20), (15, 0), (15, 15), (200, 100)],
    Array(0..<4 as Range<UInt64>).flatMap { [($0, false), ($0, true)] }
  )
  func `a run keeps its guarantees under random schedules`(
    chances: (failing: Int, stopping: Int),
    schedule: (seed: UInt64, isPartial: Bool)
  ) {
    let (seed, isPartial) = schedule
    var random = SeededGenerator(seed: seed)
    for _ in 0..<400 {
      let ranges = remaining(using: &random)
      let limits = RunStateMachine.Limits(
        workers: .random(in: 1...5, using: &random),
        inOrder: .random(using: &random),
        retries: .random(in: 0...3, using: &random)
      )
      let size = Int.random(in: 1...9, using: &random)
      var driver = Driver(
        remaining: ranges,
        sizing: ChunkSizing(
          size,
          target: .random(using: &random)
            ? .milliseconds(.random(in: 1...100, using: &random)) : nil,
          bounds: 1...size
        ),
        limits: limits,
        random: SeededGenerator(seed: random.next())
      )
      driver.arePartial = isPartial
      driver.run(failing: chances.failing, stopping: chances.stopping)
      #expect(driver.problems == [])
      let positions = driver.committed.flatMap { Array($0) }
      #expect(Set(positions).count == positions.count, "a position is committed twice")
      let all = Set(ranges.joined())
      #expect(all.isSuperset(of: positions))
      #expect(driver.committed.allSatisfy { $0.count <= size })
      if limits.inOrder { #expect(positions == positions.sorted()) }
      switch driver.ending {
      case .completed:
        #expect(Set(positions) == all)
        #expect(!driver.hasFailed)
      case .stopped:
        #expect(driver.isStopped && !driver.hasFailed)
        #expect(driver.discarded.isDisjoint(with: driver.committed))
        #expect(Set(positions) != all)
      case .failed: #expect(driver.hasFailed)
      case nil: Issue.record("there is no end")
      }
      if chances == (0, 0) { #expect(driver.ending == .completed) }
      // In order, the committed positions are always a prefix.
      if limits.inOrder {
        #expect(Array(all.sorted().prefix(positions.count)) == positions)
      }
    }
  }

  @Test func `a run over no identifiers completes immediately`() {
    var machine = RunStateMachine(
      remaining: [],
      sizing: ChunkSizing(10),
      limits: .init(workers: 3, inOrder: false)
    )
    #expect(machine.start() == [.end(.completed)])
    #expect(machine.stop() == [])
    #expect(machine.fail() == [])
  }

  @Test func `work that ends before its last position is complete when the rest is committed`() {
    var machine = RunStateMachine(
      remaining: [0..<(1 << 48)],
      sizing: ChunkSizing(10),
      limits: .init(workers: 1, inOrder: true)
    )
    let time = Duration.milliseconds(1)
    #expect(machine.start() == [.prepare(0..<10, worker: 0)])
    #expect(
      machine.prepared(0..<10, worker: 0, upTo: 4, took: time)
        == [.commit(0..<4), .prepare(4..<14, worker: 0)]
    )
    #expect(machine.prepared(4..<14, worker: 0, upTo: 4, took: time) == [.discard(4..<4)])
    #expect(machine.committed(0..<4, took: time) == [.end(.completed)])
  }

  @Test func `a run that is stopped before the first answer finishes the chunks in flight`() {
    var machine = RunStateMachine(
      remaining: [0..<100],
      sizing: ChunkSizing(10),
      limits: .init(workers: 2, inOrder: false)
    )
    #expect(machine.start() == [.prepare(0..<10, worker: 0), .prepare(10..<20, worker: 1)])
    #expect(machine.stop() == [])
    #expect(machine.prepared(10..<20, worker: 1, took: .milliseconds(1)) == [.commit(10..<20)])
    #expect(machine.prepared(0..<10, worker: 0, took: .milliseconds(1)) == [.commit(0..<10)])
    #expect(machine.committed(10..<20, took: .milliseconds(1)) == [])
    #expect(machine.committed(0..<10, took: .milliseconds(1)) == [.end(.stopped)])
  }

  @Test func `a chunk that fails transiently waits for its retry while others continue`() {
    var machine = RunStateMachine(
      remaining: [0..<30],
      sizing: ChunkSizing(10),
      limits: .init(workers: 1, inOrder: false, retries: 2)
    )
    #expect(machine.start() == [.prepare(0..<10, worker: 0)])
    #expect(
      machine.failedToPrepare(0..<10, worker: 0, isTransient: true)
        == [.rest(0..<10, attempt: 1), .prepare(10..<20, worker: 0)]
    )
    #expect(
      machine.prepared(10..<20, worker: 0, took: .milliseconds(1)) == [
        .commit(10..<20), .prepare(20..<30, worker: 0),
      ]
    )
    // Its turn comes with the next idle worker, before anything new.
    #expect(machine.rested(0..<10) == [])
    #expect(machine.committed(10..<20, took: .milliseconds(1)) == [])
    #expect(
      machine.prepared(20..<30, worker: 0, took: .milliseconds(1)) == [
        .commit(20..<30), .prepare(0..<10, worker: 0),
      ]
    )
    #expect(machine.prepared(0..<10, worker: 0, took: .milliseconds(1)) == [.commit(0..<10)])
    #expect(
      machine.failedToCommit(0..<10, isTransient: true) == [.rest(0..<10, attempt: 2)]
    )
    #expect(machine.committed(20..<30, took: .milliseconds(1)) == [])
    #expect(machine.rested(0..<10) == [.prepare(0..<10, worker: 0)])
    #expect(
      machine.failedToPrepare(0..<10, worker: 0, isTransient: true) == [.end(.failed)]
    )
    #expect(machine.hasFailed && machine.tries(of: 0..<10) == 3)
  }

  @Test func `a stop cancels waiting retries and drops later chunks of an ordered run`() {
    var machine = RunStateMachine(
      remaining: [0..<30],
      sizing: ChunkSizing(10),
      limits: .init(workers: 2, inOrder: true, retries: 5)
    )
    #expect(machine.start() == [.prepare(0..<10, worker: 0), .prepare(10..<20, worker: 1)])
    #expect(
      machine.failedToPrepare(0..<10, worker: 0, isTransient: true)
        == [.rest(0..<10, attempt: 1), .prepare(20..<30, worker: 0)]
    )
    #expect(machine.prepared(10..<20, worker: 1, took: .milliseconds(1)) == [])
    #expect(machine.stop() == [.discard(10..<20)])
    #expect(machine.rested(0..<10) == [])
    #expect(
      machine.prepared(20..<30, worker: 0, took: .milliseconds(1)) == [
        .discard(20..<30), .end(.stopped),
      ]
    )
  }

  @Test func `positions that a worker did not reach are handed out before later ones`() {
    var machine = RunStateMachine(
      remaining: [0..<30],
      sizing: ChunkSizing(10),
      limits: .init(workers: 2, inOrder: true)
    )
    #expect(machine.start() == [.prepare(0..<10, worker: 0), .prepare(10..<20, worker: 1)])
    #expect(
      machine.prepared(0..<10, worker: 0, upTo: 4, took: .zero) == [
        .commit(0..<4), .prepare(4..<10, worker: 0),
      ]
    )
    #expect(
      machine.prepared(10..<20, worker: 1, upTo: 13, took: .zero) == [
        .prepare(13..<23, worker: 1)
      ]
    )
    // Not before what comes before it.
    #expect(machine.committed(0..<4, took: .zero) == [])
    #expect(
      machine.prepared(4..<10, worker: 0, upTo: 9, took: .zero) == [
        .commit(4..<9), .prepare(9..<10, worker: 0),
      ]
    )
    #expect(machine.committed(4..<9, took: .zero) == [])
    // Nobody will prepare it any more.
    #expect(machine.stop() == [])
    #expect(machine.prepared(9..<10, worker: 0, took: .zero) == [.commit(9..<10)])
    #expect(machine.committed(9..<10, took: .zero) == [.commit(10..<13)])
    #expect(machine.prepared(13..<23, worker: 1, upTo: 20, took: .zero) == [])
    #expect(machine.committed(10..<13, took: .zero) == [.commit(13..<20)])
    #expect(machine.committed(13..<20, took: .zero) == [.end(.stopped)])
  }

  @Test func `a stopping ordered run drops the chunks after positions that were not reached`() {
    var machine = RunStateMachine(
      remaining: [0..<30],
      sizing: ChunkSizing(10),
      limits: .init(workers: 3, inOrder: true)
    )
    #expect(machine.start().count == 3)
    #expect(machine.prepared(10..<20, worker: 1, took: .zero) == [])
    #expect(machine.stop() == [])
    #expect(
      machine.prepared(0..<10, worker: 0, upTo: 4, took: .zero) == [
        .discard(10..<20), .commit(0..<4),
      ]
    )
    #expect(machine.prepared(20..<30, worker: 2, took: .zero) == [.discard(20..<30)])
    #expect(machine.committed(0..<4, took: .zero) == [.end(.stopped)])
  }

  /// Runs over rows of a given size, answering the oldest first, and returns the maximum held at
  /// once.
  private func most(
    heldOver count: Int,
    rowsOf rowBytes: Int,
    workers: Int,
    inOrder: Bool,
    guess: Double
  ) -> (bytes: Int, committed: Int) {
    var machine = RunStateMachine(
      remaining: [0..<count],
      sizing: ChunkSizing(1000, bytes: ChunkBytes(perRow: guess)),
      limits: .init(workers: workers, inOrder: inOrder)
    )
    var actions = machine.start()
    var most = 0
    var held: [Int: Int] = [:]
    var committed = 0
    while !actions.isEmpty {
      switch actions.removeFirst() {
      case .prepare(let chunk, let worker):
        let rows = min(chunk.count, max(1, (ChunkBytes.chunkLimit + rowBytes - 1) / rowBytes))
        held[chunk.lowerBound] = rows * rowBytes
        most = max(most, held.values.reduce(0, +))
        actions += machine.prepared(
          chunk,
          worker: worker,
          upTo: chunk.lowerBound + rows,
          holding: rows * rowBytes,
          took: .milliseconds(1)
        )
      case .commit(let chunk):
        committed += chunk.count
        held[chunk.lowerBound] = nil
        actions += machine.committed(chunk, took: .milliseconds(1))
      case .end(let ending): #expect(ending == .completed)
      case .rest, .discard: Issue.record("a chunk failed that did not")
      case .claim, .close: Issue.record("a run asks for spans that has all")
      }
    }
    return (most, committed)
  }

  @Test(arguments: [true, false], [1, 100, 100_000, 5_000_000, 50_000_000])
  func `chunks in flight are bounded in bytes`(inOrder: Bool, rowBytes: Int) {
    for workers in [1, 2, 16] {
      let (bytes, committed) = most(
        heldOver: 5000,
        rowsOf: rowBytes,
        workers: workers,
        inOrder: inOrder,
        guess: Double(rowBytes) * 1.1
      )
      #expect(committed == 5000)
      #expect(bytes <= max(ChunkBytes.totalLimit, rowBytes))
    }
  }

  @Test func `a held run hands out no chunk and resumes where it stopped`() {
    var machine = RunStateMachine(
      remaining: [0..<30],
      sizing: ChunkSizing(10),
      limits: .init(workers: 2, inOrder: false)
    )
    #expect(machine.hold() == [])
    #expect(machine.start() == [])
    #expect(machine.isQuiet)
    #expect(machine.release() == [.prepare(0..<10, worker: 0), .prepare(10..<20, worker: 1)])
    #expect(
      machine.prepared(0..<10, worker: 0, took: .milliseconds(1)) == [
        .commit(0..<10), .prepare(20..<30, worker: 0),
      ]
    )
    #expect(machine.hold() == [])
    #expect(!machine.isQuiet)
    #expect(machine.prepared(10..<20, worker: 1, took: .milliseconds(1)) == [])
    #expect(machine.committed(0..<10, took: .milliseconds(1)) == [])
    #expect(machine.prepared(20..<30, worker: 0, took: .milliseconds(1)) == [])
    #expect(machine.isQuiet)
    #expect(machine.release() == [.commit(10..<20), .commit(20..<30)])
    #expect(machine.committed(10..<20, took: .milliseconds(1)) == [])
    #expect(machine.committed(20..<30, took: .milliseconds(1)) == [.end(.completed)])
  }

  @Test(arguments: [true, false])
  func `a run that is stopped while held commits no prepared chunk`(inOrder: Bool) {
    var machine = RunStateMachine(
      remaining: [0..<40],
      sizing: ChunkSizing(10),
      limits: .init(workers: 3, inOrder: inOrder)
    )
    #expect(machine.start().count == 3)
    #expect(machine.hold() == [])
    #expect(machine.prepared(0..<10, worker: 0, took: .milliseconds(1)) == [])
    #expect(machine.stop() == [.discard(0..<10)])
    #expect(machine.prepared(10..<20, worker: 1, took: .milliseconds(1)) == [.discard(10..<20)])
    // Released meanwhile, it may commit what is still to come, unless the order forbids it.
    #expect(machine.release() == [])
    let last = machine.prepared(20..<30, worker: 2, took: .milliseconds(1))
    if inOrder {
      #expect(last == [.discard(20..<30), .end(.stopped)])
    } else {
      #expect(last == [.commit(20..<30)])
      #expect(machine.committed(20..<30, took: .milliseconds(1)) == [.end(.stopped)])
    }
  }

  @Test(arguments: [true, false])
  func `a stopping run that is held ends without being released`(inOrder: Bool) {
    var machine = RunStateMachine(
      remaining: [0..<40],
      sizing: ChunkSizing(10),
      limits: .init(workers: 3, inOrder: inOrder)
    )
    machine.tune(ChunkSizing(10), committing: 1)
    #expect(machine.start().count == 3)
    #expect(machine.prepared(0..<10, worker: 0, took: .milliseconds(1)).first == .commit(0..<10))
    #expect(machine.prepared(10..<20, worker: 1, took: .milliseconds(1)) == [])
    #expect(machine.stop() == [])
    #expect(machine.prepared(20..<30, worker: 2, took: .milliseconds(1)) == [])
    #expect(machine.prepared(30..<40, worker: 0, took: .milliseconds(1)) == [])
    #expect(machine.hold() == [.discard(10..<20), .discard(20..<30), .discard(30..<40)])
    #expect(machine.hold() == [])
    #expect(machine.committed(0..<10, took: .milliseconds(1)) == [.end(.stopped)])
  }

  @Test(arguments: [0, -1])
  func `a chunk size or worker count below one is a programming error`(number: Int) async {
    await #expect(processExitsWith: .failure) {
      _ = RunStateMachine(
        remaining: [],
        sizing: ChunkSizing(0),
        limits: .init(workers: 1, inOrder: false)
      )
    }
    await #expect(processExitsWith: .failure) {
      _ = RunStateMachine(
        remaining: [],
        sizing: ChunkSizing(1),
        limits: .init(workers: 0, inOrder: true)
      )
    }
  }

  @Test(arguments: [1, 3, 7, 40])
  func `a chunk never splits a unit, however small its size`(size: Int) {
    var limits = RunStateMachine.Limits(workers: 1, inOrder: true)
    limits.units = [0, 5, 6, 20]
    var machine = RunStateMachine(
      remaining: [0..<30],
      sizing: ChunkSizing(size),
      limits: limits
    )
    var ends: [Int] = []
    var actions = machine.start()
    while !actions.isEmpty {
      switch actions.removeFirst() {
      case .prepare(let chunk, let worker):
        actions += machine.prepared(chunk, worker: worker, took: .zero)
      case .commit(let chunk):
        ends.append(chunk.upperBound)
        actions += machine.committed(chunk, took: .zero)
      default: break
      }
    }
    #expect(ends == [1: [5, 6, 20, 30], 3: [5, 20, 30], 7: [20, 30], 40: [30]][size])
  }
}
