@testable import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import SystemPackage
import Testing

/// Several loops that share the positions of a run, as processes do; `Leases` covers the failures.
@Suite struct SharedRunTests {
  /// The spans of a run, who works on them, and how often each position was committed.
  private actor Table {
    private var spans: [(positions: Range<Int>, process: Int?, isDone: Bool)]
    private(set) var commits: [Int]
    /// After how many commits the next span that is not all done is taken away.
    private var commitsToLoss: Int
    private var hasLost = false

    init(count: Int, span: Int, commitsToLoss: Int) {
      spans = stride(from: 0, to: count, by: span).map { ($0..<min($0 + span, count), nil, false) }
      commits = Array(repeating: 0, count: count)
      self.commitsToLoss = commitsToLoss
    }

    func claim(by process: Int, besides own: [Range<Int>]) -> SpanClaim {
      let place = spans.firstIndex { span in
        !span.isDone && span.process == nil && !own.contains(span.positions)
      }
      guard let place else {
        return spans.allSatisfy(\.isDone)
          ? .exhausted : .noneFree(askingAgainAfter: .milliseconds(1))
      }
      spans[place].process = process
      let span = spans[place].positions
      let parts = span.filter { commits[$0] == 0 }.map { $0..<$0 + 1 }
      return .granted(span, remaining: parts)
    }

    func commit(_ chunk: Range<Int>, by process: Int) throws(BatchError) {
      let place = try place(of: chunk, process)
      for position in chunk { commits[position] += 1 }
      commitsToLoss -= 1
      let isUnfinished = spans[place].positions.contains { commits[$0] == 0 }
      if commitsToLoss <= 0, !hasLost, isUnfinished {
        hasLost = true
        spans[place].process = nil
      }
    }

    func close(_ span: Range<Int>, by process: Int) throws(BatchError) {
      spans[try place(of: span, process)].isDone = true
    }

    private func place(of positions: Range<Int>, _ process: Int) throws(BatchError) -> Int {
      let place = spans.firstIndex { $0.positions.overlaps(positions) && $0.process == process }
      guard let place else { throw BatchError(.leaseLost, "another process has \(positions)") }
      return place
    }
  }

  private struct Process: ChunkProcessor, SpanSource {
    struct Worker: ChunkWorker {
      func interrupt() {}
      func close() async {}
    }

    let number: Int
    let table: Table
    let inOrder: Bool

    var handlerTimeLimit: Duration? { nil }

    func makeWorker(_ label: String) -> Worker { Worker() }

    func prepare(
      _ positions: Range<Int>,
      _ attempt: Attempt<Void>,
      in context: Worker
    ) async throws(BatchError) -> PreparedChunk<Void> {
      PreparedChunk(content: (), count: positions.count, byteCount: 0)
    }

    func commit(_ prepared: Void, at positions: Range<Int>) async throws(BatchError) -> Commit {
      try await table.commit(positions, by: number)
      var outcomes = Outcomes()
      outcomes.succeeded = positions.count
      return Commit(outcomes: outcomes, duration: .microseconds(1))
    }

    func claim(besides own: [Range<Int>]) async throws(BatchError) -> SpanClaim {
      await table.claim(by: number, besides: own)
    }

    func close(_ span: Range<Int>) async throws(BatchError) {
      try await table.close(span, by: number)
    }

    func interrupt() {}
  }

  /// What a loop has done and seen.
  private struct Result {
    var ending: RunStateMachine.Ending?
    var committed = 0
    var granted = 0
    var lost = 0
  }

  private func run(_ process: Process, _ files: RunFiles) async -> Result {
    var policy = RunPolicy()
    policy.chunk.size = 3
    var loop = RunLoop(
      remaining: [],
      sizing: ChunkSizing(policy),
      workers: [Process.Worker(), Process.Worker()],
      processor: process,
      settings: .init(
        policy: policy,
        files: files,
        spans: process,
        workersCommit: true,
        stopRequests: AsyncStream { _ in }
      )
    )
    var result = Result()
    result.ending = await loop.run { event in
      switch event {
      case .committed(let chunk, _): result.committed += chunk.count
      case .granted: result.granted += 1
      case .lost: result.lost += 1
      default: break
      }
    }
    return result
  }

  @Test(arguments: [false, true])
  func `processes that share a run do each position once and repeat a lost span`(
    inOrder: Bool
  ) async throws {
    let directory = try TemporaryDirectory()
    let table = Table(count: 500, span: 20, commitsToLoss: 40)
    let results = await withTaskGroup(of: Result.self) { group in
      for number in 0..<3 {
        let files = RunFiles(
          ofJob: "job",
          checkpoint: FilePath(directory.file("\(number).batch")),
          store: FilePath(directory.file("test.db"))
        )
        group.addTask {
          await run(Process(number: number, table: table, inOrder: inOrder), files)
        }
      }
      return await group.reduce(into: [Result]()) { $0.append($1) }
    }
    #expect(results.allSatisfy { $0.ending == .completed })
    #expect(await table.commits.allSatisfy { $0 == 1 })
    #expect(results.reduce(0) { $0 + $1.committed } == 500)
    let (granted, lost) = results.reduce((0, 0)) { ($0.0 + $1.granted, $0.1 + $1.lost) }
    #expect(granted == 25 + lost)
    #expect(lost == 1)
  }
}
