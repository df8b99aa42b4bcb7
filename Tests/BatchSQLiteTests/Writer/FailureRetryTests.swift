import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Testing

/// Retried failed identifiers, against a plain account of what each row should be.
@Suite struct FailureRetryTests {
  private static let total = 80

  @Test(arguments: 0..<12 as Range<UInt64>)
  func `a retry removes its successes from the failed rows and counts repeated failures`(
    seed: UInt64
  ) async throws {
    var random = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.makeNumbers(Self.total, in: directory)
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE poison (id INTEGER PRIMARY KEY)",
      """
      CREATE TRIGGER refuse BEFORE UPDATE ON numbers
      WHEN EXISTS (SELECT 1 FROM poison WHERE id = old.id)
      BEGIN SELECT RAISE(ABORT, 'poison'); END
      """
    )
    let store = try await Store(path: path)
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
    var poisoned = Set((0..<Self.total).filter { _ in Int.random(in: 0..<4, using: &random) == 0 })
    let connection = try Connection(path: path)
    func setPoison() throws {
      try connection.execute("DELETE FROM poison")
      for position in poisoned {
        try connection.execute("INSERT INTO poison VALUES (?)", .integer(Int64(position + 1)))
      }
    }
    try setPoison()
    var lane = try store.makeWriterLane(WriterConfiguration())
    _ = try await lane.prepareStore()
    try await lane.begin(
      RunDescription(identifier: "run", job: "job", total: Self.total, startedAt: "")
    )
    // Not all of it is done, so the ledger has several rows.
    let chunks = Chunks.random(of: Self.total, using: &random).dropLast(3)
    for chunk in chunks {
      _ = try await lane.commit(
        change,
        to: ChunkKeys(list.packed, chunk, key: change.key),
        at: chunk,
        onFailure: .skip(upTo: .max)
      )
    }
    let done = Set(chunks.joined())
    var attempts = [Int: Int](
      uniqueKeysWithValues: poisoned.intersection(done).map { ($0, 1) }
    )
    for _ in 0..<4 {
      poisoned = poisoned.filter { _ in Bool.random(using: &random) }
      try setPoison()
      lane = try store.makeWriterLane(WriterConfiguration())
      _ = try await lane.resume("run")
      let retried = try await lane.retryFailures()
      #expect(retried.positions == attempts.keys.sorted())
      let failed = try list.slice(retried.positions.map { $0..<($0 + 1) })
      var untried = attempts
      for part in retried.parts {
        // A skipped chunk stays unchanged.
        if Int.random(in: 0..<5, using: &random) == 0 { continue }
        _ = try await lane.commit(
          change,
          to: ChunkKeys(failed.packed, part, key: change.key),
          at: part,
          onFailure: .skip(upTo: .max)
        )
        for place in part {
          let position = retried.positions[place]
          untried[position] = nil
          attempts[position] = poisoned.contains(position) ? attempts[position]! + 1 : nil
        }
      }
      let kept = try await store.failedIdentifiers(ofRun: "run")
      #expect(
        Dictionary(uniqueKeysWithValues: kept.map { ($0.position, $0.attempt) }) == attempts
      )
      let ledger = try #require(try await store.doneRanges(ofRun: "run"))
      #expect(ledger.count == done.count && ledger.outcomes.failed == attempts.count)
      #expect(ledger.outcomes.succeeded == done.count - attempts.count)
      let changed = try TestDatabase.rows(path, "SELECT id - 1 FROM numbers WHERE n = 1")
      #expect(
        Set(changed.map(\.[0]))
          == Set(done.subtracting(attempts.keys).map { .integer(Int64($0)) })
      )
      #expect(try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE n > 1") == ["0"])
    }
  }

  @Test(arguments: [
    "DELETE FROM _batch_failure WHERE position = 3",
    "UPDATE _batch_failure SET position = 20 WHERE position = 3",
    "UPDATE _batch_failure SET position = -1 WHERE position = 3",
    "UPDATE _batch_ledger SET failed = 1, succeeded = succeeded + 1",
  ])
  func `contradicting ledger and failure tables are refused`(change sql: String) async throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.makeNumbers(20, in: directory)
    let connection = try Connection(path: path)
    try connection.execute(
      """
      CREATE TRIGGER refuse BEFORE UPDATE ON numbers WHEN old.id IN (4, 9)
      BEGIN SELECT RAISE(ABORT, 'poison'); END
      """
    )
    let store = try await Store(path: path)
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
    let lane = try store.makeWriterLane(WriterConfiguration())
    _ = try await lane.prepareStore()
    try await lane.begin(RunDescription(identifier: "run", job: "job", total: 20, startedAt: ""))
    _ = try await lane.commit(
      change,
      to: ChunkKeys(list.packed, 0..<15, key: change.key),
      at: 0..<15,
      onFailure: .skip(upTo: 2)
    )
    try connection.execute(sql)
    _ = try await lane.resume("run")
    let error = await #expect(throws: BatchError.self) { try await lane.retryFailures() }
    #expect(error?.code == .damagedFile)
  }
}
