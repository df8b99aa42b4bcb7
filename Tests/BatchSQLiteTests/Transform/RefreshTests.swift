@testable import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Dispatch
import Testing

@testable import BatchSQLite

/// Chunks whose rows others have changed between the worker's look at them and the lane's.
@Suite struct RefreshTests {
  private let directory: TemporaryDirectory
  private let store: Store
  private let list: IdentifierList
  private let worker: Connection

  private static let total = 100

  init() async throws {
    directory = try TemporaryDirectory()
    store = try await Store(path: TestDatabase.makeNumbers(Self.total, in: directory))
    list = try await store.fetchIdentifiers(FetchRequest(entity: "numbers"))
    worker = try Connection(path: store.path, options: .init(isReadOnly: true))
  }

  private func makeLane() async throws -> WriterLane {
    let lane = try store.makeWriterLane(WriterConfiguration())
    _ = try await lane.prepareStore()
    try await lane.begin(
      RunDescription(identifier: "run", job: "job", total: Self.total, startedAt: "")
    )
    return lane
  }

  /// Sets `label` to `n` and what was there.
  private func makeTransform(
    timeout: Duration? = nil,
    _ note: @escaping @Sendable (Int64) -> Void
  ) throws -> RowTransform {
    let entity = try store.schema.entity(named: "numbers")
    func attributes(_ names: [String]) throws -> [Attribute] {
      try names.map { name in try #require(entity.attribute(named: name)) }
    }
    let handler = TransformHandler.rows { columns in
      let (id, n) = try (
        columns.input("id", as: Int64.self), columns.input("n", as: Int64.self)
      )
      let (old, new) = try (
        columns.input("label", as: String.self), columns.output("label", as: String.self)
      )
      return { row in
        note(try row[id] ?? 0)
        if try row[n] == 7 { throw BatchError(.handlerFailed, "seven") }
        try row.set(new, to: "\(row[n] ?? 0) \(row[old] ?? "")")
      }
    }
    let reads = ["id", "n", "label"]
    return try RowTransform(
      entity: entity,
      key: try entity.requireKey(),
      reads: attributes(reads),
      writes: attributes(["label"]),
      handler: handler.handler(
        for: .init(reads: reads, writes: ["label"], parameters: [:], store: store)
      ),
      timeout: timeout,
      predicate: SQLExpression("n < 50"),
      recheck: .skip,
      parameters: [:],
      enforcesForeignKeys: false,
      // One that knows the triggers there are now.
      connection: Connection(path: store.path)
    )
  }

  private func keys(_ positions: Range<Int>) throws -> ChunkKeys {
    try ChunkKeys(list.packed, positions, key: store.schema.entity(named: "numbers").requireKey())
  }

  private func prepare(
    _ positions: Range<Int>,
    by transform: RowTransform,
    for lane: WriterLane
  ) throws -> TransformedChunk {
    try transform.prepare(
      keys(positions),
      run: "run",
      lookCount: lane.watch.lookCount,
      onFailure: .skip(upTo: 10),
      in: worker
    )
  }

  @Test func `a transform computes only changed rows again and holds no lock meanwhile`()
    async throws
  {
    let lane = try await makeLane()
    let seen = Lock<[Int64]>([])
    let transform = try makeTransform { id in seen.withLock { $0.append(id) } }
    let first = try prepare(0..<50, by: transform, for: lane)
    let second = try prepare(50..<100, by: transform, for: lane)
    #expect(seen.withLock { $0 } == Array(1...100))
    seen.withLock { $0 = [] }
    for sql in [
      "UPDATE numbers SET n = 3 WHERE id = 9", "UPDATE numbers SET label = 'x' WHERE id = 20",
      "UPDATE numbers SET n = 7 WHERE id = 30", "UPDATE numbers SET n = 99 WHERE id = 40",
      "DELETE FROM numbers WHERE id = 50",
    ] { try Connection(path: store.path).execute(sql) }

    // A chunk with unchanged rows is applied, whatever happened to another one beside it.
    async let fresh = lane.commit(
      transform,
      second,
      at: 50..<100,
      onFailure: .skip(upTo: 10),
      recomputing: false
    )
    let error = await #expect(throws: BatchError.self) {
      try await lane.commit(
        transform,
        first,
        at: 0..<50,
        onFailure: .skip(upTo: 10),
        recomputing: false
      )
    }
    #expect(error?.code == .rowsChanged)
    #expect(try await fresh.outcomes.succeeded == 50)
    #expect(try await store.doneRanges(ofRun: "run")?.count == 50)
    #expect(seen.withLock { $0 } == [])

    let lookCount = lane.watch.lookCount
    let renewed = try transform.refresh(
      first,
      lookCount: lookCount,
      onFailure: .skip(upTo: 10),
      in: worker
    )
    #expect(seen.withLock { $0 } == [9, 20, 30])
    let commit = try await lane.commit(
      transform,
      renewed,
      at: 0..<50,
      onFailure: .skip(upTo: 10),
      recomputing: false
    )
    var expected = Outcomes()
    (expected.succeeded, expected.failed) = (47, 1)
    (expected.noLongerMatching, expected.vanished) = (1, 1)
    #expect(commit.outcomes == expected)
    #expect(seen.withLock { $0.count } == 3)
    #expect(try await store.failedIdentifiers(ofRun: "run").map(\.position) == [29])
    let labels = try TestDatabase.texts(store.path, "SELECT label FROM numbers ORDER BY id")
    let unchanged = (1...100).map { "0 label \($0)" }
    var all = unchanged
    (all[8], all[19], all[29], all[39]) = ("3 label 9", "0 x", "label 30", "label 40")
    all.remove(at: 49)
    #expect(labels == all)
  }

  @Test func `a handler that hangs during a refresh times out, and its chunk changes nothing`()
    async throws
  {
    let lane = try await makeLane()
    let hang = DispatchSemaphore(value: 0)
    let hangs = Lock(false)
    let transform = try makeTransform(timeout: .milliseconds(50)) { _ in
      if hangs.withLock({ $0 }) { hang.wait() }
    }
    let chunk = try prepare(0..<50, by: transform, for: lane)
    try Connection(path: store.path).execute("UPDATE numbers SET n = 3 WHERE id = 9")
    hangs.withLock { $0 = true }
    defer { hang.signal() }
    let error = await #expect(throws: BatchError.self) {
      try await lane.commit(transform, chunk, at: 0..<50, onFailure: .skip(upTo: 10))
    }
    #expect(error?.code == .handlerTimeout)
    #expect(try await store.doneRanges(ofRun: "run")?.count == 0)
    let labels = try TestDatabase.texts(store.path, "SELECT label FROM numbers WHERE id = 1")
    #expect(labels == ["label 1"])
    // The lock is free.
    try Connection(path: store.path, options: .init(busyTimeout: .zero))
      .execute("UPDATE numbers SET n = 4 WHERE id = 9")
  }

  @Test func `a trigger that changes only its own row causes no second read or handler call`()
    async throws
  {
    try Connection(path: store.path).execute(
      """
      CREATE TRIGGER touch AFTER UPDATE OF label ON numbers
      BEGIN UPDATE numbers SET n = n + 1 WHERE id = new.id; END
      """
    )
    let lane = try await makeLane()
    let calls = Lock(0)
    let transform = try makeTransform { _ in calls.withLock { $0 += 1 } }
    #expect(transform.reach == .sameTable)
    let chunk = try prepare(0..<100, by: transform, for: lane)
    let commit = try await lane.commit(
      transform,
      chunk,
      at: 0..<100,
      onFailure: .skip(upTo: 10)
    )
    #expect(commit.outcomes.succeeded == 100)
    #expect(calls.withLock { $0 } == 100)
    let rows = try TestDatabase.texts(store.path, "SELECT n || ' ' || label FROM numbers")
    #expect(rows == (1...100).map { "1 0 label \($0)" })
  }

  @Test func `a handler sees the changes that a trigger makes to later rows of its chunk`()
    async throws
  {
    for size in [1, 3, 100] {
      let connection = try Connection(path: store.path)
      try connection.execute("DROP TRIGGER IF EXISTS pass")
      try connection.execute("UPDATE numbers SET n = 0, label = ''")
      try connection.execute(
        """
        CREATE TRIGGER pass AFTER UPDATE OF label ON numbers
        BEGIN UPDATE numbers SET n = n + 1 WHERE id = new.id + 1; END
        """
      )
      let lane = try store.makeWriterLane(WriterConfiguration())
      _ = try await lane.prepareStore()
      try await lane.begin(
        RunDescription(identifier: "\(size)", job: "job \(size)", total: Self.total, startedAt: "")
      )
      let transform = try makeTransform { _ in }
      var chunks: [(Range<Int>, TransformedChunk)] = []
      for start in stride(from: 0, to: Self.total, by: size) {
        let positions = start..<min(start + size, Self.total)
        chunks.append((positions, try prepare(positions, by: transform, for: lane)))
      }
      for (positions, chunk) in chunks {
        _ = try await lane.commit(
          transform,
          chunk,
          at: positions,
          onFailure: .skip(upTo: 10)
        )
      }
      let labels = try TestDatabase.texts(store.path, "SELECT label FROM numbers ORDER BY id")
      #expect(labels == (1...100).map { $0 == 1 ? "0 " : "1 " }, "\(size)")
    }
  }
}
