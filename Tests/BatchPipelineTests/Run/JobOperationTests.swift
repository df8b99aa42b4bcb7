import BatchIdentifiers
import BatchJobs
import BatchPipeline
import BatchRuns
import BatchTestSupport
import SystemPackage
import Testing

/// What the methods of a job say, against what the next call does.
@Suite struct JobOperationTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(500, in: directory)
  }

  private func sum() throws -> [String] {
    try TestDatabase.texts(path, "SELECT sum(n) FROM numbers")
  }

  @Test func `the next step of a job is the one that its run takes`() async throws {
    let job = Job.test(in: directory)
    #expect(await job.nextStep().name == "begin")
    let run = BatchRun(job, options: .telling)
    let stopped = try await run.run { event in
      if case .progress(let summary) = event, summary.done >= 60 { run.stop() }
    }
    #expect(stopped.state == .stopped)
    #expect(await job.nextStep().name == "resume")
    var changed = job
    changed.action = .update(.init(set: [.init("n", to: "n + 2")]))
    #expect(await changed.nextStep().name == "refuse")
    #expect(throws: BatchError.self) { try stopped.get() }
    let summary = try await BatchRun(job).run().get()
    #expect(summary.run == stopped.run)
    #expect(try sum() == ["500"])
    let history = try await job.history()
    #expect(history.runs.map(\.summary.run) == [summary.run])
    #expect(try await job.run(named: summary.run).summary.outcomes.succeeded == 500)
    #expect(try await job.identifiers(.succeeded).count == 500)
  }

  @Test func `the plan of an undo counts the rows that it restores and leaves unchanged`()
    async throws
  {
    var job = Job.test(in: directory)
    job.undo = .init()
    _ = try await BatchRun(job).run().get()
    #expect(try await job.planUndo().isAsLeft)
    _ = try TestDatabase.texts(path, "UPDATE numbers SET n = 7 WHERE id <= 20")
    let plan = try await job.planUndo()
    #expect(plan.outcomes.succeeded == 480 && plan.outcomes.failed == 20)
    #expect(plan.changedSince.count == 5)
    let undone = try await BatchRun(undoing: job).run().get(allowingFailures: true)
    #expect(undone.outcomes.succeeded == 480 && undone.outcomes.failed == 20)
    #expect(try sum() == ["140"])
    let report = FilePath(directory.file("report.json"))
    try await job.writeReport(to: report)
    #expect(try String(decoding: directory.read("report.json"), as: UTF8.self).contains("500"))
    _ = try await job.cleanUp(removingHistory: true)
  }
}
