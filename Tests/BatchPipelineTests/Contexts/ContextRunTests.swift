import BatchObjects
import BatchTestSupport
import Foundation
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
  func `a run by objects changes every row once for any number of workers and chunk size`(
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
      // The rows exist already.
      #expect(context.registeredModels.count == identifiers.count)
      try Self.increment(context, identifiers)
    }
    let summary = try await run.run()
    #expect(summary.state == .completed && summary.outcomes.succeeded == 67)
    #expect(summary.total == 67 && summary.chunks == (67 + size - 1) / size)
    #expect(try count("n = 1") == 67 && count("n = 0") == 33)
    // Each chunk had its own context, and none is left.
    #expect(contexts.withLock { $0.count } == (67 + size - 1) / size)
    #expect(contexts.withLock { $0.count { $0.context != nil } } == 0)
  }

  private struct WeakContext: @unchecked Sendable {
    // Sendable: it is only checked for existence.
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

  @Test func `a run by objects that only reads takes no lock and needs no writable store`()
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
      // A chunk that writes does need the lock.
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

  @Test func `a run by objects that fails at any chunk resumes and changes every row once`()
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
    // It is finished, so the next call selects again, and finds nothing.
    let next = try await run(container, where: "n = 0", policy(9), Self.increment).run()
    #expect(next.state == .completed && next.total == 0)
  }

  @Test func `a resumed run by objects may omit its list but not replace it`() async throws {
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
    #expect(other?.message == "the run has other identifiers than those given")
    let renamed = await #expect(throws: BatchError.self) {
      try await run(list, named: "others", Self.increment)
    }
    #expect(renamed?.code == .otherRun)
    #expect(renamed?.message == "this is the checkpoint of job \"numbers\"")
    #expect(try await run(nil, Self.increment).state == .completed)
    #expect(try count("n = 1") == 100)
  }

  @Test func `a run by objects loses no concurrent change of another connection`() async throws {
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

  @Test func `a closure's changes of other rows are committed with its chunk`() async throws {
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
  func `a closure cannot commit without the record of its chunk`(
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

  // MARK: Failures

  /// Adds one to `n` of each row, and cannot do those whose number is divisible by seven.
  @Sendable private static func incrementButSevenths(
    _ context: ModelContext,
    _ identifiers: [PersistentIdentifier]
  ) throws {
    for number in try context.fetch(identifiers, as: ManagedObject.self) {
      guard case .integer(let n) = number["n"], case .integer(let id) = number["id"] else {
        throw Interruption()
      }
      if id % 7 == 0 {
        throw BatchError(.handlerFailed, "\(id) is divisible by seven")
      }
      number["n"] = .integer(n + 1)
    }
  }

  @Test(arguments: [1, 10, 100])
  func `identifiers for which the closure throws fail alone and can be retried`(
    size: Int
  ) async throws {
    var policy = policy(size)
    policy.skip.limit = 20
    let container = try await container()
    let failing = run(container, policy, Self.incrementButSevenths)
    let summary = try await failing.run()
    #expect(summary.state == .completedWithFailures && summary.outcomes.failed == 14)
    #expect(try count("n = 1") == 86 && count("n = 0 AND id % 7 = 0") == 14)
    let inspection = try FileInspection(of: checkpoint)
    let failed = try #require(inspection.run).failed
    #expect(failed.count == 14)
    for failure in failed {
      let key = failure.identifier.key?.description ?? ""
      #expect(failure.failure.message == "\(key) is divisible by seven")
      #expect(failure.failure.attempt == 1)
    }
    let again = try await failing.retryFailures()
    #expect(again.state == .completedWithFailures && again.outcomes.failed == 14)
    #expect(
      try FileInspection(of: checkpoint).run?.failed.allSatisfy { $0.failure.attempt == 2 } == true
    )
    let mended = try await run(container, policy, Self.increment).retryFailures()
    #expect(mended.state == .completed && mended.outcomes.succeeded == 100)
    #expect(try count("n = 1") == 100)
  }

  @Test(arguments: [1, 10, 100])
  func `identifiers whose changes the database refuses fail alone`(size: Int) async throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN new.id % 7 = 0
      BEGIN SELECT RAISE(ABORT, 'poison'); END
      """
    )
    var policy = policy(size)
    policy.skip.limit = 14
    let container = try await container()
    let summary = try await run(container, policy, Self.increment).run()
    #expect(summary.state == .completedWithFailures && summary.outcomes.failed == 14)
    #expect(try count("n = 1") == 86 && count("n = 0 AND id % 7 = 0") == 14)
    try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    #expect(try await run(container, policy, Self.increment).retryFailures().state == .completed)
    #expect(try count("n = 1") == 100)
  }

  @Test func `a run by objects with more failures than allowed stops and keeps its commits`()
    async throws
  {
    var policy = policy(10, workers: 1)
    policy.skip.limit = 3
    let container = try await container()
    let summary = try await run(container, policy, Self.incrementButSevenths).run()
    #expect(summary.state == .failed && summary.failure?.code == .handlerFailed)
    #expect(summary.failure?.remedy?.contains("skip") == true)
    // Of the prepared chunks, the fourth, with one failure, may be faster than the third, with two.
    let kept = try #require(try count("n = 1"))
    #expect(summary.outcomes.succeeded == kept && summary.outcomes.failed * 9 == kept && kept <= 27)
    let rest = try await run(container, policy, Self.increment).run()
    #expect(rest.outcomes.succeeded == 100 - kept / 9 && rest.outcomes.failed == kept / 9)
    #expect(try count("n = 1") == 100 - kept / 9 && count("n > 1") == 0)
  }

  @Test func `a chunk of a run by objects is retried after a transient failure`() async throws {
    var policy = policy(50, workers: 1)
    policy.retry = .init(limit: 3, backoff: .milliseconds(1))
    let calls = Lock(0)
    let run = run(try await container(), policy) { context, identifiers in
      try Self.increment(context, identifiers)
      if calls.withLock({ calls in (calls, calls += 1).0 }) < 2 {
        throw BatchError(.retryLater, "not now")
      }
    }
    let events = run.events()
    async let summary = run.run()
    var retries = 0
    for await event in events {
      if case .retrying(let retry) = event {
        retries += 1
        #expect(retry.error.code == .retryLater)
      }
    }
    #expect(try await summary.state == .completed)
    #expect(retries == 2 && calls.withLock { $0 } == 4)
    #expect(try count("n = 1") == 100)
  }

  @Test func `a closure that does not return in time fails the run with a timeout`() async throws {
    let isReleased = DispatchSemaphore(value: 0)
    let run = BatchRun(
      try await container(),
      named: "numbers",
      fetching: FetchRequest(entity: "numbers"),
      policy: policy(50, workers: 1),
      timeLimit: .milliseconds(50)
    ) { context, identifiers in
      try Self.increment(context, identifiers)
      // Like a closure that never returns, until the test is over.
      _ = isReleased.wait(timeout: .now() + 60)
    }
    let summary = try await run.run()
    isReleased.signal()
    #expect(summary.state == .failed && summary.failure?.code == .handlerTimeout)
    #expect(try count("n = 0") == 100)
  }

  // MARK: Steering

  @Test func `a stop request ends a run by objects after its chunks, and the next call resumes it`()
    async throws
  {
    let container = try await container()
    let holder = Lock<BatchRun?>(nil)
    let first = run(container, where: "n = 0", policy(5, workers: 1)) { context, identifiers in
      try Self.increment(context, identifiers)
      holder.withLock { $0 }?.stop()
    }
    holder.withLock { $0 = first }
    let stopped = try await first.run()
    holder.withLock { $0 = nil }
    #expect(stopped.state == .stopped && stopped.done < 100 && stopped.done > 0)
    #expect(try count("n = 1") == stopped.done)
    let rest = try await run(container, where: "n = 0", policy(5), Self.increment).run()
    #expect(rest.state == .completed && rest.resumedAt == stopped.done)
    #expect(try count("n = 1") == 100)
  }

  @Test func `cancelling the task stops a run by objects`() async throws {
    let container = try await container()
    let task = Lock<Task<RunSummary, any Error>?>(nil)
    let run = run(container, policy(5, workers: 1)) { context, identifiers in
      try Self.increment(context, identifiers)
      task.withLock { $0 }?.cancel()
    }
    let started = Task { try await run.run() }
    task.withLock { $0 = started }
    let summary = try await started.value
    #expect(summary.state == .stopped || summary.state == .completed)
    #expect(try count("n = 1") == summary.done)
  }

  @Test func `a run by objects has its status and identifiers in its checkpoint`() async throws {
    var policy = policy(10)
    policy.skip.limit = 20
    _ = try await run(try await container(), policy, Self.incrementButSevenths).run()
    let records = try checkpoint.records()
    let status = try await RunStatus(ofRunAt: checkpoint)
    #expect(status.summary.job == "numbers" && status.summary.state == .completedWithFailures)
    #expect(status.summary.outcomes.failed == 14 && status.next.name == "begin")
    #expect(try await records.identifiers(.failed, .all, ofRun: nil).count == 14)
    #expect(try await records.identifiers(.done, .all, ofRun: nil).count == 100)
    _ = try await records.cleanUp(removingHistory: false)
    #expect(try await RunStatus(ofRunAt: checkpoint).summary.outcomes.failed == 14)
  }

  // MARK: What others found

  @Test func `an ended run has no owner although its process lives`() async throws {
    let container = try await container()
    for body in [Self.increment, Self.incrementButSevenths] {
      let summary = try await run(container, policy(10), body).run()
      #expect(summary.state == .completed || summary.state == .failed)
      let owners = try TestDatabase.texts(path, "SELECT count(owner) FROM _batch_run")
      #expect(owners == ["0"])
    }
  }

  @Test(arguments: ["", " WITHOUT ROWID"], [1, 7])
  func `a run by objects processes rows with composite keys`(kind: String, size: Int) async throws {
    let path = try TestDatabase.make(
      "keys.db",
      in: directory,
      "CREATE TABLE pairs(a INTEGER, b TEXT, n INTEGER DEFAULT 0, PRIMARY KEY (a, b))\(kind)",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 30)
      INSERT INTO pairs(a, b) SELECT i, 'b' || i FROM c
      """
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let summary = try await BatchRun(
      container,
      named: "pairs",
      fetching: FetchRequest(entity: "pairs"),
      policy: policy(size),
      Self.increment
    ).run()
    #expect(
      summary.state == .completed && summary.outcomes.succeeded == 30,
      "\(summary.error ?? "")"
    )
    #expect(
      try TestDatabase.texts(path, "SELECT sum(n), count(*) FROM pairs WHERE n = 1") == ["30"]
    )
  }

  @Test(arguments: ["", "DEFERRABLE INITIALLY DEFERRED"], [1, 10])
  func `rows that others refer to fail alone, with immediate and deferred foreign keys`(
    kind: String,
    size: Int
  ) async throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE child(id INTEGER PRIMARY KEY, number_id INTEGER REFERENCES numbers(id) \(kind))"
    )
    try TestDatabase.make(in: directory, "INSERT INTO child(number_id) VALUES (5), (50), (55)")
    var policy = policy(size)
    policy.skip.limit = 3
    let summary = try await run(try await container(), policy) { context, identifiers in
      for object in try context.fetch(identifiers, as: ManagedObject.self) {
        context.delete(object)
      }
    }.run()
    #expect(summary.state == .completedWithFailures && summary.outcomes.failed == 3)
    #expect(
      try TestDatabase.texts(path, "SELECT id FROM numbers ORDER BY id") == ["5", "50", "55"]
    )
  }

  @Test func `a trigger that changes other rows of a save causes no conflict`() async throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER next AFTER UPDATE OF n ON numbers BEGIN
        UPDATE numbers SET label = label || '!' WHERE id = new.id + 1;
      END
      """
    )
    let summary = try await run(try await container(), policy(10, workers: 1), Self.increment).run()
    #expect(summary.state == .completed, "\(summary.error ?? "")")
    #expect(try count("n = 1") == 100)
    #expect(try count("label LIKE '%!'") == 99)
  }

  @Test func `skipping failures is refused for a run without a checkpoint`() async throws {
    var policy = policy(10, isKept: false)
    policy.skip.limit = 5
    let run = run(try await container(), policy, Self.increment)
    let error = await #expect(throws: BatchError.self) { try await run.run() }
    #expect(error?.code == .invalidJob && error?.message.contains("recorded") == true)
  }
}
