import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchTestSupport
import SystemPackage
import Testing

/// Values of options, which come from a program and not from a checked file.
@Suite struct RunOptionsTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    _ = try TestDatabase.makeNumbers(10, in: directory)
    try directory.write(
      """
      {"version": 1, "name": "job", "database": {"path": "test.db"},
       "source": {"entity": "numbers", "everything": true},
       "action": {"type": "update", "set": {"n": "n + 1"}}}
      """,
      to: "job.json"
    )
  }

  private func run(_ options: BatchRun.Options) async throws {
    let job = try Job(contentsOf: FilePath(directory.file("job.json")))
    let summary = try await BatchRun(job, options: options).run()
    #expect(summary.state == .completed)
  }

  @Test(arguments: [Int.min, -1, 0, 1, 1_000_000, 1_000_001, .max])
  func `a chunk size is used if valid and refused otherwise`(size: Int) async throws {
    var options = BatchRun.Options()
    options.chunkSize = size
    await expect(options, isValid: 1...1_000_000 ~= size, naming: "chunk.size: is \(size)")
  }

  @Test(arguments: [Int.min, -1, 0, 1, 256, 257, 1000, .max])
  func `a number of workers is used if valid and refused otherwise`(workers: Int) async throws {
    var options = BatchRun.Options()
    options.workers = workers
    await expect(options, isValid: 1...256 ~= workers, naming: "workers: is \(workers)")
  }

  private func expect(
    _ options: BatchRun.Options,
    isValid: Bool,
    naming problem: String
  ) async {
    if isValid {
      await #expect(throws: Never.self) { try await run(options) }
      return
    }
    let error = await #expect(throws: BatchError.self) { try await run(options) }
    #expect(error?.code == .invalidJob)
    #expect(error?.description.contains(problem) == true, "\(error?.description ?? "")")
    let sum = try? TestDatabase.texts(directory.file("test.db"), "SELECT sum(n) FROM numbers")
    #expect(sum == ["0"])
  }
}
