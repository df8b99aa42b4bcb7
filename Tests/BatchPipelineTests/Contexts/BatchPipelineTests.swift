import BatchIdentifiers
import BatchPipeline
import BatchStore
import BatchTestSupport
import SystemPackage
import Testing

/// Work by objects, a fresh context for each chunk.
@Suite struct BatchPipelineTests {
  private struct Interruption: Error {}

  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(100, in: directory)
  }

  private func container() async throws -> ModelContainer {
    try await ModelContainer(configurations: ModelConfiguration(path: path))
  }

  private func list(in container: ModelContainer, where condition: String? = nil) async throws
    -> IdentifierList
  {
    try await container.stores[0].fetchIdentifiers(
      FetchRequest(entity: "numbers", where: condition)
    )
  }

  private var checkpoint: FilePath { FilePath(directory.file("numbers.batch")) }

  private func count(_ condition: String) throws -> String? {
    try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE \(condition)").first
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
    let container = try await container()
    let list = try await list(in: container, where: "id % 3 > 0")
    let contexts = Lock<[WeakContext]>([])
    let pipeline = BatchPipeline(container, chunkSize: size, workers: workers)
    let result = try await pipeline.run(list) { context, identifiers in
      contexts.withLock { $0.append(WeakContext(context)) }
      #expect(identifiers.count <= size)
      // The rows are there already.
      #expect(context.registeredModels.count == identifiers.count)
      try Self.increment(context, identifiers)
    }
    #expect(result.requested == 67 && result.resolved == 67 && result.missing == 0)
    #expect(try count("n = 1") == "67" && count("n = 0") == "33")
    // Each chunk had a context of its own. Its executor lets go of the last ones in its own time.
    #expect(contexts.withLock { $0.count } == (67 + size - 1) / size)
    #expect(contexts.withLock { $0.count { $0.context != nil } } <= workers)
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
    var pipeline = BatchPipeline(container, chunkSize: 30, checkpoint: checkpoint)
    let result = try await pipeline.run(list, Self.increment)
    #expect(result.requested == 100 && result.resolved == 90 && result.missing == 10)

    pipeline.missingRows = .refused
    let error = await #expect(throws: BatchError.self) {
      try await pipeline.run(list, Self.increment)
    }
    #expect(error?.code == .objectNotFound)
    #expect(error?.message == "3 of 30 identifiers have no row")
    #expect(try count("n = 1") == "90")
  }

  @Test func `a run that only looks at rows takes no lock, and needs no store to write to`()
    async throws
  {
    let list = try await list(in: try await container())
    try TestDatabase.make(in: directory, "DELETE FROM numbers WHERE id = 7")
    let other = try Connection(path: path)
    try other.execute("BEGIN IMMEDIATE")
    for isReadOnly in [false, true] {
      let container = try await ModelContainer(
        configurations: ModelConfiguration(
          path: path,
          isReadOnly: isReadOnly,
          busyTimeout: .zero
        )
      )
      var pipeline = BatchPipeline(container, chunkSize: 9)
      let count = Lock(0)
      let result = try await pipeline.run(list) { context, identifiers in
        for object in try context.fetch(identifiers, as: ManagedObject.self, skippingMissing: true)
        where object["n"] == .integer(0) {
          count.withLock { $0 += 1 }
        }
      }
      #expect(result.requested == 100 && result.resolved == 99 && result.resumedAt == 0)
      #expect(count.withLock { $0 } == 99)
      // What writes does need the lock.
      let code: BatchError.Code = isReadOnly ? .readOnly : .busy
      let change = await #expect(throws: BatchError.self) {
        try await pipeline.run(list, Self.increment)
      }
      #expect(change?.code == code)
      pipeline.checkpoint = checkpoint
      let entry = await #expect(throws: BatchError.self) {
        try await pipeline.run(list) { _, _ in }
      }
      #expect(entry?.code == code)
    }
    try other.execute("ROLLBACK")
    #expect(try count("n = 0") == "99")
  }

  @Test func `interrupted at any chunk, the same call goes on and changes every row once`()
    async throws
  {
    let container = try await container()
    let list = try await list(in: container)
    var interruptions = 0
    for number in 1... {
      let calls = Lock(0)
      let pipeline = BatchPipeline(container, chunkSize: 9, checkpoint: checkpoint)
      let before = try count("n > 0")
      do {
        let result = try await pipeline.run(list) { context, identifiers in
          try Self.increment(context, identifiers)
          if calls.withLock({ calls in
            calls += 1
            return calls == number
          }) {
            throw Interruption()
          }
        }
        #expect(result.requested == 100 && result.resumedAt == before.flatMap { Int($0) })
        break
      } catch is Interruption {
        interruptions += 1
        #expect(try count("n > 1") == "0")
        let inspection = try FileInspection(of: checkpoint)
        #expect(inspection.run?.state == "failed")
        #expect(try count("n = 1") == inspection.run.map { "\($0.done)" })
      }
    }
    #expect(interruptions > 2)
    #expect(try count("n = 1") == "100")
    // It is finished, so the next call begins anew.
    let pipeline = BatchPipeline(container, checkpoint: checkpoint)
    #expect(try await pipeline.run(list, Self.increment).resumedAt == 0)
    #expect(try count("n = 2") == "100")
  }

  @Test func `what another connection changes meanwhile is not lost`() async throws {
    let container = try await container()
    let list = try await list(in: container)
    let path = path
    let isFirst = Lock(true)
    let pipeline = BatchPipeline(container, chunkSize: 50, workers: 1, checkpoint: checkpoint)
    let calls = Lock(0)
    let result = try await pipeline.run(list) { context, identifiers in
      calls.withLock { $0 += 1 }
      try Self.increment(context, identifiers)
      let isMine = isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      if isMine {
        try Connection(path: path).execute("UPDATE numbers SET n = n + 10 WHERE id IN (7, 70)")
      }
    }
    #expect(result.resolved == 100)
    #expect(calls.withLock { $0 } == 3)
    #expect(try count("n = 11") == "2" && count("n = 1") == "98")
  }

  @Test func `a context may change other rows too, all or none with its chunk`() async throws {
    let container = try await container()
    let list = try await list(in: container, where: "id <= 20")
    let pipeline = BatchPipeline(container, chunkSize: 5, workers: 3, checkpoint: checkpoint)
    _ = try await pipeline.run(list) { context, identifiers in
      for identifier in identifiers {
        let copy = try context.insertNewObject(ofEntity: "numbers")
        copy["n"] = .integer(5)
        context.delete(context.model(for: identifier))
      }
    }
    #expect(try count("n = 5") == "20" && count("id <= 20") == "0")
  }

  @Test(arguments: [true, false])
  func `a closure cannot commit anything without the record of its chunk`(
    isResumable: Bool
  ) async throws {
    let container = try await container()
    let list = try await list(in: container)
    var pipeline = BatchPipeline(container, chunkSize: 50, workers: 1)
    if isResumable { pipeline.checkpoint = checkpoint }
    let commits: [@Sendable (ModelContext) throws -> Void] = [
      { try $0.save() },
      { context in try context.transaction {} },
    ]
    for commit in commits {
      let error = await #expect(throws: BatchError.self) {
        try await pipeline.run(list) { context, identifiers in
          try Self.increment(context, identifiers)
          try commit(context)
        }
      }
      #expect(error?.code == .nestedSave)
      #expect(try count("n = 0") == "100")
    }
    #expect(try await pipeline.run(list, Self.increment).resolved == 100)
    #expect(try count("n = 1") == "100")
  }

  @Test func `the list of another store, and the checkpoint of another list, are refused`()
    async throws
  {
    let container = try await container()
    let list = try await list(in: container)
    let pipeline = BatchPipeline(container, checkpoint: checkpoint)
    await #expect(throws: Interruption.self) {
      try await pipeline.run(list) { _, _ in throw Interruption() }
    }
    let others = try await self.list(in: container, where: "id > 1")
    let other = await #expect(throws: BatchError.self) {
      try await pipeline.run(others, Self.increment)
    }
    #expect(other?.code == .otherRun)

    let elsewhere = try TestDatabase.makeNumbers(3, in: directory, name: "other.db")
    let foreign = try await ModelContainer(configurations: ModelConfiguration(path: elsewhere))
    let error = await #expect(throws: BatchError.self) {
      try await BatchPipeline(foreign).run(list, Self.increment)
    }
    #expect(error?.code == .foreignIdentifier)
    #expect(try count("n = 0") == "100")
  }
}
