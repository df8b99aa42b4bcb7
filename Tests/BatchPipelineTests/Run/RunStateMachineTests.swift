@testable import BatchPipeline
import BatchTestSupport
import Testing

/// The run's logic under drivers that do whatever a machine and a user may do.
@Suite struct RunStateMachineTests {
  /// Performs actions in random order and keeps an account of them.
  private struct Driver {
    var machine: RunStateMachine
    var random: SeededGenerator
    let limits: RunStateMachine.Limits
    /// What has been handed out and not answered.
    var preparing: [(chunk: Range<Int>, worker: Int)] = []
    var committing: [Range<Int>] = []
    var prepared: Set<Range<Int>> = []
    var committed: [Range<Int>] = []
    var discarded: Set<Range<Int>> = []
    var ending: RunStateMachine.Ending?
    var isStopped = false
    var hasFailed = false
    var problems: [String] = []

    init(
      remaining: [Range<Int>],
      chunkSize: Int,
      limits: RunStateMachine.Limits,
      random: SeededGenerator
    ) {
      machine = RunStateMachine(
        remaining: remaining,
        sizing: ChunkSizing(chunkSize),
        limits: limits
      )
      self.limits = limits
      self.random = random
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
          preparing.append((chunk, worker))
        case .commit(let chunk):
          require(prepared.remove(chunk) != nil, "a chunk is committed that is not prepared")
          require(!hasFailed, "a chunk is handed to the writer after a failure")
          if limits.inOrder, let last = (committing + committed).map(\.lowerBound).max() {
            require(chunk.lowerBound > last, "out of order")
          }
          committing.append(chunk)
        case .discard(let chunk):
          require(prepared.remove(chunk) != nil, "a chunk is dropped that is not prepared")
          require(hasFailed, "a chunk is dropped without a failure")
          discarded.insert(chunk)
        case .end(let ending):
          require(preparing.isEmpty && committing.isEmpty && prepared.isEmpty, "an early end")
          self.ending = ending
        }
      }
      require(committing.count <= limits.committing, "too much at the writer")
      require(
        hasFailed || preparing.count + prepared.count + committing.count <= limits.inFlight,
        "too much in flight"
      )
    }

    /// Runs to the end, failing and stopping with the given chances in a thousand.
    mutating func run(failing: Int, stopping: Int) {
      var steps = 0
      while ending == nil {
        steps += 1
        guard steps < 10_000, !preparing.isEmpty || !committing.isEmpty else {
          problems.append("nothing is going on and there is no end")
          return
        }
        if Int.random(in: 0..<1_000, using: &random) < stopping {
          isStopped = true
          perform(machine.stop())
          continue
        }
        let isFailing = Int.random(in: 0..<1_000, using: &random) < failing
        let isFault = isFailing && Int.random(in: 0..<4, using: &random) == 0
        if isFault {
          hasFailed = true
          perform(machine.fail())
          continue
        }
        let index = Int.random(in: 0..<(preparing.count + committing.count), using: &random)
        if index < preparing.count {
          let (chunk, worker) = preparing.remove(at: index)
          if isFailing {
            hasFailed = true
            perform(machine.failedToPrepare(chunk, worker: worker))
          } else {
            prepared.insert(chunk)
            perform(machine.prepared(chunk, worker: worker))
          }
        } else {
          let chunk = committing.remove(at: index - preparing.count)
          if isFailing {
            hasFailed = true
            perform(machine.failedToCommit(chunk))
          } else {
            committed.append(chunk)
            perform(machine.committed(chunk, took: .milliseconds(1)))
          }
        }
      }
      // Whoever comes late is heard out and gets nothing to do.
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

  @Test(arguments: [(0, 0), (0, 20), (15, 0), (15, 15), (200, 100)], 0..<4 as Range<UInt64>)
  func `any schedule keeps the promises of a run`(
    chances: (failing: Int, stopping: Int),
    seed: UInt64
  ) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<400 {
      let ranges = remaining(using: &random)
      let limits = RunStateMachine.Limits(
        workers: .random(in: 1...5, using: &random),
        inOrder: .random(using: &random)
      )
      let size = Int.random(in: 1...9, using: &random)
      var driver = Driver(
        remaining: ranges,
        chunkSize: size,
        limits: limits,
        random: SeededGenerator(seed: random.next())
      )
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
        #expect(driver.discarded.isEmpty)
        #expect(Set(positions) != all)
      case .failed: #expect(driver.hasFailed)
      case nil: Issue.record("there is no end")
      }
      if chances == (0, 0) { #expect(driver.ending == .completed) }
      // In order, what is committed is the beginning of what there is.
      if limits.inOrder {
        #expect(Array(all.sorted().prefix(positions.count)) == positions)
      }
    }
  }

  @Test func `a run over nothing is complete at once`() {
    var machine = RunStateMachine(
      remaining: [],
      sizing: ChunkSizing(10),
      limits: .init(workers: 3, inOrder: false)
    )
    #expect(machine.start() == [.end(.completed)])
    #expect(machine.stop() == [])
    #expect(machine.fail() == [])
  }

  @Test func `a stop before the first answer finishes what is in flight`() {
    var machine = RunStateMachine(
      remaining: [0..<100],
      sizing: ChunkSizing(10),
      limits: .init(workers: 2, inOrder: false)
    )
    #expect(machine.start() == [.prepare(0..<10, worker: 0), .prepare(10..<20, worker: 1)])
    #expect(machine.stop() == [])
    #expect(machine.prepared(10..<20, worker: 1) == [.commit(10..<20)])
    #expect(machine.prepared(0..<10, worker: 0) == [.commit(0..<10)])
    #expect(machine.committed(10..<20, took: .milliseconds(1)) == [])
    #expect(machine.committed(0..<10, took: .milliseconds(1)) == [.end(.stopped)])
  }

  @Test(arguments: [0, -1])
  func `sizes and numbers that make no sense are programming errors`(number: Int) async {
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
}
