import BatchPipeline
import BatchTestSupport
import SystemPackage
import Testing

/// Work by objects, a fresh context for each chunk.
@Suite struct ContextRunTests {
  private struct Interruption: Error {}

  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(100, in: directory)
  }

  private func container(
    isReadOnly: Bool = false,
    busyTimeout: Duration = .seconds(5)
  ) async throws -> ModelContainer {
    try await ModelContainer(
      configurations: ModelConfiguration(
        path: path,
        isReadOnly: isReadOnly,
        busyTimeout: busyTimeout
      )
    )
  }

  private var checkpoint: FilePath { FilePath(directory.file("numbers.batch")) }

  private func policy(
    _ size: Int = 1000,
    workers: Int = 2,
    isKept: Bool = true
  ) -> RunPolicy {
    var policy = RunPolicy(chunk: .init(size: size), workers: workers)
    policy.retry.limit = 0
    if isKept { policy.checkpoint.path = checkpoint }
    return policy
  }

  private func run(
    _ container: ModelContainer,
    where condition: String? = nil,
    _ policy: RunPolicy,
    missingRows: MissingRows = .counted,
    _ body: @escaping ChunkBody
  ) -> BatchRun {
    BatchRun(
      container,
      named: "numbers",
      fetching: FetchRequest(entity: "numbers", where: condition),
      policy: policy,
      missingRows: missingRows,
      body
    )
  }

  private func list(
    in container: ModelContainer,
    where condition: String? = nil
  ) async throws -> IdentifierList {
    try await container.stores[0].fetchIdentifiers(
      FetchRequest(entity: "numbers", where: condition)
    )
  }

  private func count(_ condition: String) throws -> Int? {
    try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE \(condition)").first.flatMap {
      Int($0)
    }
  }

  /// Adds one to `n` of each row.
  @Sendable private static func increment(
    _ context: ModelContext,
    _ identifiers: [PersistentIdentifier]
  ) throws {
    for number in try context.fetch(identifiers, as: ManagedObject.self, skippingMissing: true) {
      guard case .integer(let n) = number["n"] else { throw Interruption() }
      number["n"] = .integer(n + 1)
    }
  }

  @Test(arguments: [1, 2, 5], [1, 7, 100, 1000])
  func `every row is changed once, whatever the number of workers and the size of chunks`(
    workers: Int,
    size: Int
  ) async throws {
    let contexts = Lock<[WeakContext]>([])
    let run = run(
      try await container(),
      where: "id % 3 > 0",
      policy(size, workers: workers, isKept: false)
    ) { context, identifiers in
      contexts.withLock { $0.append(WeakContext(context)) }
      #expect(identifiers.count <= size)
      // The rows are there already.
      #expect(context.registeredModels.count == identifiers.count)
      try Self.increment(context, identifiers)
    }
    let summary = try await run.run()
    #expect(summary.state == .completed && summary.outcomes.succeeded == 67)
    #expect(summary.total == 67 && summary.chunks == (67 + size - 1) / size)
    #expect(try count("n = 1") == 67 && count("n = 0") == 33)
    // Each chunk had a context of its own, and none is left.
    #expect(contexts.withLock { $0.count } == (67 + size - 1) / size)
    #expect(contexts.withLock { $0.count { $0.context != nil } } == 0)
  }

  private struct WeakContext: @unchecked Sendable {
    // Sendable: it is only asked whether the context is there.
    weak var context: ModelContext?

    init(_ context: ModelContext) {
      self.context = context
    }
  }

  @Test func `missing rows are counted, or refused with their number`() async throws {
    let container = try await container()
    let list = try await list(in: container)
    try TestDatabase.make(in: directory, "DELETE FROM numbers WHERE id % 10 = 3")
    func run(_ missingRows: MissingRows) async throws -> RunSummary {
      try await BatchRun(
        container,
        named: "numbers",
        over: list,
        policy: policy(30),
        missingRows: missingRows,
        Self.increment
      ).run()
    }
    let counted = try await run(.counted)
    #expect(counted.outcomes.succeeded == 90 && counted.outcomes.vanished == 10)
    let refused = try await run(.refused)
    #expect(refused.state == .failed && refused.failure?.code == .objectNotFound)
    #expect(refused.failure?.message == "3 of 30 identifiers have no row")
    #expect(try count("n = 1") == 90)
  }

  @Test func `a run that only looks at rows takes no lock, and needs no store to write to`()
    async throws
  {
    try TestDatabase.make(in: directory, "DELETE FROM numbers WHERE id = 7")
    // The first container gives the store its UUID, which takes the lock.
    _ = try await container()
    let other = try Connection(path: path)
    try other.execute("BEGIN IMMEDIATE")
    for isReadOnly in [false, true] {
      let container = try await container(isReadOnly: isReadOnly, busyTimeout: .zero)
      let count = Lock(0)
      let summary = try await run(container, policy(9, isKept: false)) { context, identifiers in
        for object in try context.fetch(identifiers, as: ManagedObject.self, skippingMissing: true)
        where object["n"] == .integer(0) {
          count.withLock { $0 += 1 }
        }
      }.run()
      #expect(
        summary.state == .completed && summary.outcomes.succeeded == 99,
        "\(summary.error ?? "")"
      )
      #expect(summary.checkpoint.isEmpty && count.withLock { $0 } == 99)
      // What writes does need the lock.
      let code: BatchError.Code = isReadOnly ? .readOnly : .busy
      let change = try await run(container, policy(9, isKept: false), Self.increment).run()
      #expect(change.failure?.code == code)
      let entry = run(container, policy(9)) { _, _ in }
      do {
        let summary = try await entry.run()
        #expect(summary.failure?.code == code)
      } catch {
        #expect(error.code == code)
      }
    }
    try other.execute("ROLLBACK")
    #expect(try count("n = 0") == 99)
  }

  @Test func `interrupted at any chunk, the same call goes on and changes every row once`()
    async throws
  {
    let container = try await container()
    var interruptions = 0
    for number in 1... {
      let calls = Lock(0)
      let before = try count("n > 0")
      // What is selected changes as rows are done.
      let run = run(container, where: "n = 0", policy(9)) { context, identifiers in
        try Self.increment(context, identifiers)
        let count = calls.withLock { calls in
          calls += 1
          return calls
        }
        if count == number { throw Interruption() }
      }
      let summary = try await run.run()
      #expect(summary.total == 100)
      #expect(try count("n > 1") == 0)
      if summary.state == .completed {
        #expect(summary.resumedAt == before && summary.outcomes.succeeded == 100)
        break
      }
      #expect(summary.state == .failed && summary.failure?.underlying is Interruption)
      interruptions += 1
      let inspection = try FileInspection(of: checkpoint)
      #expect(inspection.run?.state == "failed")
      #expect(try count("n = 1") == inspection.run?.done)
    }
    #expect(interruptions > 2)
    #expect(try count("n = 1") == 100)
    // It is finished, so the next call selects anew, and finds nothing.
    let next = try await run(container, where: "n = 0", policy(9), Self.increment).run()
    #expect(next.state == .completed && next.total == 0)
  }

  @Test func `a list need not be given again, and another one is refused`() async throws {
    let container = try await container()
    let list = try await list(in: container)
    func run(
      _ list: IdentifierList?,
      named name: String = "numbers",
      _ body: @escaping ChunkBody
    ) async throws(BatchError) -> RunSummary {
      try await BatchRun(container, named: name, over: list, policy: policy(9), body).run()
    }
    let none = await #expect(throws: BatchError.self) { try await run(nil, Self.increment) }
    #expect(none?.code == .invalidJob)
    let isFirst = Lock(true)
    let failed = try await run(list) { context, identifiers in
      try Self.increment(context, identifiers)
      guard isFirst.withLock({ isFirst in (isFirst, isFirst = false).0 }) else {
        throw Interruption()
      }
    }
    #expect(failed.state == .failed)
    let others = try await self.list(in: container, where: "id > 1")
    let other = await #expect(throws: BatchError.self) { try await run(others, Self.increment) }
    #expect(other?.code == .otherRun)
    #expect(other?.message == "the run has other identifiers than those that were given")
    let renamed = await #expect(throws: BatchError.self) {
      try await run(list, named: "others", Self.increment)
    }
    #expect(renamed?.code == .otherRun)
    #expect(renamed?.message == "this is the checkpoint of job \"numbers\"")
    #expect(try await run(nil, Self.increment).state == .completed)
    #expect(try count("n = 1") == 100)
  }

  @Test func `what another connection changes meanwhile is not lost`() async throws {
    let path = path
    let isFirst = Lock(true)
    let calls = Lock(0)
    let summary = try await run(try await container(), policy(50, workers: 1)) {
      context,
      identifiers in
      calls.withLock { $0 += 1 }
      try Self.increment(context, identifiers)
      let isMine = isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      if isMine {
        try Connection(path: path).execute("UPDATE numbers SET n = n + 10 WHERE id IN (7, 70)")
      }
    }.run()
    #expect(summary.outcomes.succeeded == 100)
    #expect(calls.withLock { $0 } >= 3)
    #expect(try count("n = 11") == 2 && count("n = 1") == 98)
  }

  @Test func `a context may change other rows too, all or none with its chunk`() async throws {
    let summary = try await run(try await container(), where: "id <= 20", policy(5, workers: 3)) {
      context,
      identifiers in
      for identifier in identifiers {
        let copy = try context.insertNewObject(ofEntity: "numbers")
        copy["n"] = .integer(5)
        context.delete(context.model(for: identifier))
      }
    }.run()
    #expect(summary.state == .completed)
    #expect(try count("n = 5") == 20 && count("id <= 20") == 0)
  }

  @Test(arguments: [true, false])
  func `a closure cannot commit anything without the record of its chunk`(
    isResumable: Bool
  ) async throws {
    let container = try await container()
    let commits: [@Sendable (ModelContext) throws -> Void] = [
      { try $0.save() },
      { context in try context.transaction {} },
    ]
    for commit in commits {
      let summary = try await run(container, policy(50, workers: 1, isKept: isResumable)) {
        context,
        identifiers in
        try Self.increment(context, identifiers)
        try commit(context)
      }.run()
      #expect(summary.failure?.code == .nestedSave)
      #expect(try count("n = 0") == 100)
    }
    let summary = try await run(container, policy(isKept: isResumable), Self.increment).run()
    #expect(summary.state == .completed)
    #expect(try count("n = 1") == 100)
  }

  @Test func `identifiers of another store are refused`() async throws {
    let list = try await list(in: try await container())
    let elsewhere = try TestDatabase.makeNumbers(3, in: directory, name: "other.db")
    let foreign = try await ModelContainer(configurations: ModelConfiguration(path: elsewhere))
    let error = await #expect(throws: BatchError.self) {
      try await BatchRun(foreign, named: "numbers", over: list, policy: policy(), Self.increment)
        .run()
    }
    #expect(error?.code == .foreignIdentifier)
    let selected = await #expect(throws: BatchError.self) {
      try await BatchRun(
        foreign,
        named: "numbers",
        selecting: { list },
        policy: policy(),
        Self.increment
      ).run()
    }
    #expect(selected?.code == .foreignIdentifier)
    #expect(try count("n = 0") == 100)
  }
}
