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

  /// Changes rows as a run does, and tells when an endless one goes to the writer.
  private struct TellingProcessor: ChunkProcessor {
    let changes: ChangeProcessor
    let atEndless: @Sendable () -> Void

    var inOrder: Bool { changes.inOrder }
    var handlerTimeLimit: Duration? { changes.handlerTimeLimit }

    func makeWorker(_ label: String) -> StoreConnection { changes.makeWorker(label) }

    func prepare(
      _ positions: Range<Int>,
      _ attempt: Attempt<ChangeProcessor.Prepared>,
      in context: StoreConnection
    ) async throws(BatchError) -> PreparedChunk<ChangeProcessor.Prepared> {
      try await changes.prepare(positions, attempt, in: context)
    }

    func commit(
      _ prepared: ChangeProcessor.Prepared,
      at positions: Range<Int>
    ) async throws(BatchError) -> Commit {
      if positions.upperBound > 2 { atEndless() }
      return try await changes.commit(prepared, at: positions)
    }
  }

  /// Changes four rows, the last two of which never finish.
  private func run(
    runtime: Duration? = nil,
    stopRequests: AsyncStream<Void>,
    atEndless: @escaping @Sendable () -> Void = {}
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
      processor: TellingProcessor(
        changes: ChangeProcessor(
          list: list.packed,
          change: change,
          isRowByRow: false,
          store: store,
          lane: lane,
          onFailure: .failChunk
        ),
        atEndless: atEndless
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
    let (ending, reason, failure) = try await run(stopRequests: requests) { listener.yield() }
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
    let (chunks, listener) = AsyncStream.makeStream(of: Void.self)
    let task = Task { try await run(stopRequests: AsyncStream { _ in }) { listener.yield() } }
    for await _ in chunks { break }
    task.cancel()
    let (ending, reason, failure) = try await task.value
    #expect(ending == .stopped && reason == nil && failure == nil)
  }
}
