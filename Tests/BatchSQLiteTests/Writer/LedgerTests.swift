import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Testing

@Suite struct LedgerTests {
  let directory: TemporaryDirectory
  let store: Store
  let change: BulkChange
  let list: IdentifierList

  private static let total = 60

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

  private func lane(
    beginning run: String,
    job: String = "job",
    settingOthersAside: Bool = false
  ) async throws -> WriterLane {
    let lane = try store.makeWriterLane(WriterConfiguration())
    _ = try await lane.prepareStore()
    var description = RunDescription(
      identifier: run,
      job: job,
      total: Self.total,
      startedAt: "2026-11-21T00:00:00Z"
    )
    description.setsOthersAside = settingOthersAside
    try await lane.begin(description)
    return lane
  }

  private func apply(_ positions: Range<Int>, in lane: WriterLane) async throws {
    _ = try await lane.commit(
      change,
      to: ChunkKeys(list.packed, positions, key: change.key),
      at: positions
    )
  }

  /// The positions whose rows were changed once, and a failure for any that were changed twice.
  private func changed() throws -> Set<Int> {
    let rows = try TestDatabase.rows(store.path, "SELECT id - 1, n FROM numbers WHERE n <> 0")
    var positions: Set<Int> = []
    for row in rows {
      #expect(row[1] == .integer(1))
      if case .integer(let position) = row[0] { positions.insert(Int(position)) }
    }
    return positions
  }

  private func entered(_ run: String = "run") async throws -> Set<Int> {
    let done = try #require(try await store.doneRanges(ofRun: run))
    return Set(done.rows.flatMap { Array($0.first..<$0.next) })
  }

  @Test(arguments: 0..<10 as Range<UInt64>)
  func `the ledger table equals the writer's state after every chunk`(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    var lane = try await lane(beginning: "run")
    var done = DoneRanges()
    for chunk in Chunks.random(of: Self.total, using: &random) {
      try await apply(chunk, in: lane)
      var outcomes = Outcomes()
      outcomes.succeeded = chunk.count
      done.insert(.init(chunk, outcomes: outcomes, chunks: 1))
      #expect(try await store.doneRanges(ofRun: "run") == done)
      #expect(try changed() == (try await entered()))
      if Int.random(in: 0..<4, using: &random) == 0 {
        lane = try store.makeWriterLane(WriterConfiguration())
        #expect(try await lane.resume("run") == done)
      }
      if Bool.random(using: &random) { #expect(try await lane.makeDurable().done == done) }
    }
    #expect(try TestDatabase.rows(store.path, "SELECT first, next FROM _batch_ledger").count == 1)
  }

  @Test func `a new run keeps a finished unacknowledged run until the run after it`() async throws {
    try await apply(0..<Self.total, in: lane(beginning: "finished"))
    _ = try await lane(beginning: "new")
    let runs = "SELECT run || ' ' || coalesce(state, '') FROM _batch_run ORDER BY run"
    #expect(try TestDatabase.texts(store.path, runs) == ["finished acknowledged", "new "])
    _ = try await lane(beginning: "newer")
    #expect(try TestDatabase.texts(store.path, runs) == ["newer "])
  }

  @Test func `a new run removes the finished runs of its job and keeps all others`() async throws {
    try await apply(0..<Self.total, in: lane(beginning: "finished"))
    try await lane(beginning: "of another", job: "other").acknowledge("finished")
    try await apply(3..<9, in: lane(beginning: "unfinished"))
    _ = try await lane(beginning: "new", settingOthersAside: true)
    let runs = try TestDatabase.texts(store.path, "SELECT run FROM _batch_run ORDER BY run")
    #expect(runs == ["new", "of another", "unfinished"])
    #expect(
      try TestDatabase.texts(store.path, "SELECT DISTINCT run FROM _batch_ledger ORDER BY run")
        == ["unfinished"]
    )
    #expect(try await entered("unfinished") == Set(3..<9))
    #expect(try await store.doneRanges(ofRun: "finished") == nil)
    #expect(try await store.doneRanges(ofRun: "new") == DoneRanges())
  }

  @Test(arguments: [
    "UPDATE _batch_ledger SET next = first",
    "UPDATE _batch_ledger SET first = -5",
    "UPDATE _batch_ledger SET next = 9223372036854775807",
    "UPDATE _batch_ledger SET next = next - 1",
    "UPDATE _batch_ledger SET succeeded = 9223372036854775807, vanished = 9223372036854775807",
    "UPDATE _batch_ledger SET vanished = -1, succeeded = succeeded + 1",
    "UPDATE _batch_ledger SET chunks = 0",
    "UPDATE _batch_ledger SET first = 'x'",
    "INSERT INTO _batch_ledger VALUES ('run', 12, 20, 8, 0, 0, 0, 0, 1)",
  ])
  func `a ledger that was edited by hand is refused`(change: String) async throws {
    try await apply(10..<15, in: lane(beginning: "run"))
    try Connection(path: store.path).execute(change)
    let error = await #expect(throws: BatchError.self) {
      try await store.doneRanges(ofRun: "run")
    }
    #expect(error?.code == .damagedFile)
    let lane = try store.makeWriterLane(WriterConfiguration())
    await #expect(throws: BatchError.self) { try await lane.resume("run") }
  }

  @Test func `a trigger that fails the nth row leaves data and ledger consistent`() async throws {
    let connection = try Connection(path: store.path)
    for failing in 1...12 {
      let lane = try await lane(beginning: "run \(failing)", job: "job \(failing)")
      try connection.execute("UPDATE numbers SET n = 0")
      try connection.execute(
        """
        CREATE TRIGGER stop BEFORE UPDATE ON numbers WHEN old.id = \(failing * 5 - 2)
        BEGIN SELECT RAISE(ABORT, 'stopped'); END
        """
      )
      for start in stride(from: 0, to: Self.total, by: 7) {
        let chunk = start..<min(start + 7, Self.total)
        try? await apply(chunk, in: lane)
        #expect(try changed() == (try await entered("run \(failing)")))
      }
      try connection.execute("DROP TRIGGER stop")
      let stopped = (failing * 5 - 3) / 7 * 7
      #expect(
        try await entered("run \(failing)")
          == Set(0..<Self.total).subtracting(stopped..<(stopped + 7))
      )
      for gap in try await store.doneRanges(ofRun: "run \(failing)")?.remaining(of: 60) ?? [] {
        try await apply(gap, in: lane)
      }
      #expect(try changed() == Set(0..<Self.total))
    }
  }

  @Test func `a chunk is rolled back if its ledger entry cannot be written`() async throws {
    let lane = try await lane(beginning: "run")
    try await apply(0..<10, in: lane)
    let connection = try Connection(path: store.path)
    try connection.execute(
      """
      CREATE TRIGGER full BEFORE INSERT ON _batch_ledger
      BEGIN SELECT RAISE(ABORT, 'no room'); END
      """
    )
    await #expect(throws: BatchError.self) { try await apply(10..<20, in: lane) }
    #expect(try changed() == Set(0..<10))
    try connection.execute("DROP TRIGGER full")
    try await apply(10..<20, in: lane)
    #expect(try await store.doneRanges(ofRun: "run")?.rows.map(\.next) == [20])
  }

  @Test func `an interrupted writer leaves data and ledger consistent`() async throws {
    let lane = try await lane(beginning: "run")
    let interrupter = lane.interrupter
    for start in stride(from: 0, to: 60, by: 3) {
      async let applied: Void = apply(start..<(start + 3), in: lane)
      interrupter.interrupt()
      _ = try? await applied
      #expect(try changed() == (try await entered()))
    }
  }
}
