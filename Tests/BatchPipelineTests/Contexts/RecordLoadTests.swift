import BatchObjects
import BatchPipeline
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

/// A part with a number, a name that must be unique, and a weight with a rule.
private final class Part: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Part.self,
    entity: "Part",
    table: "parts",
    properties: [
      .attribute("number", \.number), .attribute("name", \.name), .attribute("weight", \.weight),
      .attribute("seen", \.seen, as: .unixSeconds),
    ]
  )

  var number: Int { self[\.number] }
  var name: String? { self[\.name] }
  var weight: Double { self[\.weight] }
  var seen: Date? { self[\.seen] }
}

/// What a source has for a part.
private struct Record: Sendable {
  var part: Int
  var weight: Double
  /// What is wrong with it; 0 for nothing.
  var fault = 0
}

private struct Unreadable: Error {}
private struct Broken: Error {}

/// Records one after another, up to the one that cannot be delivered.
private struct Source: AsyncSequence, Sendable {
  let records: [Record]
  var breaksAt = Int.max
  var onRead: @Sendable (Int) -> Void = { _ in }

  struct Iterator: AsyncIteratorProtocol {
    let source: Source
    var place = 0

    mutating func next() async throws -> Record? {
      if place == source.breaksAt { throw Broken() }
      if place % 7 == 3 { await Task.yield() }
      guard place < source.records.count else { return nil }
      defer { place += 1 }
      source.onRead(place)
      return source.records[place]
    }
  }

  func makeAsyncIterator() -> Iterator { Iterator(source: self) }
}

@Suite(.timeLimit(.minutes(2))) struct RecordLoadTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func parts(_ more: String...) async throws -> (path: String, container: ModelContainer) {
    let path = try TestDatabase.make(
      in: directory,
      "DROP TABLE IF EXISTS parts",
      """
      CREATE TABLE parts (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
        weight REAL CHECK (weight >= 0), seen REAL)
      """
    )
    for sql in more { try TestDatabase.make(in: directory, sql) }
    let container = try await ModelContainer(
      for: Part.self,
      configurations: ModelConfiguration(path: path)
    )
    return (path, container)
  }

  private func policy(chunk: Int = 10, skip: Int = 0, checkpoint: Bool = true) -> RunPolicy {
    var policy = RunPolicy(chunk: .init(size: chunk), skip: .init(limit: skip))
    policy.retry.limit = 0
    if checkpoint { policy.checkpoint.path = FilePath(directory.file("parts.batch")) }
    return policy
  }

  private func load(
    _ container: ModelContainer,
    _ source: some AsyncSequence<Record, any Error> & Sendable,
    _ policy: RunPolicy,
    conflict: BatchInsertRequest<Part>.Conflict = .error,
    undo: Job.Undo? = nil,
    options: BatchRun.Options = .init()
  ) -> BatchRun {
    BatchRun(
      container,
      named: "parts",
      loading: source,
      into: Part.self,
      conflict: conflict,
      policy: policy,
      undo: undo,
      options: options
    ) { record, row in
      if record.fault == 1 { throw Unreadable() }
      row.set(\.number, to: record.part)
      row.set(\.name, to: record.fault == 2 ? nil : "part \(record.part)")
      row.set(\.weight, to: record.fault == 3 ? -1 : record.fault == 4 ? .nan : record.weight)
      row.set(\.seen, to: Date.now)
    }
  }

  private func rows(_ path: String) throws -> [String] {
    try TestDatabase.texts(path, "SELECT number || ' ' || name || ' ' || weight FROM parts")
  }

  /// What an insertion of one record after another leaves.
  private struct Twin {
    var weights: [Int: Double] = [:]
    var outcomes = Outcomes()
    var failed: [Int] = []

    init(_ records: [Record], _ conflict: BatchInsertRequest<Part>.Conflict) {
      for (index, record) in records.enumerated() {
        let isThere = weights[record.part] != nil
        switch (record.fault, conflict) {
        case (2, .ignore) where isThere: outcomes.unchanged += 1
        case (0, .ignore) where isThere: outcomes.unchanged += 1
        case (0, .error) where isThere, (1..., _):
          failed.append(index)
          outcomes.failed += 1
        default:
          weights[record.part] = record.weight
          outcomes.succeeded += 1
        }
      }
    }

    var rows: [String] { weights.sorted { $0.key < $1.key }.map { "\($0) part \($0) \($1)" } }
  }

  @Test(arguments: 0..<60)
  func `a load that breaks off again and again leaves what single insertions do`(seed: Int)
    async throws
  {
    var random = SeededGenerator(seed: UInt64(seed))
    let conflict: BatchInsertRequest<Part>.Conflict =
      [.error, .ignore, .update][Int.random(in: 0..<3, using: &random)]
    let chunk = Int.random(in: 1...9, using: &random)
    let records = (0..<Int.random(in: 0...120, using: &random)).map { _ in
      let fault = Int.random(in: 0...12, using: &random)
      return Record(
        part: Int.random(in: 0...90, using: &random),
        weight: Double(Int.random(in: 0...99, using: &random)),
        fault: fault < 5 ? fault : 0
      )
    }
    let words = "seed \(seed), \(conflict), chunks of \(chunk)"
    let (path, container) = try await parts()
    let policy = policy(chunk: chunk, skip: 1000)
    var summary: RunSummary
    repeat {
      var source = Source(records: records)
      if Bool.random(using: &random) { source.breaksAt = Int.random(in: 0...130, using: &random) }
      summary = try await load(container, source, policy, conflict: conflict).run()
      let done = Twin(Array(records.prefix(summary.done)), conflict)
      #expect(try rows(path) == done.rows, "\(words)")
      #expect(summary.outcomes == done.outcomes, "\(words)")
      if source.breaksAt <= records.count {
        #expect(summary.failure?.code == .handlerFailed, "\(words)")
        #expect(summary.failure?.underlying is Broken, "\(words)")
        #expect(summary.total == summary.done && summary.etaSeconds == nil, "\(words)")
      }
    } while summary.state == .failed
    let twin = Twin(records, conflict)
    #expect(
      summary.state == (twin.failed.isEmpty ? .completed : .completedWithFailures),
      "\(words)"
    )
    #expect(summary.done == records.count && summary.total == records.count, "\(words)")
    #expect(try rows(path) == twin.rows, "\(words)")
    let file = try FileInspection(of: directory.file("parts.batch"))
    #expect(file.count == records.count, "\(words)")
    let failures = file.run?.failed ?? []
    #expect(failures.map(\.failure.position) == twin.failed, "\(words)")
    for failure in failures {
      let number = failure.failure.position + 1
      #expect(failure.failure.message.hasPrefix("row \(number) of Part: "), "\(words)")
      #expect(failure.identifier.key == .integer(Int64(number)), "\(words)")
    }
  }

  @Test(arguments: [1, 2, 3, 4, 5]) func `the error of a record has its index, property and value`(
    fault: Int
  ) async throws {
    var records = (0..<25).map { Record(part: $0, weight: 1) }
    records[17].fault = fault
    if fault == 5 { records[17].part = 3 }
    let (path, container) = try await parts()
    let summary = try await load(container, Source(records: records), policy()).run()
    #expect(summary.state == .failed)
    let failure = try #require(summary.failure?.insertFailure)
    #expect(failure.index == 17 && failure.committed == 10)
    #expect(failure.property == [nil, "name", nil, "weight", "number"][fault - 1])
    switch fault {
    case 2: #expect(failure.value == .null)
    case 5: #expect(failure.value == .integer(3))
    default: break
    }
    #expect(try rows(path).count == 10)
    // The same records go on from there, once they are right.
    records[17] = Record(part: 17, weight: 2)
    let resumed = try await load(container, Source(records: records), policy()).run()
    #expect(resumed.state == .completed && resumed.resumedAt == 10)
    #expect(try rows(path).count == 25)
  }

  @Test func `another sequence is refused before anything of it is inserted`() async throws {
    let records = (0..<50).map { Record(part: $0, weight: 1) }
    let (path, container) = try await parts()
    var broken = records
    broken[33].fault = 1
    #expect(try await load(container, Source(records: broken), policy()).run().done == 30)
    var others = [[Record]()]
    for place in [0, 7, 29] {
      var other = records
      other[place].weight = 2
      others.append(other)
      others.append(Array(records[..<place]) + Array(records[(place + 1)...]))
      others.append(Array(records[..<place]))
    }
    for other in others {
      let refused = try await load(container, Source(records: other), policy()).run()
      #expect(refused.failure?.code == .inputChanged, "\(refused)")
      #expect(try rows(path).count == 30)
    }
    // What comes later may have changed: it is not inserted yet.
    var later = records
    later[33].weight = 3
    let done = try await load(container, Source(records: later), policy()).run()
    #expect(done.state == .completed)
    #expect(try rows(path).filter { $0.hasSuffix("3.0") } == ["33 part 33 3.0"])
  }

  @Test func `work and options that do not fit are refused, and change nothing`() async throws {
    let records = (0..<50).map { Record(part: $0, weight: 1) }
    let (path, container) = try await parts()
    var wrong = [RunPolicy](repeating: policy(), count: 3)
    wrong[0].canary = .init(rows: 5)
    wrong[1].skip = .init(limit: 10, ratio: 0.5)
    wrong[2].chunk.size = 0
    for policy in wrong {
      let error = await #expect(throws: BatchError.self) {
        try await load(container, Source(records: records), policy).run()
      }
      #expect(error?.code == .invalidJob)
    }
    #expect(try rows(path).isEmpty)
    var broken = records
    broken[20].fault = 1
    _ = try await load(container, Source(records: broken), policy()).run()
    let other = BatchRun(
      container,
      named: "parts",
      fetching: FetchDescriptor<Part>(),
      policy: policy()
    ) { _, _ in }
    let error = await #expect(throws: BatchError.self) { try await other.run() }
    #expect(error?.code == .otherRun)
    #expect(try rows(path).count == 20)
  }

  @Test func `a stop or a cancelled task ends a load, and what it has read so far is not lost`()
    async throws
  {
    let (path, container) = try await parts()
    for cancels in [false, true] {
      // A sequence that never ends, and pauses for ever after some records.
      let (stream, continuation) = AsyncThrowingStream.makeStream(
        of: Record.self,
        throwing: (any Error).self
      )
      for part in 0..<25 { continuation.yield(Record(part: part, weight: 1)) }
      let run = load(container, stream, policy(checkpoint: false), conflict: .ignore)
      let events = run.events()
      let task = Task { try await run.run() }
      for await event in events {
        guard case .progress(let now) = event, now.done >= 20 else { continue }
        if cancels { task.cancel() } else { run.stop() }
        break
      }
      let summary = try await task.value
      #expect(summary.state == .stopped, "\(summary)")
      #expect(summary.done == 20 && summary.total == 20)
      continuation.finish()
    }
    #expect(try rows(path).count == 20)
  }

  @Test func `records are read no faster than they are written`() async throws {
    let (path, container) = try await parts()
    let lag = Lock((read: 0, written: 0, largest: 0))
    let megabyte = String(repeating: "x", count: 1 << 20)
    var source = Source(records: (0..<100).map { Record(part: $0, weight: 1) })
    source.onRead = { place in
      lag.withLock { lag in
        lag.read = place
        let written = (try? TestDatabase.texts(path, "SELECT count(*) FROM parts"))?.first
        lag.largest = max(lag.largest, place - (written.flatMap { Int($0) } ?? 0))
      }
    }
    let run = BatchRun(
      container,
      named: "parts",
      loading: source,
      into: Part.self,
      policy: policy(chunk: 1000)
    ) { record, row in
      row.set(\.number, to: record.part)
      row.set(\.name, to: "\(record.part) \(megabyte)")
    }
    let summary = try await run.run().get()
    #expect(summary.done == 100)
    #expect(lag.withLock { $0.largest } <= 20)
  }

  @Test func `what has failed is retried with the same sequence`() async throws {
    let (path, container) = try await parts(
      "CREATE TRIGGER heavy BEFORE INSERT ON parts WHEN NEW.weight > 5 BEGIN SELECT raise(ABORT, 'too heavy'); END"
    )
    let records = (0..<60).map { Record(part: $0, weight: $0 % 7 == 6 ? 9 : 1) }
    let run = load(container, Source(records: records), policy(skip: 100))
    #expect(try await run.run().outcomes.failed == 8)
    #expect(try await run.retryFailures().outcomes.failed == 8)
    try TestDatabase.make(in: directory, "DROP TRIGGER heavy")
    let summary = try await run.retryFailures()
    #expect(summary.state == .completed && summary.outcomes.succeeded == 60)
    #expect(try rows(path) == Twin(records, .error).rows)
    let short = load(container, Source(records: Array(records.prefix(6))), policy(skip: 100))
    #expect(try await short.retryFailures().state == .completed)
  }

  @Test func `a load can be undone, with the rows that it has updated`() async throws {
    let (path, container) = try await parts("INSERT INTO parts VALUES (5, 'part 5', 7, NULL)")
    let before = try TestDatabase.rows(path, "SELECT * FROM parts")
    let records = (0..<40).map { Record(part: $0, weight: 1) }
    let run = load(container, Source(records: records), policy(), conflict: .update, undo: .init())
    #expect(try await run.run().get().outcomes.succeeded == 40)
    _ = try await BatchRun(undoingRunAt: FilePath(directory.file("parts.batch"))).run().get()
    #expect(try TestDatabase.rows(path, "SELECT * FROM parts") == before)
  }

  @Test
  func `a row that refers to none fails alone, also if that shows only at the end of a chunk`()
    async throws
  {
    for deferral in ["", " DEFERRABLE INITIALLY DEFERRED"] {
      let (path, container) = try await parts(
        "DROP TABLE parts",
        """
        CREATE TABLE parts (number INTEGER PRIMARY KEY, name TEXT,
          weight INTEGER REFERENCES parts (number)\(deferral), seen REAL)
        """,
        "INSERT INTO parts (number) VALUES (1000)"
      )
      // A record may refer to a later one of its chunk, where the key allows that.
      let records = (0..<40).map {
        Record(part: $0, weight: $0 == 13 ? 77 : $0 == 20 && !deferral.isEmpty ? 21 : 1000)
      }
      var options = BatchRun.Options()
      options.fresh = true
      let summary = try await load(
        container,
        Source(records: records),
        policy(skip: 5),
        options: options
      ).run()
      #expect(summary.outcomes.failed == 1 && summary.outcomes.succeeded == 39, "\(summary)")
      let failed = try FileInspection(of: directory.file("parts.batch")).run?.failed ?? []
      #expect(failed.map(\.failure.position) == [13])
      #expect(
        try TestDatabase.texts(path, "SELECT count(*) FROM parts WHERE number IN (13, 20)") == ["1"]
      )
      // A batch request says as well which row it was.
      try TestDatabase.make(in: directory, "DELETE FROM parts WHERE number < 1000")
      let context = ModelContext(container)
      let error = #expect(throws: BatchError.self) {
        try context.execute(
          BatchInsertRequest<Part>(records) { record, row in
            row.set(\.number, to: record.part)
            row.set(\.weight, to: record.weight)
          }
        )
      }
      #expect(error?.insertFailure?.index == 13, "\(deferral)")
    }
  }

  @Test func `the history of a store has what a load has inserted, and nothing that failed`()
    async throws
  {
    let (path, _) = try await parts(
      "DROP TABLE parts",
      """
      CREATE TABLE parts (number INTEGER PRIMARY KEY, name TEXT, seen REAL,
        weight INTEGER REFERENCES parts (number) DEFERRABLE INITIALLY DEFERRED)
      """,
      "INSERT INTO parts (number) VALUES (1000)"
    )
    var configuration = ModelConfiguration(path: path)
    configuration.tracksHistory = true
    let container = try await ModelContainer(for: Part.self, configurations: configuration)
    let records = (0..<40).map { Record(part: $0, weight: $0 % 6 == 5 ? 77 : 1000) }
    let summary = try await load(container, Source(records: records), policy(skip: 9)).run()
    #expect(summary.outcomes.failed == 6 && summary.outcomes.succeeded == 34, "\(summary)")
    let counts = try TestDatabase.texts(
      path,
      """
      SELECT count(*) FROM _batch_history_change UNION ALL SELECT count(*) FROM _batch_history
      UNION ALL SELECT count(*) FROM _batch_history_change JOIN _batch_history AS h ON h.id = save
      """
    )
    #expect(counts == ["34", "4", "34"])
  }
}
