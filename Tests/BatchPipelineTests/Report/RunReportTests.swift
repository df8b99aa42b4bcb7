import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

@Suite struct RunReportTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(200, in: directory)
  }

  private func stopped(_ job: Job) async throws -> RunSummary {
    let run = BatchRun(job, options: .telling)
    return try await run.run { event in if case .progress = event { run.stop() } }
  }

  private func integers(_ selection: IdentifierSelection) throws -> [Int64] {
    let list = try selection.list
    #expect(list.count == selection.count)
    return try list.integers(in: 0..<list.count)
  }

  @Test func `a job that never ran has no status and no identifiers`() async throws {
    let job = Job.test(in: directory)
    let status = await #expect(throws: BatchError.self) { try await job.status() }
    #expect(status?.code == .fileAccess)
    #expect(status?.remedy == "run it first")
    await #expect(throws: BatchError.self) {
      try await job.identifiers(.all)
    }
    #expect(try directory.names() == ["test.db"])
  }

  @Test func `the done and the remaining identifiers are together the whole list`() async throws {
    let job = Job.test(in: directory)
    let summary = try await stopped(job)
    let done = try integers(await job.identifiers(.done))
    let remaining = try integers(await job.identifiers(.remaining))
    #expect(done.count == summary.done)
    #expect((done + remaining).sorted() == Array(1...200))
    #expect(try integers(await job.identifiers(.failed)) == [])
    let changed = try TestDatabase.texts(path, "SELECT id FROM numbers WHERE n = 1 ORDER BY id")
    #expect(done.sorted().map { "\($0)" } == changed)

    let file = FilePath(directory.file("rest.ids"))
    try IdentifierFile.create(
      at: file,
      list: await job.identifiers(.remaining).list
    )
    #expect(try integers(IdentifierSelection(ofFile: file, outcome: .all)) == remaining)
    #expect(throws: BatchError.self) { try IdentifierSelection(ofFile: file, outcome: .done) }
  }

  @Test func `a checkpoint refuses an outcome that only the database knows`() async throws {
    let job = Job.test(in: directory)
    _ = try await stopped(job)
    let file = job.checkpointPath
    #expect(try IdentifierSelection(ofFile: file, outcome: .all).count == 200)
    let error = #expect(throws: BatchError.self) {
      try IdentifierSelection(ofFile: file, outcome: .remaining)
    }
    #expect(error?.remedy == "name the job file instead of the checkpoint")
    #expect(try await BatchRun(job).run().state == .completed)
    #expect(try IdentifierSelection(ofFile: file, outcome: .done).count == 200)
    #expect(try FileInspection(of: file).run?.state == "completed")
  }

  @Test func `a summary encodes every field`() async throws {
    let summary = try await stopped(.test(in: directory))
    let object = try #require(
      JSONSerialization.jsonObject(with: JSONEncoder().encode(summary)) as? [String: Any]
    )
    #expect(
      Set(object.keys) == [
        "job", "run", "runID", "state", "total", "done", "outcomes", "chunks", "resumedAt",
        "elapsedSeconds", "identifiersPerSecond", "etaSeconds", "peakResidentBytes",
        "peakWALBytes", "checkpoint", "output", "invalidTexts", "throttle", "throttledSeconds",
        "stopReason",
        "error", "startedAt", "endedAt", "lastSeenAt", "wasKilled", "processSeconds",
        "waiting",
      ]
    )
    #expect(object["state"] as? String == "stopped")
    #expect(object["done"] as? Int == summary.done)
    #expect(object["output"] is NSNull && object["error"] is NSNull)
  }
}
