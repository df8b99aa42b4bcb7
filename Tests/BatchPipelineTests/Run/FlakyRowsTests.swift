import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Testing

/// A row of the numbers as an object.
private final class Flaky: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Flaky.self,
    entity: "Flaky",
    table: "numbers",
    properties: [.attribute("id", \.id), .attribute("n", \.n)]
  )

  var id: Int { self[\.id] }
  var n: Int {
    get { self[\.n] }
    set { self[\.n] = newValue }
  }
}

/// Rows that cannot be done at the first try.
@Suite struct FlakyRowsTests {
  private static let limit = 3

  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(2_000, in: directory)
  }

  private func job(skip: Int, columns: [String] = ["id", "n"], writes: [String] = ["n"]) -> Job {
    var job = Job.test(
      in: directory,
      .init(entity: "numbers", everything: true),
      .transform(
        .init(
          columns: columns,
          writes: writes,
          program: .handler("handler"),
          timeout: .seconds(60)
        )
      )
    )
    job.chunk = .init(size: 1_000)
    job.skip = .init(limit: skip)
    job.retry = .init(
      limit: Self.limit,
      backoff: .microseconds(1),
      maximumBackoff: .microseconds(1)
    )
    return job
  }

  /// The service behind a row, which is unavailable for a number of calls.
  fileprivate final class Service: Sendable {
    /// How often each row is refused, and how often it was asked for.
    private let refusals: [Int64: Int]
    private let calls = Lock<[Int64: Int]>([:])

    init(refusals: [Int64: Int]) { self.refusals = refusals }

    var counts: [Int64: Int] { calls.withLock { $0 } }

    func ask(_ row: Int64) throws {
      let count = calls.withLock { calls in
        calls[row, default: 0] += 1
        return calls[row] ?? 0
      }
      if count <= refusals[row] ?? 0 { throw BatchError(.retryLater, "\(row) is away") }
    }
  }

  enum Shape: CaseIterable {
    case rows, columns, objects

    fileprivate func handler(_ service: Service) -> TransformHandler {
      switch self {
      case .rows:
        .rows { columns in
          let id = try columns.input("id", as: Int64.self)
          let n = try columns.output("n", as: Int64.self)
          return { row in
            let key = try row[id] ?? 0
            row.set(n, to: key)
            try service.ask(key)
          }
        }
      case .columns:
        .columns { columns in
          let id = try columns.input("id", as: Int64.self)
          let n = try columns.output("n", as: Int64.self)
          return { chunk in
            let keys = try chunk[id]
            try chunk.set(n, to: keys)
            for (row, key) in keys.values.enumerated() {
              do { try service.ask(key) } catch { chunk.fail(row, with: error) }
            }
          }
        }
      case .objects:
        .objects(Flaky.self) { object in
          object.n = object.id
          try service.ask(Int64(object.id))
        }
      }
    }
  }

  @Test(arguments: Shape.allCases)
  func `only rows that ask for a retry are retried, and fail alone after the last attempt`(
    shape: Shape
  ) async throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    var refusals: [Int64: Int] = [:]
    for row in 1...2_000 where Int.random(in: 0..<100, using: &generator) == 0 {
      refusals[Int64(row)] = Int.random(in: 1...(Self.limit + 2), using: &generator)
    }
    let failed = refusals.filter { $0.value > Self.limit }.keys.sorted()
    let service = Service(refusals: refusals)
    let run = BatchRun(
      job(skip: failed.count),
      handlers: ["handler": shape.handler(service)]
    )
    let summary = try await run.run()
    #expect(summary.outcomes.failed == failed.count, "seed \(seed)")
    #expect(
      try TestDatabase.texts(path, "SELECT id FROM numbers WHERE n <> id")
        == failed.map(String.init),
      "seed \(seed)"
    )
    let expected = Dictionary(
      uniqueKeysWithValues: (1...2_000).map { row -> (Int64, Int) in
        (Int64(row), min(refusals[Int64(row)] ?? 0, Self.limit) + 1)
      }
    )
    #expect(service.counts == expected, "seed \(seed)")
  }

  @Test(arguments: Shape.allCases)
  func `a run without skip stops after a row's last attempt and resumes later`(
    shape: Shape
  ) async throws {
    let away = Service(refusals: [1_500: 100])
    let first = try await BatchRun(
      job(skip: 0),
      handlers: ["handler": shape.handler(away)]
    ).run()
    #expect(first.state == .failed && first.outcomes.failed == 0)
    #expect(first.failure?.message.contains("identifier 1500") == true)
    #expect(first.failure?.message.contains("tried 4 times") == true)
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE n > 1000") == ["0"])
    #expect(away.counts[1_500] == 4 && away.counts[1_501] == 1)
    let back = Service(refusals: [:])
    let second = try await BatchRun(
      job(skip: 0),
      handlers: ["handler": shape.handler(back)]
    ).run()
    #expect(second.state == .completed)
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE n <> id") == ["0"])
  }

  @Test func `a handler of columns that throws at the last attempt is called with halves`()
    async throws
  {
    let handler = TransformHandler.columns { columns in
      let id = try columns.input("id", as: Int64.self)
      let n = try columns.output("n", as: Int64.self)
      return { chunk in
        let keys = try chunk[id]
        try chunk.set(n, to: keys)
        if keys.values.contains(77) { throw BatchError(.retryLater, "77 is away") }
      }
    }
    let summary = try await BatchRun(job(skip: 1), handlers: ["handler": handler]).run()
    #expect(summary.state == .completedWithFailures)
    #expect(try TestDatabase.texts(path, "SELECT id FROM numbers WHERE n <> id") == ["77"])
  }

  @Test func `a row that another connection changes between two attempts is computed again`()
    async throws
  {
    // Row 8 waits for row 7's next attempt; meanwhile its chunk is not locked.
    let path = path
    let isAway = Lock(true)
    let handler = TransformHandler.rows { columns in
      let id = try columns.input("id", as: Int64.self)
      let label = try columns.input("label", as: String.self)
      let output = try columns.output("label", as: String.self)
      return { row in
        try row.set(output, to: (row[label] ?? "") + "!")
        guard try row[id] == 7, isAway.withLock({ $0 }) else { return }
        isAway.withLock { $0 = false }
        try Connection(path: path).execute("UPDATE numbers SET label = 'theirs' WHERE id = 8")
        throw BatchError(.retryLater, "not yet")
      }
    }
    let job = job(skip: 0, columns: ["id", "label"], writes: ["label"])
    let summary = try await BatchRun(job, handlers: ["handler": handler]).run()
    #expect(summary.state == .completed)
    #expect(
      try TestDatabase.texts(path, "SELECT label FROM numbers WHERE id BETWEEN 7 AND 9")
        == ["label 7!", "theirs!", "label 9!"]
    )
  }

  @Test func `the results of retried rows are bounded in bytes`() async throws {
    let large = String(repeating: "x", count: 1 << 20)
    let refused = Lock<Set<Int64>>([])
    let handler = TransformHandler.rows { columns in
      let id = try columns.input("id", as: Int64.self)
      let label = try columns.output("label", as: String.self)
      return { row in
        let key = try row[id] ?? 0
        if refused.withLock({ $0.insert(key).inserted }) {
          throw BatchError(.retryLater, "not yet")
        }
        try row.set(label, to: large)
      }
    }
    var job = job(skip: 0, writes: ["label"])
    job.source = .init(entity: "numbers", where: "id <= 30")
    let summary = try await BatchRun(job, handlers: ["handler": handler]).run()
    #expect(summary.state == .completed)
    #expect(
      try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE length(label) = 1 << 20")
        == ["30"]
    )
    // Four of them are 4 MB.
    #expect(summary.chunks >= 7)
  }
}
