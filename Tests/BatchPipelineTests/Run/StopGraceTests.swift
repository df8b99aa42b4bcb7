@testable import BatchRuns
import BatchIdentifiers
@testable import BatchPipeline
@testable import BatchSQLite
import BatchTestSupport
import Testing

/// A run that is stopped while SQLite evaluates an endless expression.
@Suite struct StopGraceTests {
  private static let endless =
    "(WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i FROM c) SELECT count(*) FROM c)"

  /// Changes four rows, the last two of which never finish.
  private func run(
    runtime: Duration? = nil,
    stopRequests: AsyncStream<Void>
  ) async throws -> (RunStateMachine.Ending, reason: String?, BatchError?) {
    let directory = try TemporaryDirectory()
    let store = try await Store(path: TestDatabase.makeNumbers(4, in: directory))
    let list = try await store.fetchIdentifiers(FetchRequest(entity: "numbers"))
    let entity = try store.schema.entity(named: "numbers")
    let value = "CASE WHEN id > 2 THEN \(Self.endless) ELSE n + 1 END"
    let change = BulkChange(
      entity: entity,
      key: try entity.requireKey(),
      action: .update([("n", SQLExpression(value))]),
      predicate: nil,
      recheck: .skip,
      parameters: [:]
    )
    let lane = try store.makeWriterLane(WriterConfiguration())
    _ = try await lane.prepareStore()
    try await lane.begin(RunDescription(identifier: "run", job: "job", total: 4, startedAt: ""))
    var job = Job.test(in: directory)
    job.limits.runtime = runtime
    var loop = RunLoop(
      remaining: [0..<4],
      sizing: ChunkSizing(1),
      workers: [store.makeConnection(label: "worker")],
      processor: ChangeProcessor(
        list: list.packed,
        change: change,
        isRowByRow: false,
        store: store,
        lane: lane,
        onFailure: .failChunk
      ),
      settings: .init(
        policy: job.policy,
        files: job.files,
        deadline: runtime.map { .now + $0 },
        writer: lane,
        stopRequests: stopRequests,
        grace: .milliseconds(100)
      )
    )
    // Records written meanwhile wait for the lane, and must not keep the run from noticing.
    let ending = await loop.run { event throws(BatchError) in
      if case .committed = event { _ = try await lane.makeDurable() }
    }
    let durable = try await lane.makeDurable()
    // One that shared its transaction with one that did not end may have been undone with it, and a slow
    // machine may have committed none in time.
    #expect(durable.done.count <= 2)
    let sum = try TestDatabase.value(store.path, "SELECT sum(n) FROM numbers")
    #expect(sum == .integer(Int64(durable.done.count)))
    return (ending, loop.stopReason, loop.failure)
  }

  @Test func `a stop request interrupts the chunks in flight without a failure`() async throws {
    let (requests, listener) = AsyncStream.makeStream(of: Void.self)
    let request = Task {
      try await Task.sleep(for: .milliseconds(300))
      listener.yield()
    }
    let (ending, reason, failure) = try await run(stopRequests: requests)
    try await request.value
    #expect(ending == .stopped && reason == nil && failure == nil)
  }

  @Test func `the end of the runtime limit interrupts the chunks in flight without a failure`()
    async throws
  {
    let (ending, reason, failure) = try await run(
      runtime: .milliseconds(200),
      stopRequests: AsyncStream { _ in }
    )
    #expect(ending == .stopped && reason?.contains("limits.runtime") == true && failure == nil)
  }

  @Test func `the cancellation of its task interrupts a run's chunks in flight without a failure`()
    async throws
  {
    let task = Task { try await run(stopRequests: AsyncStream { _ in }) }
    try await Task.sleep(for: .milliseconds(300))
    task.cancel()
    let (ending, reason, failure) = try await task.value
    #expect(ending == .stopped && reason == nil && failure == nil)
  }
}
