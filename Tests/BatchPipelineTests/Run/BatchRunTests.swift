import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

@Suite struct BatchRunTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(500, in: directory)
  }

  /// How many rows have been changed how often.
  private func histogram() throws -> [String] {
    try TestDatabase.texts(path, "SELECT n || ':' || count(*) FROM numbers GROUP BY n ORDER BY n")
  }

  /// Runs until some chunks are committed, then stops.
  private func runAndStop(_ job: Job, after done: Int = 60) async throws -> RunSummary {
    let run = BatchRun(job, options: .telling)
    return try await run.run { event in
      if case .progress(let summary) = event, summary.done >= done { run.stop() }
    }
  }

  @Test(arguments: [1, 4], [1, 7, 1_000])
  func `a run does every row once and reports each step`(workers: Int, chunk: Int) async throws {
    let job = Job.test(in: directory, chunk: chunk, workers: workers)
    let events = Events()
    let summary = try await BatchRun(job, options: .telling).run { events.append($0) }
    #expect(summary.state == .completed)
    #expect(summary.outcomes.succeeded == 500)
    #expect(summary.total == 500 && summary.done == 500)
    #expect(summary.chunks == (500 + chunk - 1) / chunk)
    #expect(summary.failure == nil && summary.error == nil)
    #expect(try histogram() == ["1:500"])
    #expect(try TestDatabase.integrity(path) == ["ok"])

    let names = events.all.map(\.name)
    #expect(names.first == "started")
    #expect(
      names.dropFirst().dropLast().allSatisfy { $0 == "progress" } && names.last == "finished"
    )
    // One for each chunk, and others where a chunk takes long.
    #expect(names.count > summary.chunks)
    let done = events.all.compactMap { event -> Int? in
      if case .progress(let summary) = event { summary.done } else { nil }
    }
    #expect(done == done.sorted() && done.last == 500)
  }

  @Test func `a second run of a finished job starts over`() async throws {
    let job = Job.test(in: directory)
    let first = try await BatchRun(job).run()
    let second = try await BatchRun(job).run()
    #expect(first.run != second.run)
    #expect(second.state == .completed && second.resumedAt == 0)
    #expect(try histogram() == ["2:500"])
    #expect(try TestDatabase.texts(path, "SELECT run FROM _batch_run") == [second.run])
  }

  @Test func `a stopped run resumes`() async throws {
    let job = Job.test(in: directory)
    let stopped = try await runAndStop(job)
    #expect(stopped.state == .stopped)
    #expect(stopped.done >= 60 && stopped.done < 500)
    #expect(try histogram() == ["0:\(500 - stopped.done)", "1:\(stopped.done)"])
    let status = try await job.status()
    #expect(status.summary.state == .stopped && status.summary.done == stopped.done)
    #expect(status.process == nil)

    let events = Events()
    let summary = try await BatchRun(job).run { events.append($0) }
    #expect(events.all.first?.name == "resumed")
    #expect(summary.state == .completed && summary.run == stopped.run)
    #expect(summary.resumedAt == stopped.done)
    #expect(try histogram() == ["1:500"])
  }

  @Test func `a stopped BatchRun can be run again`() async throws {
    let run = BatchRun(.test(in: directory), options: .telling)
    let first = try await run.run { event in if case .progress = event { run.stop() } }
    #expect(first.state == .stopped)
    #expect(try await run.run().state == .completed)
    #expect(try histogram() == ["1:500"])
  }

  @Test func `a stop before the run prevents the run once`() async throws {
    let run = BatchRun(.test(in: directory))
    run.stop()
    let error = await #expect(throws: BatchError.self) { try await run.run() }
    #expect(error?.code == .interrupted)
    #expect(try directory.names() == ["test.db"])
    #expect(try await run.run().state == .completed)
    #expect(try histogram() == ["1:500"])
  }

  @Test func `cancelling the task stops the run`() async throws {
    let job = Job.test(in: directory)
    let (progress, teller) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
      try await BatchRun(job, options: .telling).run { event in
        if case .progress = event { teller.yield() }
      }
    }
    for await _ in progress { break }
    task.cancel()
    let summary = try await task.value
    #expect(summary.state == .stopped || summary.done == 500)
    #expect(try await BatchRun(job).run().state == .completed)
    #expect(try histogram() == [summary.done == 500 ? "2:500" : "1:500"])
  }

  @Test(arguments: ["flag", "rate"])
  func `a held run keeps reporting its progress, and its elapsed time continues`(cause: String)
    async throws
  {
    var job = Job.test(in: directory)
    if cause == "flag" {
      job.throttle.flagFile = FilePath(directory.path)
    } else {
      job.throttle.identifiersPerSecond = 0.001
      job.checkpoint.interval = .milliseconds(1)
    }
    let run = BatchRun(job)
    let (events, teller) = AsyncStream.makeStream(of: RunSummary.self)
    let ended = Task {
      defer { teller.finish() }
      return try await run.run { event in
        if case .progress(let summary) = event { teller.yield(summary) }
      }
    }
    var told: [RunSummary] = []
    for await summary in events where summary.throttle != nil {
      told.append(summary)
      if told.count == 2 { break }
    }
    try #require(told.count == 2)
    #expect(told[0].elapsedSeconds < told[1].elapsedSeconds)
    #expect(told[0].throttledSeconds < told[1].throttledSeconds)
    #expect(told[1].state == (cause == "flag" ? .throttled : .running))
    if cause == "flag" {
      #expect(told[1].etaSeconds == nil)
    } else {
      // At the pace, though the chunk before it took no time.
      #expect(told[1].identifiersPerSecond == 0.001)
      #expect(told[1].etaSeconds == Double(500 - told[1].done) / 0.001)
    }
    // Nor do they stand still for others, though little is written.
    let file = URL(filePath: job.checkpointPath.string)
    let size = try Data(contentsOf: file).count
    var status = [try await job.status().summary]
    for await summary in events where summary.elapsedSeconds > told[1].elapsedSeconds { break }
    status.append(try await job.status().summary)
    #expect(status[1].elapsedSeconds > status[0].elapsedSeconds)
    #expect(status[1].throttle == told[1].throttle)
    #expect(status[1].throttledSeconds > status[0].throttledSeconds)
    #expect(try Data(contentsOf: file).count < size + 4096)
    run.stop()
    #expect(try await ended.value.state == .stopped)
    // They do for a run that nobody works on.
    let standing = try await job.status().summary
    #expect(try await job.status().summary.elapsedSeconds == standing.elapsedSeconds)
  }

  @Test func `the elapsed time of a run includes its selection, and its speed does not`()
    async throws
  {
    let slow =
      "id > (WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 300000)"
      + " SELECT count(*) FROM c) - 300000"
    let job = Job.test(in: directory, .init(entity: "numbers", where: slow))
    let start = ContinuousClock.now
    let begun = Lock<(waited: Double, said: Double)?>(nil)
    let summary = try await BatchRun(job).run { event in
      guard case .started(let summary) = event else { return }
      let waited = start.duration(to: .now) / .seconds(1)
      begun.withLock { $0 = (waited, summary.elapsedSeconds) }
    }
    let (waited, said) = try #require(begun.withLock { $0 })
    // No machine counts to 300,000 in SQL in less.
    #expect(said > 0.01 && said <= waited)
    #expect(summary.elapsedSeconds > said)
    // The process has no part before the selection: one process has all of the time.
    #expect(try #require(summary.processSeconds) > said)
    let rate = try #require(summary.identifiersPerSecond)
    #expect(rate > Double(summary.done) / (summary.elapsedSeconds - said / 2))
    let status = try await job.status().summary
    #expect(status.elapsedSeconds >= said)
    #expect(try #require(status.identifiersPerSecond) > Double(status.done) / status.elapsedSeconds)
  }

  @Test(.timeLimit(.minutes(1)))
  func `an export records its progress long before the checkpoint interval`() async throws {
    var job = Job.test(in: directory, .init(entity: "numbers"), .exporting(directory, "out.ndjson"))
    job.checkpoint.interval = .seconds(3600)
    job.throttle.identifiersPerSecond = 100
    var options = BatchRun.Options()
    options.progressInterval = .zero
    let run = BatchRun(job, options: options)
    let (events, teller) = AsyncStream.makeStream(of: RunSummary.self)
    let ended = Task {
      defer { teller.finish() }
      return try await run.run { event in
        if case .progress(let summary) = event { teller.yield(summary) }
      }
    }
    // The third second's chunk is committed.
    for await summary in events where summary.done >= 300 { break }
    #expect(try await job.status().summary.done > 0)
    run.stop()
    #expect(try await ended.value.state == .stopped)
  }

  @Test func `a failed run resumes once its cause is removed`() async throws {
    let connection = try Connection(path: path)
    try connection.execute(
      """
      CREATE TRIGGER odd BEFORE UPDATE ON numbers WHEN old.label = 'label 333'
      BEGIN SELECT RAISE(ABORT, 'not this one'); END
      """
    )
    let job = Job.test(in: directory, chunk: 20)
    let failed = try await BatchRun(job).run()
    #expect(failed.state == .failed)
    #expect(failed.failure?.code == .constraint)
    #expect(failed.failure?.place?.contains("positions 320 to 339") == true)
    #expect(failed.error?.contains("not this one") == true)
    #expect(failed.done < 500)
    let status = try await job.status().summary
    #expect(status.state == .failed && status.error == failed.error)
    // A chunk that was at the writer when the other failed is committed, and counted.
    let changed = try TestDatabase.value(path, "SELECT count(*) FROM numbers WHERE n = 1")
    #expect(changed == .integer(Int64(status.done)))

    #expect(try await BatchRun(job).run().state == .failed)
    try connection.execute("DROP TRIGGER odd")
    let summary = try await BatchRun(job).run()
    #expect(summary.state == .completed && summary.error == nil)
    #expect(try histogram() == ["1:500"])
  }

  @Test func `parameters of a run are passed as values`() async throws {
    var job = Job.test(
      in: directory,
      .init(entity: "numbers", where: "id <= :last"),
      .update(.init(set: [.init("label", to: ":label"), .init("n", to: ":rate * 10")]))
    )
    job.parameters = [
      "last": .init(.integer), "label": .init(.text, default: .value(.text("none"))),
      "rate": .init(.real),
    ]
    var options = BatchRun.Options()
    options.parameters = ["last": 5, "label": "x=y", "rate": 1.5]
    #expect(try await BatchRun(job, options: options).run().total == 5)
    let rows = "SELECT DISTINCT label || ' ' || n FROM numbers WHERE id <= 5"
    #expect(try TestDatabase.texts(path, rows) == ["x=y 15"])
    options.parameters = ["last": "five", "rate": 1]
    let error = await #expect(throws: BatchError.self) {
      try await BatchRun(job, options: options).run()
    }
    #expect(error?.code == .invalidParameter)
    #expect(error?.description.contains("last") == true)
  }

  @Test func `two simultaneous jobs on one store change exactly their own rows`() async throws {
    let update = Job.test("update", in: directory, chunk: 5)
    let label = Job.test(
      "label",
      in: directory,
      .init(entity: "numbers", where: "id % 2 = 0"),
      .update(.init(set: [.init("label", to: "label || '!'")])),
      chunk: 3
    )
    async let first = BatchRun(update).run()
    async let second = BatchRun(label).run()
    for summary in try await [first, second] {
      #expect(summary.state == .completed, "\(summary.failure.map(String.init(describing:)) ?? "")")
    }
    #expect(try histogram() == ["1:500"])
    #expect(
      try TestDatabase.value(path, "SELECT count(*) FROM numbers WHERE label LIKE 'label _%!'")
        == .integer(250)
    )
  }

  @Test func `a second run of a job is refused while the first is alive`() async throws {
    let job = Job.test(in: directory)
    let errors = Errors()
    let run = BatchRun(job, options: .telling)
    let (progress, teller) = AsyncStream.makeStream(of: Void.self)
    async let summary = run.run { event in if case .progress = event { teller.yield() } }
    for await _ in progress { break }
    if try await job.status().process != nil {
      do throws(BatchError) { _ = try await BatchRun(job).run() } catch { errors.append(error) }
    }
    _ = try await summary
    for error in errors.all { #expect(error.code == .alreadyRunning) }
    #expect(try await job.status().process == nil)
    #expect(try !directory.names().contains { $0.hasSuffix(".lock") })
  }

  @Test func `a run processes a list in a file and refuses one of another entity`() async throws {
    let store = try await Store(path: path)
    let list = try await store.fetchIdentifiers(FetchRequest(entity: "numbers", where: "id < 31"))
    let file = FilePath(directory.file("some.ids"))
    try IdentifierFile.create(at: file, list: list)
    var job = Job.test(in: directory, .init(entity: "numbers", identifiers: file))
    let summary = try await BatchRun(job).run()
    #expect(summary.outcomes.succeeded == 30 && summary.total == 30)
    #expect(try histogram() == ["0:470", "1:30"])

    try Connection(path: path).execute("CREATE TABLE other (id INTEGER PRIMARY KEY, n)")
    job = .test("other", in: directory, .init(entity: "other", identifiers: file))
    let error = await #expect(throws: BatchError.self) { try await BatchRun(job).run() }
    #expect(error?.code == .otherRun)
    #expect(try !directory.names().contains("other.batch"))
  }

  @Test func `a delete with an archive moves every row once despite stops`() async throws {
    try Connection(path: path).execute("CREATE TABLE kept (id, n, label, at DEFAULT 'now')")
    let job = Job.test(
      in: directory,
      .init(entity: "numbers", where: "id > 100"),
      .delete(.init(archive: "kept"))
    )
    var summary = try await runAndStop(job)
    while !summary.state.isFinished {
      summary = try await runAndStop(job, after: summary.done + 50)
    }
    #expect(summary.outcomes.succeeded == 400)
    #expect(
      try TestDatabase.rows(path, "SELECT count(*), count(DISTINCT id), min(id) FROM kept")
        == [[.integer(400), .integer(400), .integer(101)]]
    )
    #expect(try histogram() == ["0:100"])
  }
}

/// What a run told.
final class Events: Sendable {
  private let events = Lock<[RunEvent]>([])
  var all: [RunEvent] { events.withLock { $0 } }
  func append(_ event: RunEvent) { events.withLock { $0.append(event) } }
}

/// Errors that were caught.
final class Errors: Sendable {
  private let errors = Lock<[BatchError]>([])
  var all: [BatchError] { errors.withLock { $0 } }
  func append(_ error: BatchError) { errors.withLock { $0.append(error) } }
}
