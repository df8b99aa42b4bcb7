@testable import BatchRuns
import Testing

/// The run's logic on a simulated clock: workers and a writer that take known times.
@Suite struct ChunkFlowTests {
  /// Carries out what a machine decides, each thing at its time.
  private struct Simulation {
    /// How long a row takes to prepare and to write, in microseconds.
    typealias Costs = (prepare: Double, write: Double)

    private var machine: RunStateMachine
    private let costs: (Int) -> Costs
    /// An operation in progress, and its end.
    private var preparing: [(chunk: Range<Int>, worker: Int, start: Double, end: Double)] = []
    private var committing: [(chunk: Range<Int>, start: Double, end: Double)] = []
    private var now = 0.0
    private var writerIsFree = 0.0
    private(set) var begun: [Range<Int>] = []
    private(set) var written: [Range<Int>] = []
    private(set) var longestPreparation = Duration.zero
    private(set) var mostCommitting = 0
    /// How long the writer had nothing to do after its first chunk.
    private(set) var idle = 0.0
    private(set) var hasEnded = false

    init(_ count: Int, workers: Int, sizing: ChunkSizing, costs: @escaping (Int) -> Costs) {
      machine = RunStateMachine(
        remaining: [0..<count],
        sizing: sizing,
        limits: .init(workers: workers, inOrder: false)
      )
      self.costs = costs
      perform(machine.start())
      while !hasEnded { step() }
    }

    private func cost(_ chunk: Range<Int>) -> Costs {
      chunk.reduce(into: (0, 0)) { sum, position in
        let cost = costs(position)
        sum = (sum.0 + cost.prepare, sum.1 + cost.write)
      }
    }

    private mutating func perform(_ actions: [RunStateMachine.Action]) {
      for action in actions {
        switch action {
        case .prepare(let chunk, let worker):
          begun.append(chunk)
          preparing.append((chunk, worker, now, now + cost(chunk).prepare))
        case .commit(let chunk):
          if !written.isEmpty { idle += max(0, now - writerIsFree) }
          let start = max(now, writerIsFree)
          writerIsFree = start + 200 + cost(chunk).write
          committing.append((chunk, start, writerIsFree))
          mostCommitting = max(mostCommitting, committing.count)
        case .rest, .discard: Issue.record("a chunk failed that did not")
        case .claim, .close: Issue.record("a run asks for spans that has all")
        case .end: hasEnded = true
        }
      }
    }

    private mutating func step() {
      let next = preparing.indices.min { preparing[$0].end < preparing[$1].end }
      if let first = committing.first, next.map({ first.end <= preparing[$0].end }) ?? true {
        committing.removeFirst()
        now = first.end
        written.append(first.chunk)
        let duration = Duration.microseconds(Int(first.end - first.start))
        perform(machine.committed(first.chunk, took: duration))
      } else if let next {
        let done = preparing.remove(at: next)
        now = done.end
        let duration = Duration.microseconds(Int(done.end - done.start))
        longestPreparation = max(longestPreparation, duration)
        perform(machine.prepared(done.chunk, worker: done.worker, took: duration))
      } else {
        Issue.record("nothing goes on and there is no end")
        hasEnded = true
      }
    }
  }

  private let target = Duration.milliseconds(50)

  @Test(arguments: [1, 2, 8], [0.1, 10.0])
  func `a run's chunks reach the target time within ten chunks when row cost changes tenfold`(
    workers: Int,
    change: Double
  ) throws {
    let before = change < 1 ? 100.0 : 10.0
    let turn = change < 1 ? 20_000 : 200_000
    let run = Simulation(
      4 * turn,
      workers: workers,
      sizing: ChunkSizing(1000, target: target, bounds: 10...1_000_000)
    ) { ($0 < turn ? before / 100 : before / 100, $0 < turn ? before : before * change) }
    #expect(run.written.count == run.begun.count)
    let first = try #require(run.written.firstIndex { $0.upperBound > turn })
    let ideal = 50_000 / (before * change)
    #expect(run.written.count > first + 12)
    for chunk in run.written[(first + 10)...].dropLast() {
      #expect((0.75 * ideal...1.3 * ideal).contains(Double(chunk.count)))
    }
    for (chunk, next) in zip(run.begun, run.begun.dropFirst()) {
      #expect(Double(next.count) <= max(1.5 * Double(chunk.count), Double(chunk.count + 1)))
    }
    // Long chunks gain nothing from company, and the writer does not wait for want of it.
    #expect(run.idle < 0.01 * Double(4 * turn) * before)
  }

  @Test func `the writer receives several small chunks together`() {
    let run = Simulation(
      100_000,
      workers: 2,
      sizing: ChunkSizing(100, target: target, bounds: 100...100)
    ) { _ in (0.1, 1) }
    #expect(run.mostCommitting == 8)
  }

  @Test(arguments: [1, 4])
  func `a slow handler keeps all workers busy with chunks of bounded duration`(workers: Int) {
    let run = Simulation(
      40_000,
      workers: workers,
      sizing: ChunkSizing(
        20,
        target: target,
        bounds: 100...20_000,
        preparing: .milliseconds(1250)
      )
    ) { _ in (2000, 5) }
    #expect(run.longestPreparation <= .milliseconds(1250))
    #expect(run.written.map(\.count).max() == 625)
    #expect(run.written.count < 100 + 12 * workers)
  }
}
