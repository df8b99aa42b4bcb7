import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

@testable import BatchSQLite

/// Chunks that come to the writer lane together.
@Suite struct GroupCommitTests {
  private let directory: TemporaryDirectory
  private let store: Store
  private let list: IdentifierList
  private let change: BulkChange

  private static let total = 400
  private static let size = 10

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

  private func makeLane(_ run: String) async throws -> WriterLane {
    let lane = try store.makeWriterLane(WriterConfiguration())
    _ = try await lane.prepareStore()
    try await lane.begin(
      RunDescription(identifier: run, job: run, total: Self.total, startedAt: run)
    )
    return lane
  }

  /// Applies chunks concurrently; returns the first positions of those that failed.
  private func apply(
    in lane: WriterLane,
    onFailure policy: FailurePolicy = .failChunk
  ) async throws -> [Int] {
    try await withThrowingTaskGroup(of: Int?.self) { group in
      for first in stride(from: 0, to: Self.total, by: Self.size) {
        let positions = first..<(first + Self.size)
        let keys = try ChunkKeys(list.packed, positions, key: change.key)
        group.addTask {
          let commit = try? await lane.commit(
            change,
            to: keys,
            at: positions,
            onFailure: policy
          )
          if let commit { #expect(commit.outcomes.total == Self.size) }
          return commit == nil ? first : nil
        }
      }
      var failed: [Int] = []
      for try await first in group { if let first { failed.append(first) } }
      return failed.sorted()
    }
  }

  /// How many transactions the write-ahead log holds.
  ///
  /// The last frame of a commit has the size of the database in its header; see
  /// <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>.
  private func transactionsInLog() throws -> Int {
    let log = try Data(contentsOf: URL(filePath: store.path + "-wal"))
    let salts = Array(log[16..<24])
    var count = 0
    for frame in stride(from: 32, to: log.count, by: 24 + 4096) {
      let header = Array(log[frame..<(frame + 24)])
      // Frames of an earlier log have other salts.
      if Array(header[8..<16]) == salts, header[4..<8] != [0, 0, 0, 0] { count += 1 }
    }
    return count
  }

  @Test func `chunks that wait for the writer share a transaction`() async throws {
    // Whether they meet depends on the threads: in this many attempts they must once.
    for attempt in 1...100 {
      let lane = try await makeLane("run \(attempt)")
      let before = try transactionsInLog()
      #expect(try await apply(in: lane) == [])
      let commits = try transactionsInLog() - before
      #expect(try await store.doneRanges(ofRun: "run \(attempt)")?.chunks == 40)
      let values = try TestDatabase.texts(store.path, "SELECT DISTINCT n FROM numbers")
      #expect(values == ["\(attempt)"])
      if commits < 40 { return }
    }
    Issue.record("none of 4,000 chunks shared a transaction")
  }

  @Test(arguments: ["ABORT", "FAIL", "ROLLBACK"])
  func `a failing chunk does not affect the other chunks of its transaction`(kind: String)
    async throws
  {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER stop AFTER UPDATE ON numbers WHEN new.id IN (55, 56, 300)
      BEGIN SELECT RAISE(\(kind), 'stop'); END
      """
    )
    let lane = try await makeLane("run")
    #expect(try await apply(in: lane) == [50, 290])
    #expect(
      try TestDatabase.texts(store.path, "SELECT count(*) || ' ' || sum(n) FROM numbers")
        == ["400 380"]
    )
    let done = try #require(try await store.doneRanges(ofRun: "run"))
    #expect(done.remaining(of: Self.total) == [50..<60, 290..<300])
    #expect(done.outcomes.succeeded == 380)
  }

  @Test func `the failure limit applies to all chunks of a run together`() async throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER stop BEFORE UPDATE ON numbers WHEN new.id % 50 = 5
      BEGIN SELECT RAISE(ABORT, 'stop'); END
      """
    )
    let lane = try await makeLane("run")
    let refused = try await apply(in: lane, onFailure: .skip(upTo: 5))
    #expect(refused.count == 3)
    let failed = try await store.failedIdentifiers(ofRun: "run")
    #expect(failed.count == 5)
    #expect(try await store.doneRanges(ofRun: "run")?.outcomes.failed == 5)
    #expect(
      try TestDatabase.texts(store.path, "SELECT sum(n) FROM numbers")
        == ["\(400 - 3 * Self.size - 5)"]
    )
  }

  @Test func `chunks fail while another connection holds the lock and succeed afterwards`()
    async throws
  {
    let other = try Connection(path: store.path)
    let lane = try await makeLane("run")
    try other.execute("BEGIN IMMEDIATE")
    let store = try await Store(path: store.path, busyTimeout: .milliseconds(1))
    let impatient = try store.makeWriterLane(WriterConfiguration())
    #expect(try await apply(in: impatient).count == 40)
    try other.execute("ROLLBACK")
    #expect(try await apply(in: lane) == [])
  }

  @Test func `chunks join a transaction as long as the next one fits within the time bound`() {
    var group = GroupCommit(target: nil)
    #expect(group.hasRoom)
    group.add(endingAt: .milliseconds(9))
    #expect(group.hasRoom)
    group.add(endingAt: .milliseconds(12))
    #expect(!group.hasRoom)
    var short = GroupCommit(target: .milliseconds(5))
    short.add(endingAt: .milliseconds(2))
    #expect(short.hasRoom)
    short.add(endingAt: .milliseconds(4))
    #expect(!short.hasRoom)
  }
}
