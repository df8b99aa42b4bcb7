@testable import BatchRuns
import BatchIdentifiers
@testable import BatchPipeline
@testable import BatchSQLite
import BatchTestSupport
import Dispatch
import Testing

/// The write-ahead log while the run's own workers read.
@Suite struct LogBoundTests {
  /// An update whose first chunk is being read until the log has passed its limit, so that none of
  /// it can be reused before.
  private struct ReadingProcessor: ChunkProcessor {
    static let chunkSize = 10

    let list: IdentifierList
    let change: BulkChange
    let lane: WriterLane
    let bound: Int
    /// Signalled when the first chunk is read, which the others wait for: each passes it on.
    let isReading = DispatchSemaphore(value: 0)
    /// Signalled when the log has passed the limit, or all other chunks are written.
    let isLong = DispatchSemaphore(value: 0)
    let written = Lock(0)

    var inOrder: Bool { false }
    var handlerTimeLimit: Duration? { nil }

    func makeWorker(_ label: String) -> StoreConnection { preconditionFailure("has its workers") }

    func prepare(
      _ positions: Range<Int>,
      _ attempt: Attempt<ChunkKeys>,
      in context: StoreConnection
    ) async throws(BatchError) -> PreparedChunk<ChunkKeys> {
      let keys = try await context.perform { connection throws(BatchError) in
        guard positions.lowerBound == 0 else {
          isReading.wait()
          isReading.signal()
          return try ChunkKeys(list.packed, positions, key: change.key)
        }
        return try connection.transaction(.deferred) { () throws(BatchError) in
          _ = try connection.value("SELECT sum(n) FROM numbers")
          isReading.signal()
          isLong.wait()
          return try ChunkKeys(list.packed, positions, key: change.key)
        }
      }
      return PreparedChunk(content: keys, count: positions.count, byteCount: 0)
    }

    func commit(
      _ keys: ChunkKeys,
      at positions: Range<Int>
    ) async throws(BatchError) -> Commit {
      let commit = try await lane.commit(change, to: keys, at: positions)
      let written = written.withLock { count in
        count += positions.count
        return count
      }
      if commit.logBytes > bound || written >= list.count - Self.chunkSize { isLong.signal() }
      return commit
    }
  }

  @Test func `a writer whose log is too long lets the run's own readers finish`() async throws {
    let bound = 1_000_000
    let directory = try TemporaryDirectory()
    let store = try await Store(path: TestDatabase.makeNumbers(24_000, in: directory))
    let list = try await store.fetchIdentifiers(FetchRequest(entity: "numbers"))
    let entity = try store.schema.entity(named: "numbers")
    let change = BulkChange(
      entity: entity,
      key: try entity.requireKey(),
      action: .update([("n", SQLExpression("n + 1"))]),
      predicate: nil,
      recheck: .skip,
      parameters: [:]
    )
    var configuration = WriterConfiguration()
    configuration.checkpointBytes = 500_000
    let lane = try store.makeWriterLane(configuration)
    _ = try await lane.prepareStore()
    try await lane.begin(
      RunDescription(identifier: "run", job: "job", total: 24_000, startedAt: "")
    )
    var job = Job.test(in: directory)
    job.throttle.maximumWAL = Int64(bound)
    var loop = RunLoop(
      remaining: [0..<24_000],
      sizing: ChunkSizing(ReadingProcessor.chunkSize),
      workers: (0..<3).map { store.makeConnection(label: "worker \($0)") },
      processor: ReadingProcessor(
        list: list,
        change: change,
        lane: lane,
        bound: bound
      ),
      settings: .init(
        policy: job.policy,
        files: job.files,
        writer: lane,
        stopRequests: AsyncStream { _ in }
      )
    )
    var holds = 0
    let ending = await loop.run { event throws(BatchError) in
      if case .held(let hold) = event {
        #expect(hold.cause == .maximumWAL)
        holds += 1
      }
    }
    #expect(ending == .completed)
    #expect(try TestDatabase.texts(store.path, "SELECT DISTINCT n FROM numbers") == ["1"])
    // A chunk writes some pages, and two may be at the writer when the limit is passed. The reader
    // may have ended just before the lane checks the log, which then restarts without a hold.
    let peak = try await lane.peakLogBytes()
    #expect(bound < peak && peak < bound + 200_000)
    #expect(holds > 0 || peak < bound + 50_000)
  }
}
