import BatchIdentifiers
import BatchPipeline
import BatchStore
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
  func `an export stopped and resumed is the same as one that was not`(
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

  @Test func `a database that may only be read is exported and stays as it was`() async throws {
    let before = try directory.read("test.db")
    var job = job("out.csv")
    job.database.readOnly = true
    #expect(try await BatchRun(job).run().state == .completed)
    #expect(try directory.read("test.db") == before)
    #expect(try directory.names() == ["job.batch", "out.csv", "test.db"])
  }

  @Test func `a file that the job did not make is not replaced`() async throws {
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

  @Test func `a file that appears while the job runs is kept`() async throws {
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

  @Test func `rows that are gone when their chunk is read are counted`() async throws {
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
