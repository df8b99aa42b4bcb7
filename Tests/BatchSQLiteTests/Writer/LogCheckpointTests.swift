import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

@testable import BatchSQLite

/// The write-ahead log of a lane, which is checkpointed while the lane goes on writing.
@Suite struct LogCheckpointTests {
  private let directory: TemporaryDirectory
  private let store: Store
  private let list: IdentifierList
  private let change: BulkChange

  private static let total = 3_000
  private static let size = 10
  private static let bound = 100_000

  init() async throws {
    directory = try TemporaryDirectory()
    store = try await Store(path: TestDatabase.makeNumbers(Self.total, in: directory))
    list = try await store.fetchIdentifiers(FetchRequest(entity: "numbers"))
    let entity = try store.schema.entity(named: "numbers")
    change = BulkChange(
      entity: entity,
      key: try entity.requireKey(),
      action: .update([("n", SQLExpression("n + 1"))]),
      predicate: nil,
      recheck: .skip,
      parameters: [:]
    )
  }

  private func makeLane(synchronous: Synchronous = .normal) async throws -> WriterLane {
    var configuration = WriterConfiguration()
    configuration.checkpointBytes = Self.bound
    configuration.synchronous = synchronous
    let lane = try store.makeWriterLane(configuration)
    _ = try await lane.prepareStore()
    try await lane.begin(
      RunDescription(identifier: "run", job: "job", total: Self.total, startedAt: "")
    )
    return lane
  }

  private func apply(_ first: Int, in lane: WriterLane) async throws(BatchError) {
    let positions = first..<(first + Self.size)
    let keys = try ChunkKeys(list.packed, positions, key: change.key)
    _ = try await lane.commit(change, to: keys, at: positions)
  }

  private var firsts: StrideTo<Int> { stride(from: 0, to: Self.total, by: Self.size) }

  private var logExists: Bool { FileManager.default.fileExists(atPath: store.path + "-wal") }

  @Test(arguments: Synchronous.allCases)
  func `the log stays near its bound and is removed with the writer`(synchronous: Synchronous)
    async throws
  {
    var lane: WriterLane? = try await makeLane(synchronous: synchronous)
    var written = 0
    for first in firsts {
      try await apply(first, in: #require(lane))
      written += 2 * 4096
    }
    // It is waited for a pass when the log is twice as long, and a chunk may have some pages.
    let peak = try await lane?.peakLogBytes() ?? 0
    #expect(Self.bound < peak && peak < 2 * Self.bound + 50_000)
    #expect(written > 2 * peak)
    #expect(try await lane?.makeDurable().done.count == Self.total)
    #expect(logExists)
    lane = nil
    #expect(!logExists)
    #expect(try TestDatabase.texts(store.path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }

  @Test func `a database that was moved away stops the writer without losing a commit`()
    async throws
  {
    let lane = try await makeLane()
    try await apply(0, in: lane)
    let elsewhere = store.path + ".moved"
    try FileManager.default.moveItem(atPath: store.path, toPath: elsewhere)
    let done = Self.size
    let error = await #expect(throws: BatchError.self) { try await apply(Self.size, in: lane) }
    #expect(error?.code == .storeChanged)
    let late = await #expect(throws: BatchError.self) { _ = try await lane.makeDurable() }
    #expect(late?.code == .storeChanged)
    try FileManager.default.moveItem(atPath: elsewhere, toPath: store.path)
    #expect(try await store.doneRanges(ofRun: "run")?.count == done)
    for first in firsts where first >= done { try await apply(first, in: lane) }
    #expect(try TestDatabase.texts(store.path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }
}
