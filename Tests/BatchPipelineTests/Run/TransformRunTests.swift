import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// A row of the numbers as an object.
private final class Number: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Number.self,
    entity: "Number",
    table: "numbers",
    properties: [
      .attribute("id", \.id), .attribute("n", \.n), .attribute("label", \.label),
    ]
  )

  var id: Int { self[\.id] }
  var n: Int {
    get { self[\.n] }
    set { self[\.n] = newValue }
  }
  var label: String? {
    get { self[\.label] }
    set { self[\.label] = newValue }
  }
}

/// Transforms by Swift handlers.
@Suite struct TransformRunTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(100, in: directory)
  }

  private func job(
    _ handler: String = "handler",
    columns: [String] = ["id", "n", "label"],
    writes: [String] = ["n", "label"],
    timeout: Duration = .seconds(60),
    skip: Int = 0
  ) -> Job {
    var job = Job.test(
      in: directory,
      .init(entity: "numbers", everything: true),
      .transform(
        .init(columns: columns, writes: writes, program: .handler(handler), timeout: timeout)
      )
    )
    job.skip = .init(limit: skip)
    return job
  }

  private func run(
    _ handler: TransformHandler,
    _ job: Job? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> RunSummary {
    try await BatchRun(job ?? self.job(), handlers: ["handler": handler]).run()
  }

  private func rows() throws -> [String] {
    try TestDatabase.texts(path, "SELECT quote(n) || ' ' || quote(label) FROM numbers")
  }

  /// Doubles the even identifiers, clears the label of each tenth, and leaves the odd ones.
  private static let byRow = TransformHandler.rows { columns in
    let id = try columns.input("ID", as: Int64.self)
    let label = try columns.input("label", as: String.self)
    let n = try columns.output("n", as: Int64.self)
    let newLabel = try columns.output("label", as: String.self)
    return { row in
      guard let id = try row[id], id.isMultiple(of: 2) else { return }
      row.set(n, to: id * 2)
      if id.isMultiple(of: 10) {
        try row.set(newLabel, to: nil)
      } else if id.isMultiple(of: 4) {
        try row.set(newLabel, to: (row[label] ?? "") + "!")
      }
    }
  }

  private static let byColumn = TransformHandler.columns { columns in
    let id = try columns.input("id", as: Int64.self)
    let label = try columns.input("label", as: String.self)
    let n = try columns.output("n", as: Int64.self)
    let newLabel = try columns.output("label", as: String.self)
    return { chunk in
      let ids = try chunk[id].values
      let labels = try chunk[label]
      try chunk.set(n, to: .init(ids.map { $0 * 2 }))
      try chunk.set(
        newLabel,
        to: ids.indices.map { row in
          if ids[row].isMultiple(of: 10) { return nil }
          return ids[row].isMultiple(of: 4) ? (labels[row] ?? "") + "!" : labels[row]
        }
      )
      for row in ids.indices where !ids[row].isMultiple(of: 2) { chunk.leave(row) }
    }
  }

  private static let byObject = TransformHandler.objects(Number.self) { number in
    guard number.id.isMultiple(of: 2) else { return }
    number.n = number.id * 2
    if number.id.isMultiple(of: 10) {
      number.label = nil
    } else if number.id.isMultiple(of: 4) {
      number.label = (number.label ?? "") + "!"
    }
  }

  @Test(arguments: [byRow, byColumn, byObject])
  func `every kind of handler sets its values and leaves the rest unchanged`(
    handler: TransformHandler
  ) async throws {
    let summary = try await run(handler)
    #expect(summary.state == .completed)
    #expect(summary.outcomes.succeeded == 50)
    #expect(summary.outcomes.unchanged == 50)
    let expected = (1...100).map { id -> String in
      if !id.isMultiple(of: 2) { return "0 'label \(id)'" }
      if id.isMultiple(of: 10) { return "\(id * 2) NULL" }
      return "\(id * 2) 'label \(id)\(id.isMultiple(of: 4) ? "!" : "")'"
    }
    #expect(try rows() == expected)
  }

  @Test func `a handler passes numbers, bytes and any other value unchanged`() async throws {
    let handler = TransformHandler.rows { columns in
      let id = try columns.input("id", as: Int64.self)
      let real = try columns.input("n", as: Double.self)
      let n = try columns.output("n", as: SQLValue.self)
      let bytes = try columns.output("label", as: [UInt8].self)
      let number = try columns.output("n", as: Double.self)
      return { row in
        switch try row[id] {
        case 1: try row.set(n, to: .integer(.min))
        case 2: row.set(number, to: .nan)
        case 3: row.set(number, to: -.infinity)
        case 4: try row.set(bytes, to: [0, 255])
        case 5: try row.set(bytes, to: [])
        case 6: row.set(number, to: (try row[real] ?? 1) + 0.5)
        default: break
        }
      }
    }
    // NaN is NULL to SQLite, and the column admits none.
    try TestDatabase.make(in: directory, "DELETE FROM numbers WHERE id > 6 OR id = 2")
    #expect(try await run(handler).outcomes.succeeded == 5)
    let infinity = try TestDatabase.texts(path, "SELECT quote(-9e999)")[0]
    #expect(
      try rows() == [
        "-9223372036854775808 'label 1'", "\(infinity) 'label 3'", "0 X'00FF'", "0 X''",
        "0.5 'label 6'",
      ]
    )
  }

  @Test func `a handler reads the parameters`() async throws {
    let handler = TransformHandler.rows { columns in
      let factor = columns.parameters["factor"] ?? .null
      let n = try columns.output("n", as: SQLValue.self)
      return { row in try row.set(n, to: factor) }
    }
    var job = job()
    job.parameters = ["factor": ParameterDeclaration(.integer, default: .value(.integer(7)))]
    #expect(try await run(handler, job).state == .completed)
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["7"])
  }

  @Test func `every kind of handler has an idempotency key that a retry keeps`() async throws {
    let keys = Lock<[String]>([])
    // Each row fails once, and is handled again in the same run.
    let refused = Lock<Set<String>>([])
    let note: @Sendable (String) throws -> Void = { key in
      keys.withLock { $0.append(key) }
      if refused.withLock({ $0.insert(key).inserted }) {
        throw BatchError(.retryLater, "what it depends on is away")
      }
    }
    let byRow = TransformHandler.rows { _ in { row in try note(row.idempotencyKey) } }
    let byColumn = TransformHandler.columns { _ in
      { chunk in for row in 0..<chunk.count { try note(chunk.idempotencyKey(of: row)) } }
    }
    let byObject = TransformHandler.objects(Number.self) { _, key in try note(key) }
    for handler in [byRow, byColumn, byObject] {
      keys.withLock { $0.removeAll() }
      var job = job()
      job.retry = .init(limit: 100, backoff: .microseconds(1), maximumBackoff: .microseconds(1))
      let summary = try await run(handler, job)
      #expect(summary.state == .completed)
      let expected = Set((1...100).map { "\(summary.run):\($0)" })
      #expect(Set(keys.withLock { $0 }) == expected)
      #expect(keys.withLock { $0.count } >= 200)
    }
  }

  @Test func `a transform counts any number of missing or no longer matching rows`() async throws {
    // Everything but the first row goes away while the first chunk is handled.
    let handler = TransformHandler.rows { [path] columns in
      let id = try columns.input("id", as: Int64.self)
      let n = try columns.output("n", as: Int64.self)
      return { row in
        row.set(n, to: 1)
        guard try row[id] == 1 else { return }
        try Connection(path: path).execute("DELETE FROM numbers WHERE id > 10")
      }
    }
    var job = job()
    job.workers = 1
    let summary = try await run(handler, job)
    #expect(summary.state == .completed)
    #expect(summary.outcomes.succeeded == 10)
    #expect(summary.outcomes.vanished == 90)
  }

  // MARK: What is wrong

  @Test func `the error of an unknown handler lists the known names`() async throws {
    let error = await #expect(throws: BatchError.self) {
      try await BatchRun(
        job("repricing"),
        handlers: ["gain": Self.byRow, "reprices": Self.byRow]
      ).run()
    }
    #expect(error?.code == .unknownHandler)
    #expect(
      error?.remedy == "did you mean \"reprices\"? the registered handlers are gain, reprices"
    )
    let far = await #expect(throws: BatchError.self) {
      try await BatchRun(job("x"), handlers: ["gain": Self.byRow, "reprice": Self.byRow]).run()
    }
    #expect(far?.remedy == "the registered handlers are gain, reprice")
    #expect(try TestDatabase.texts(path, "PRAGMA journal_mode") == ["delete"])
  }

  @Test func `a handler that lacks a column is refused before the first write`() async throws {
    for columns in [["n"], ["id"]] {
      let error = await #expect(throws: BatchError.self) {
        try await run(Self.byRow, job(columns: columns))
      }
      #expect(error?.code == .unknownAttribute)
    }
    let error = await #expect(throws: BatchError.self) {
      try await run(Self.byRow, job(writes: ["n"]))
    }
    #expect(error?.message == "the handler needs the column \"label\"")
    #expect(error?.remedy == "add it to action.writes")
    #expect(try TestDatabase.texts(path, "PRAGMA journal_mode") == ["delete"])
  }

  private struct Refusal: Error {}

  private static let throwing = TransformHandler.rows { columns in
    let id = try columns.input("id", as: Int64.self)
    let n = try columns.output("n", as: Int64.self)
    return { row in
      row.set(n, to: 1)
      if try [33, 34, 77].contains(row[id] ?? 0) { throw Refusal() }
    }
  }

  @Test func `a handler that throws fails its chunk and names the identifier`() async throws {
    let summary = try await run(Self.throwing)
    #expect(summary.state == .failed)
    #expect(summary.failure?.code == .handlerFailed)
    let message = try #require(summary.failure?.message)
    #expect(message.contains("identifier 33: ") || message.contains("identifier 77: "))
    #expect(message.contains("Refusal"))
    #expect(try TestDatabase.texts(path, "SELECT sum(n) % 10 FROM numbers") == ["0"])
  }

  @Test func `rows for which any kind of handler throws fail alone with skip`() async throws {
    let byColumn = TransformHandler.columns { columns in
      let id = try columns.input("id", as: Int64.self)
      let n = try columns.output("n", as: Int64.self)
      return { chunk in
        let ids = try chunk[id].values
        if ids.contains(where: { [33, 34, 77].contains($0) }) { throw Refusal() }
        try chunk.set(n, to: .init(ids.map { _ in 1 }))
      }
    }
    for handler in [Self.throwing, byColumn] {
      try TestDatabase.make(in: directory, "UPDATE numbers SET n = 0")
      let summary = try await run(handler, job(skip: 3))
      #expect(summary.state == .completedWithFailures)
      #expect(summary.outcomes.failed == 3)
      #expect(
        try TestDatabase.texts(path, "SELECT id FROM numbers WHERE n = 0") == ["33", "34", "77"]
      )
    }
  }

  @Test func `a transform with more failures than a lowered limit resumes`() async throws {
    let handler = TransformHandler.rows { columns in
      let id = try columns.input("id", as: Int64.self)
      return { row in
        switch try row[id] {
        case 1, 2: throw Refusal()
        case 90: throw BatchError(.retryLater, "not yet")
        default: break
        }
      }
    }
    var job = job(skip: 2)
    job.workers = 1
    job.retry.limit = 0
    let first = try await run(handler, job)
    #expect(first.state == .failed && first.outcomes.failed == 2)
    job.skip.limit = 1
    let second = try await run(Self.byRow, job)
    #expect(second.state == .completedWithFailures && second.outcomes.failed == 2)
  }

  @Test func `only failed identifiers are retried`() async throws {
    _ = try await run(Self.throwing, job(skip: 5))
    let calls = Lock<[Int64]>([])
    let handler = TransformHandler.rows { columns in
      let id = try columns.input("id", as: Int64.self)
      let n = try columns.output("n", as: Int64.self)
      return { row in
        let key = try row[id] ?? 0
        calls.withLock { $0.append(key) }
        row.set(n, to: 1)
        if key == 77 { throw Refusal() }
      }
    }
    let summary = try await BatchRun(job(skip: 5), handlers: ["handler": handler]).retryFailures()
    #expect(summary.state == .completedWithFailures)
    #expect(summary.outcomes.failed == 1)
    #expect(calls.withLock { $0.sorted() } == [33, 34, 77])
    #expect(try TestDatabase.texts(path, "SELECT id FROM numbers WHERE n = 0") == ["77"])
  }

  @Test func `a handler that asks for a retry is called again with its chunk`() async throws {
    let refusals = Lock(3)
    let handler = TransformHandler.rows { columns in
      let n = try columns.output("n", as: Int64.self)
      return { row in
        let isAway = refusals.withLock { left in
          left -= 1
          return left >= 0
        }
        if isAway { throw BatchError(.retryLater, "what it depends on is away") }
        row.set(n, to: 1)
      }
    }
    var job = job()
    job.retry = .init(limit: 5, backoff: .milliseconds(1), maximumBackoff: .milliseconds(1))
    let summary = try await run(handler, job)
    #expect(summary.state == .completed)
    #expect(summary.outcomes.succeeded == 100)
  }

  @Test func `a value of another type fails its row and not the process`() async throws {
    try TestDatabase.make(in: directory, "UPDATE numbers SET n = 'text' WHERE id = 5")
    let handler = TransformHandler.rows { columns in
      let old = try columns.input("n", as: Int64.self)
      let n = try columns.output("n", as: Int64.self)
      return { row in row.set(n, to: (try row[old] ?? 0) + 1) }
    }
    let summary = try await run(handler)
    #expect(summary.state == .failed)
    #expect(
      summary.failure?.message
        == "identifier 5: column \"n\" holds text, and the handler expects an integer"
    )
    let skipping = try await run(handler, job(skip: 1))
    #expect(skipping.outcomes.failed == 1)
  }

  @Test func `a handler of objects may only read and write the job's columns`() async throws {
    let error = await #expect(throws: BatchError.self) {
      try await run(Self.byObject, job(columns: ["id", "n"]))
    }
    #expect(error?.message == "the handler needs the column \"label\"")
    let unwritten = try await run(Self.byObject, job(writes: ["n"]))
    #expect(unwritten.failure?.message.contains("the handler set column \"label\"") == true)
  }

  @Test func `a handler of objects can neither change other objects nor save`() async throws {
    let others = TransformHandler.objects(Number.self) { number in
      let identifier = number.persistentModelID
      if let other = try number.modelContext?.fetch(Number.self, where: "id = 3").first {
        if other.persistentModelID != identifier { other.n = 5 }
      }
    }
    let inserting = TransformHandler.objects(Number.self) { number in
      number.modelContext?.insert(Number())
      try number.modelContext?.save()
    }
    for handler in [others, inserting] {
      let summary = try await run(handler)
      #expect(summary.state == .failed)
      #expect(summary.failure?.code == .handlerFailed)
      try FileManager.default.removeItem(atPath: directory.file("job.batch"))
    }
    #expect(try TestDatabase.texts(path, "SELECT count(*) || sum(n) FROM numbers") == ["1000"])
  }

  @Test func `a handler that sets too few values fails`() async throws {
    let handler = TransformHandler.columns { columns in
      let n = try columns.output("n", as: Int64.self)
      return { chunk in try chunk.set(n, to: .init([1])) }
    }
    let summary = try await run(handler)
    #expect(summary.failure?.message == "the handler set 1 values of column \"n\" for 10 rows")
  }

  @Test(.timeLimit(.minutes(20)))
  func `a handler that never returns fails the run with a timeout`() async throws {
    let handler = TransformHandler.rows { columns in
      let id = try columns.input("id", as: Int64.self)
      return { row in
        // The process loses the thread, which sleeps and so costs nothing else.
        while try row[id] == 50 { Thread.sleep(forTimeInterval: 1000) }
      }
    }
    let summary = try await run(handler, job(timeout: .milliseconds(500)))
    #expect(summary.state == .failed)
    #expect(summary.failure?.code == .handlerTimeout)
    #expect(summary.failure?.place?.contains("positions 40 to 49") == true)
  }

  @Test(.timeLimit(.minutes(20)))
  func `a chunk whose refresh never returns fails the run with a timeout`() async throws {
    let blocker = Lock(try Connection(path: path))
    // The first chunk must wait for the lock; when it gets it, one of its rows has changed, and
    // computing that again would never return.
    let handler = TransformHandler.rows { columns in
      let id = try columns.input("id", as: Int64.self)
      let n = try columns.output("n", as: Int64.self)
      return { row in
        let id = try row[id]
        if id == 1 { blocker.withLock { try? $0.execute("BEGIN IMMEDIATE") } }
        guard id == 11 else { return row.set(n, to: 7) }
        blocker.withLock { connection in
          try? connection.execute("UPDATE numbers SET n = 1000 WHERE id = 1")
          try? connection.execute("COMMIT")
        }
        while true { Thread.sleep(forTimeInterval: 1000) }
      }
    }
    var job = job(timeout: .milliseconds(500))
    job.workers = 1
    let summary = try await run(handler, job)
    #expect(summary.state == .failed)
    #expect(summary.failure?.code == .handlerTimeout)
    #expect(try TestDatabase.texts(path, "SELECT n FROM numbers WHERE id = 1") == ["1000"])
  }
}
