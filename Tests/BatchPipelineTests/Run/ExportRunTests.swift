import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

@Suite struct ExportRunTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(300, in: directory)
  }

  private func job(_ file: String, entity: String = "numbers", chunk: Int = 7) -> Job {
    .test(
      in: directory,
      .init(entity: entity),
      .exporting(directory, file),
      chunk: chunk,
      workers: 4
    )
  }

  @Test(arguments: ["out.ndjson", "out.csv"], [1, 40])
  func `a stopped and resumed export has identical bytes`(
    file: String,
    step: Int
  ) async throws {
    var undisturbed = job("whole-" + file, chunk: 50)
    undisturbed.name = "undisturbed"
    #expect(try await BatchRun(undisturbed).run().state == .completed)
    let expected = try directory.read("whole-" + file)
    #expect(expected.filter { $0 == 0x0a }.count == (file.hasSuffix("csv") ? 301 : 300))

    var stops = 0
    while true {
      let run = BatchRun(job(file), options: .telling)
      let seen = Lock(0)
      let summary = try await run.run { event in
        guard case .progress = event else { return }
        if seen.withLock({
          $0 += 1; return $0
        }) >= step {
          run.stop()
        }
      }
      if summary.state == .completed { break }
      #expect(summary.state == .stopped)
      #expect(try !directory.names().contains(file))
      // What a killed run had written past the last record is cut off.
      if let partial = try directory.names().first(where: { $0.hasSuffix(".partial") }) {
        let handle = try #require(FileHandle(forWritingAtPath: directory.file(partial)))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data("torn".utf8))
        try handle.close()
      }
      stops += 1
      try #require(stops < 100)
    }
    #expect(stops > 0 || step == 40)
    #expect(try directory.read(file) == expected)
    #expect(try !directory.names().contains { $0.hasSuffix(".partial") })
  }

  /// A view over the numbers that fails for some of them.
  private func makePoison(_ list: String) throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE VIEW poisoned AS
      SELECT id, json_extract(iif(id IN (\(list)), '{', '{"n": 1}'), '$.n') AS n FROM numbers
      """
    )
  }

  private func poisonedJob(_ file: String, limit: Int, ratio: Double = 1) -> Job {
    var job = job(file, entity: "poisoned")
    job.source.key = ["id"]
    job.skip = .init(limit: limit, ratio: ratio)
    return job
  }

  @Test(arguments: ["1", "300", "7, 8", "1, 2, 3, 4, 5, 6, 7", "30, 150, 151, 299"])
  func `an export omits unreadable rows up to its failure limit`(list: String) async throws {
    try makePoison(list)
    let poison = list.split(separator: ", ").compactMap { Int($0) }
    let summary = try await BatchRun(poisonedJob("out.ndjson", limit: 7)).run()
    #expect(summary.state == .completedWithFailures)
    #expect(summary.outcomes.failed == poison.count)
    #expect(summary.outcomes.succeeded == 300 - poison.count)
    let lines = String(decoding: try directory.read("out.ndjson"), as: UTF8.self)
    let expected = (1...300).filter { !poison.contains($0) }.map { "{\"id\":\($0),\"n\":1}\n" }
    #expect(lines == expected.joined())
    let failed = try await poisonedJob("out.ndjson", limit: 7).identifiers(.failed).load()
    let keys = try (0..<failed.count).map { try failed.key(at: $0).description }
    #expect(keys == poison.map(String.init))
  }

  @Test(arguments: [(3, 1.0), (100, 0.011)])
  func `an export beyond its failure limit stops and resumes with a higher limit`(
    limit: Int,
    ratio: Double
  ) async throws {
    try makePoison("30, 150, 151, 299")
    let summary = try await BatchRun(poisonedJob("out.ndjson", limit: limit, ratio: ratio)).run()
    #expect(summary.state == .failed)
    #expect(summary.outcomes.failed <= 3)
    #expect(summary.failure?.message.contains("malformed JSON") == true)
    #expect(
      summary.failure?.remedy?.contains(limit < 100 ? "raise skip.limit" : "raise skip.ratio")
        == true
    )
    let second = try await BatchRun(poisonedJob("out.ndjson", limit: 4)).run()
    #expect(second.state == .completedWithFailures)
    #expect(second.outcomes.failed == 4)
    let lines = String(decoding: try directory.read("out.ndjson"), as: UTF8.self)
    #expect(lines.split(separator: "\n").count == 296)
  }

  @Test func `an export without skip names the unreadable identifier`() async throws {
    try makePoison("150")
    let summary = try await BatchRun(poisonedJob("out.ndjson", limit: 0)).run()
    #expect(summary.state == .failed)
    #expect(summary.failure?.message == "identifier 150: malformed JSON")
  }

  @Test func `a stopped and resumed export lists each failure once`() async throws {
    try makePoison("1, 30, 150, 151, 299")
    var stops = 0
    while true {
      let run = BatchRun(poisonedJob("out.ndjson", limit: 5), options: .telling)
      let summary = try await run.run { event in if case .progress = event { run.stop() } }
      if summary.state.isFinished {
        #expect(summary.state == .completedWithFailures)
        #expect(summary.outcomes.failed == 5)
        break
      }
      stops += 1
      try #require(stops < 100)
    }
    #expect(stops > 0)
    let lines = String(decoding: try directory.read("out.ndjson"), as: UTF8.self)
    #expect(lines.split(separator: "\n").count == 295)
    let failed = try Checkpoint(reading: FilePath(directory.file("job.batch"))).failedAttempts
    #expect(failed.keys.sorted() == [0, 29, 149, 150, 298])
  }

  @Test func `views and virtual tables are exported`() async throws {
    let connection = try Connection(path: path)
    try connection.execute(
      "CREATE VIEW tens AS SELECT id / 10 AS ten, count(*) AS c FROM numbers GROUP BY 1"
    )
    try connection.execute("CREATE VIRTUAL TABLE notes USING fts5 (body)")
    try connection.execute("INSERT INTO notes SELECT label FROM numbers WHERE id <= 25")
    for (entity, lines) in [("tens", 31), ("notes", 25)] {
      let summary = try await BatchRun(job("\(entity).ndjson", entity: entity)).run()
      #expect(summary.outcomes.succeeded == lines)
      #expect(try directory.read("\(entity).ndjson").filter { $0 == 0x0a }.count == lines)
    }
    let first = try directory.read("tens.ndjson").prefix { $0 != 0x0a }
    #expect(String(decoding: first, as: UTF8.self) == #"{"ten":0,"c":9}"#)
  }

  @Test func `an export leaves a read-only database unchanged`() async throws {
    let before = try directory.read("test.db")
    var job = job("out.csv")
    job.database.readOnly = true
    #expect(try await BatchRun(job).run().state == .completed)
    #expect(try directory.read("test.db") == before)
    #expect(try directory.names() == ["job.batch", "out.csv", "test.db"])
  }

  @Test func `an export does not replace a file of another origin`() async throws {
    let job = job("out.ndjson")
    try directory.write("precious", to: "out.ndjson")
    let error = await #expect(throws: BatchError.self) { try await BatchRun(job).run() }
    #expect(error?.code == .outputExists)
    #expect(try directory.read("out.ndjson") == Array("precious".utf8))
    #expect(try directory.names() == ["out.ndjson", "test.db"])

    try FileManager.default.removeItem(atPath: directory.file("out.ndjson"))
    #expect(try await BatchRun(job).run().state == .completed)
    // Its own it replaces.
    try Connection(path: path).execute("DELETE FROM numbers WHERE id > 10")
    #expect(try await BatchRun(job).run().state == .completed)
    #expect(try directory.read("out.ndjson").filter { $0 == 0x0a }.count == 10)
  }

  @Test func `an export does not replace a file that appears meanwhile`() async throws {
    let job = job("out.ndjson")
    let directory = directory
    let summary = try await BatchRun(job).run { event in
      if case .started = event { _ = try? directory.write("precious", to: "out.ndjson") }
    }
    #expect(summary.state == .failed)
    #expect(summary.failure?.code == .outputExists)
    #expect(try directory.read("out.ndjson") == Array("precious".utf8))
    try FileManager.default.removeItem(atPath: directory.file("out.ndjson"))
    #expect(try await BatchRun(job).run().state == .completed)
    #expect(try directory.read("out.ndjson").filter { $0 == 0x0a }.count == 300)
  }

  @Test func `an export with more failures than a lowered limit resumes`() async throws {
    try makePoison("1, 2")
    let run = BatchRun(poisonedJob("out.ndjson", limit: 2), options: .telling)
    let first = try await run.run { event in if case .progress = event { run.stop() } }
    #expect(first.state == .stopped)
    let second = try await BatchRun(poisonedJob("out.ndjson", limit: 1)).run()
    #expect(second.state == .completedWithFailures)
    #expect(second.outcomes.failed == 2)
  }

  @Test func `an export counts the rows that vanish before it reads them`() async throws {
    let job = job("out.ndjson", chunk: 300)
    let path = path
    let summary = try await BatchRun(job).run { event in
      guard case .started = event else { return }
      try? Connection(path: path).execute("DELETE FROM numbers WHERE id % 3 = 0")
    }
    #expect(summary.outcomes.succeeded == 200)
    #expect(summary.outcomes.vanished == 100)
    #expect(try directory.read("out.ndjson").filter { $0 == 0x0a }.count == 200)
  }
}
