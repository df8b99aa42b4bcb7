import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

/// The conditions for resuming a run.
@Suite struct ResumeTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(300, in: directory)
  }

  private func stop(_ job: Job) async throws -> RunSummary {
    var job = job
    // Or it might be over before it hears of the stop.
    job.throttle.identifiersPerSecond = 20
    let run = BatchRun(job, options: .telling)
    let summary = try await run.run { event in if case .progress = event { run.stop() } }
    #expect(summary.state == .stopped)
    return summary
  }

  private func refusal(_ job: Job) async throws -> BatchError? {
    let before = try directory.read("job.batch")
    let rows = try TestDatabase.texts(path, "SELECT count(*) || ',' || sum(n) FROM numbers")
    let error = await #expect(throws: BatchError.self) { try await BatchRun(job).run() }
    #expect(try directory.read("job.batch") == before)
    #expect(try TestDatabase.texts(path, "SELECT count(*) || ',' || sum(n) FROM numbers") == rows)
    return error
  }

  @Test func `a run resumes with other tuning but not with another action, source or name`()
    async throws
  {
    _ = try await stop(.test(in: directory))
    var changed = Job.test(in: directory)
    changed.action = .update(.init(set: [.init("n", to: "n + 2")]))
    #expect(try await refusal(changed)?.code == .otherRun)
    changed = .test(in: directory)
    changed.source = .init(entity: "numbers", where: "n = 0")
    #expect(try await refusal(changed)?.code == .otherRun)
    changed = .test("another", in: directory, path: directory.file("job.batch"))
    #expect(try await refusal(changed)?.message.contains("job \"job\"") == true)

    var tuned = Job.test(in: directory, chunk: 3, workers: 1)
    tuned.checkpoint.interval = .milliseconds(1)
    #expect(try await BatchRun(tuned).run().state == .completed)
    #expect(try TestDatabase.value(path, "SELECT sum(n) FROM numbers") == .integer(300))
  }

  @Test func `a run resumes only once a renamed column has its old name again`() async throws {
    _ = try await stop(.test(in: directory))
    let connection = try Connection(path: path)
    try connection.execute("ALTER TABLE numbers RENAME COLUMN id TO number")
    let error = await #expect(throws: BatchError.self) {
      try await BatchRun(.test(in: directory)).run()
    }
    #expect(error?.code == .otherRun)
    #expect(error?.message.contains("has no column id any more") == true)
    try connection.execute("ALTER TABLE numbers RENAME COLUMN number TO id")
    #expect(try await BatchRun(.test(in: directory)).run().state == .completed)
    #expect(try TestDatabase.value(path, "SELECT sum(n) FROM numbers") == .integer(300))
  }

  @Test func `a run resumes although unused columns were added and dropped`() async throws {
    _ = try await stop(.test(in: directory))
    let connection = try Connection(path: path)
    try connection.execute("ALTER TABLE numbers ADD COLUMN fresh TEXT")
    try connection.execute("ALTER TABLE numbers DROP COLUMN label")
    #expect(try await BatchRun(.test(in: directory)).run().state == .completed)
    #expect(try TestDatabase.value(path, "SELECT sum(n) FROM numbers") == .integer(300))
  }

  @Test func `a run resumes in a copy of its database but not in another database`() async throws {
    _ = try await stop(.test(in: directory))
    let copy = directory.file("copy.db")
    // A copy as a backup creates it: the log belongs to the file.
    #expect(
      try TestDatabase.rows(path, "PRAGMA wal_checkpoint(truncate)").first?.first == .integer(0)
    )
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    try TestDatabase.makeNumbers(300, in: directory, name: "foreign.db")
    let error = try await refusal(.test(in: directory, database: "foreign.db"))
    #expect(error?.code == .otherRun)
    #expect(try await BatchRun(.test(in: directory, database: "copy.db")).run().state == .completed)
    #expect(try TestDatabase.value(copy, "SELECT sum(n) FROM numbers") == .integer(300))
  }

  @Test func `a run without its ledger is refused unless it is started afresh`() async throws {
    _ = try await stop(.test(in: directory))
    let connection = try Connection(path: path)
    try connection.execute("DELETE FROM _batch_ledger")
    try connection.execute("DELETE FROM _batch_run")
    let error = try await refusal(.test(in: directory))
    #expect(error?.code == .otherRun)
    var options = BatchRun.Options()
    options.fresh = true
    let events = Events()
    #expect(
      try await BatchRun(.test(in: directory), options: options).run { events.append($0) }.state
        == .completed
    )
    #expect(events.all.first?.name == "setAside")
    #expect(try directory.names().contains("job.1.batch"))
  }

  @Test(arguments: [
    "UPDATE _batch_ledger SET next = 9000, succeeded = 9000 - first",
    "UPDATE _batch_ledger SET succeeded = 9223372036854775807",
  ])
  func `a run whose ledger was edited by hand is refused`(change: String) async throws {
    _ = try await stop(.test(in: directory))
    try Connection(path: path).execute(change)
    #expect(try await refusal(.test(in: directory))?.code == .damagedFile)
  }

  @Test func `a run resumes from the ledger if its checkpoint is older`() async throws {
    let first = try await stop(.test(in: directory))
    let early = try directory.read("job.batch")
    let second = try await stop(.test(in: directory))
    #expect(second.done > first.done)
    // As if the process had been killed before it wrote the second record.
    try Data(early).write(to: URL(fileURLWithPath: directory.file("job.batch")))
    let job = Job.test(in: directory)
    #expect(try await job.status().summary.done == second.done)
    let remaining = try await job.identifiers(.remaining)
    let done = try await job.identifiers(.done)
    #expect(remaining.count == 300 - second.done && done.count == second.done)
    let summary = try await BatchRun(job).run()
    #expect(summary.state == .completed && summary.resumedAt == second.done)
    #expect(try TestDatabase.value(path, "SELECT max(n) || sum(n) FROM numbers") == .text("1300"))
  }

  @Test func `a checkpoint without progress is refused if the database has no ledger for it`()
    async throws
  {
    _ = try await stop(.test(in: directory))
    let path = FilePath(directory.file("job.batch"))
    let file = try IdentifierFile(opening: path)
    try IdentifierFile.create(
      at: path,
      list: file.list,
      metadata: Array(file.metadata),
      overwriting: true
    )
    let connection = try Connection(path: self.path)
    for table in ["_batch_run", "_batch_ledger"] { try connection.execute("DROP TABLE \(table)") }
    #expect(try await refusal(.test(in: directory))?.message.contains("no ledger") == true)
  }
}
