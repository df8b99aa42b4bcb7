import BatchObjects
import BatchPipeline
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

private final class Order: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Order.self,
    entity: "Order",
    table: "orders",
    properties: [
      .attribute("id", \.id), .attribute("cents", \.cents), .attribute("done", \.done),
      .attribute("placed", \.placed, as: .iso8601), .attribute("name", \.name),
      .attribute("at", \.at, as: .unixSeconds), .attribute("since", \.since, as: .referenceSeconds),
    ]
  )

  var name: String { self[\.name] }
  var at: Date { self[\.at] }
  var since: Date { self[\.since] }

  var id: Int { self[\.id] }
  var cents: Int { self[\.cents] }
  var placed: Date { self[\.placed] }
  var done: Int {
    get { self[\.done] }
    set { self[\.done] = newValue }
  }
}

/// What a run by objects that is resumed compares, and which identifiers its closure gets.
@Suite struct ContextResumeTests {
  private let directory: TemporaryDirectory
  private let path: String
  private let container: ModelContainer

  init() async throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE orders (
        id INTEGER PRIMARY KEY, cents INTEGER, done INTEGER NOT NULL DEFAULT 0, placed TEXT,
        name TEXT, at REAL, since REAL
      )
      """,
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 100)
      INSERT INTO orders SELECT i, i * 10, 0, '2026-01-01T00:00:00Z', 'order ' || i, 0, 0 FROM c
      """
    )
    container = try await ModelContainer(
      for: Order.self,
      configurations: ModelConfiguration(path: path)
    )
  }

  private var policy: RunPolicy {
    var policy = RunPolicy(chunk: .init(size: 10), workers: 1)
    policy.retry.limit = 0
    policy.checkpoint.path = FilePath(directory.file("orders.batch"))
    return policy
  }

  private struct Refusal: Error {}

  /// Runs until order 45, if `fails`.
  @discardableResult
  private func run(_ descriptor: FetchDescriptor<Order>, fails: Bool) async throws -> RunSummary {
    try await BatchRun(container, named: "orders", fetching: descriptor, policy: policy) {
      context,
      identifiers in
      for order in try context.fetch(identifiers, as: Order.self) {
        if fails, order.id == 45 { throw BatchError(.readOnly, "this is a test") }
        order.done += 1
      }
    }.run()
  }

  private func done() throws -> String {
    try TestDatabase.texts(path, "SELECT sum(done) || ' ' || max(done) FROM orders")[0]
  }

  @Test func `a changed predicate, order or limit is refused on resume, and told`() async throws {
    let (cents, day) = (0, Date(timeIntervalSince1970: 1_790_000_000))
    func descriptor(
      over least: Int,
      before date: Date,
      limit: Int? = nil,
      sorted: Bool = false
    ) -> FetchDescriptor<Order> {
      var descriptor = FetchDescriptor<Order>(
        predicate: #Predicate { $0.cents > least && $0.placed < date }
      )
      descriptor.fetchLimit = limit
      if sorted { descriptor.sortBy = [.reverse(\.cents)] }
      return descriptor
    }
    #expect(try await run(descriptor(over: cents, before: day), fails: true).state == .failed)
    #expect(try done() == "40 1")
    let others: [(FetchDescriptor<Order>, String)] = [
      (descriptor(over: 500, before: day), "greaterThan cents 500"),
      (descriptor(over: cents, before: day, limit: 50), "LIMIT 50"),
      (descriptor(over: cents, before: day, sorted: true), "DESC"),
      (FetchDescriptor<Order>(), "is now \"ORDER BY"),
      (
        FetchDescriptor<Order>(predicate: #Predicate { $0.cents >= cents && $0.placed < day }),
        "greaterThanOrEqual cents 0"
      ),
    ]
    for (other, difference) in others {
      let error = await #expect(throws: BatchError.self) { try await run(other, fails: false) }
      #expect(error?.code == .otherRun)
      #expect(error?.message.contains("the fetch was ") == true, "\(error?.message ?? "")")
      #expect(error?.message.contains(difference) == true, "\(error?.message ?? "")")
      #expect(try done() == "40 1")
    }
    // A date is often the time of the call.
    let summary = try await run(descriptor(over: cents, before: day + 60), fails: false)
    #expect(summary.state == .completed && summary.outcomes.succeeded == 100)
    #expect(try done() == "100 1")
  }

  private struct Pair {
    let first: Predicate<Order>
    let second: Predicate<Order>
    let isSame: Bool
  }

  /// Predicates with other captured values.
  private static func pairs() -> [Pair] {
    var pairs: [Pair] = []
    func add<Value>(
      _ values: (Value, Value),
      same: Bool = false,
      _ make: (Value) -> Predicate<Order>
    ) {
      pairs.append(Pair(first: make(values.0), second: make(values.1), isSame: same))
    }
    // Evaluated in Swift.
    add((2, 3)) { k in #Predicate { $0.cents * k > 0 } }
    add((7, 1_001)) { k in #Predicate { $0.cents % k != 2_000 } }
    for same in [false, true] {
      let texts = ("order", same ? "order" : "rder ")
      add(texts, same: same) { text in #Predicate { $0.name.contains(text) } }
      add(("o", same ? "o" : "n"), same: same) { text in #Predicate { $0.name > text } }
      add(texts, same: same) { text in
        #Predicate { $0.name.localizedStandardContains(text) }
      }
    }
    // The elements of a set have another order in each process, and in each capacity.
    for count in [3, 301, 5_001] {
      let (ids, names) = (Set(1...count), Set((1...count).map { "order \($0)" }))
      var (sameIDs, sameNames) = (ids, names)
      sameIDs.reserveCapacity(100_000)
      sameNames.reserveCapacity(100_000)
      add((ids, sameIDs), same: true) { set in #Predicate { $0.cents > 0 || set.contains($0.id) } }
      add((names, sameNames), same: true) { set in
        #Predicate { $0.cents > 0 || set.contains($0.name) }
      }
      add((ids, ids.union([100_000]))) { set in #Predicate { $0.cents > 0 || set.contains($0.id) } }
      add((names, names.union(["x"]))) { set in
        #Predicate { $0.cents > 0 || set.contains($0.name) }
      }
    }
    // Dates, however they are stored and compared.
    let (now, later) = (Date(timeIntervalSince1970: 1_790_000_000), Date.now)
    add((now, later), same: true) { date in #Predicate { $0.at < date } }
    add((now, later), same: true) { date in #Predicate { $0.at <= date } }
    add((now, later), same: true) { date in #Predicate { $0.at != date } }
    add((now, later), same: true) { date in #Predicate { !($0.at > date) } }
    add((now, later), same: true) { date in #Predicate { $0.since != date } }
    add((now, later), same: true) { date in #Predicate { $0.since < date } }
    add((now...later, now...(later + 5)), same: true) { dates in
      #Predicate { $0.cents > 0 || dates.contains($0.at) }
    }
    add(([now], [later]), same: true) { dates in
      #Predicate { $0.cents > 0 || dates.contains($0.placed) }
    }
    // Other operators over the same values.
    let (text, k) = ("order", 5)
    pairs += [
      Pair(
        first: #Predicate { $0.name.contains(text) },
        second: #Predicate { $0.name.starts(with: text) },
        isSame: false
      ),
      Pair(
        first: #Predicate { $0.cents * k > 5 },
        second: #Predicate { $0.cents + k > 5 },
        isSame: false
      ),
      Pair(
        first: #Predicate { $0.cents > k && $0.name.contains(text) },
        second: #Predicate { $0.id + k > k && $0.name.contains(text) },
        isSame: false
      ),
    ]
    return pairs
  }

  @Test func `a fetch is compared by its expressions and the values that it captures`() async throws
  {
    for (number, pair) in Self.pairs().enumerated() {
      try TestDatabase.make(in: directory, "UPDATE orders SET done = 0")
      #expect(try await run(FetchDescriptor(predicate: pair.first), fails: true).state == .failed)
      let before = try done()
      do {
        let summary = try await run(FetchDescriptor(predicate: pair.second), fails: false)
        #expect(pair.isSame && summary.state == .completed, "pair \(number): \(pair.second)")
        #expect(try done() == "100 1")
      } catch let error as BatchError {
        #expect(!pair.isSame && error.code == .otherRun, "pair \(number): \(error)")
        #expect(error.remedy?.contains("over: nil") == true)
        #expect(try done() == before)
        try await run(FetchDescriptor(predicate: pair.first), fails: false)
        #expect(try done() == "100 1", "pair \(number)")
      }
    }
  }

  @Test func `a run of another fetch is resumed without identifiers`() async throws {
    try await run(FetchDescriptor(predicate: #Predicate { $0.cents > 0 }), fails: true)
    let summary = try await BatchRun(
      container,
      named: "orders",
      over: nil,
      policy: policy
    ) { context, identifiers in
      for order in try context.fetch(identifiers, as: Order.self) { order.done += 1 }
    }.run()
    #expect(summary.state == .completed)
    #expect(try done() == "100 1")
    _ = try await RunStatus(ofRunAt: FilePath(directory.file("orders.batch")))
  }

  @Test(arguments: [1, 7, 100]) func `the closure does not get identifiers whose rows are gone`(
    size: Int
  ) async throws {
    let context = ModelContext(container)
    let list = try context.fetchIdentifierList(FetchDescriptor<Order>())
    try TestDatabase.make(in: directory, "DELETE FROM orders WHERE id % 3 = 0 OR id < 15")
    var policy = policy
    policy.chunk = .init(size: size)
    let summary = try await BatchRun(container, named: "orders", over: list, policy: policy) {
      context,
      identifiers in
      for order in try context.fetch(identifiers, as: Order.self) { order.done += 1 }
    }.run()
    #expect(summary.state == .completed)
    #expect(summary.outcomes.vanished == 43 && summary.outcomes.succeeded == 57)
    #expect(try done() == "57 1")
  }

  @Test func `numbers that make no chunk are refused by runs, plans and rehearsals`() async throws {
    for size in [0, -1, .min, .max] {
      var options = BatchRun.Options()
      options.chunkSize = size
      let job = Job(
        name: "job",
        database: .init(path: FilePath(path)),
        source: .init(entity: "orders", everything: true),
        action: .update(.init(set: [.init("done", to: "1")]))
      )
      await #expect(throws: BatchError.self) { try await job.plan(options) }
      await #expect(throws: BatchError.self) { try await job.rehearse(options) }
      await #expect(throws: BatchError.self) { try await BatchRun(job, options: options).run() }
      var policy = policy
      policy.chunk.size = size
      await #expect(throws: BatchError.self) {
        try await BatchRun(
          container,
          named: "orders",
          fetching: FetchDescriptor<Order>(),
          policy: policy
        ) { _, _ in }.run()
      }
      options = BatchRun.Options()
      options.workers = size
      await #expect(throws: BatchError.self) { try await BatchRun(job, options: options).run() }
      await #expect(throws: BatchError.self) { try await job.rehearse(options) }
      if size < 1 {
        var settings = Rehearsal.Settings()
        settings.rows = size
        await #expect(throws: BatchError.self) { try await job.rehearse(settings: settings) }
      }
      if size < 1 {
        let context = ModelContext(container)
        var update = BatchUpdateRequest<Order>([.set(\.done, to: 1)])
        update.chunkSize = size
        #expect(throws: BatchError.self) { try context.execute(update) }
        #expect(throws: BatchError.self) {
          try context.fetch(FetchDescriptor<Order>(), batchSize: size)
        }
        #expect(throws: BatchError.self) {
          try context.enumerate(FetchDescriptor<Order>(), batchSize: size) { _ in }
        }
      }
    }
    #expect(try done() == "0 0")
  }
}
