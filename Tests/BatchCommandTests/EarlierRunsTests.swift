import BatchTestSupport
import Foundation
import Testing

/// Runs that the version before had begun when it was killed, as its files and tables were left.
///
/// Each of 400 numbers was to be done once; see the folders of `Fixtures/before-modules`.
@Suite struct EarlierRunsTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// Copies what was left.
  private func restore(_ name: String) throws {
    let fixture = "\(Repository.path)/Tests/BatchCommandTests/Fixtures/before-modules/\(name)"
    for file in try FileManager.default.contentsOfDirectory(atPath: fixture) {
      try FileManager.default.copyItem(
        atPath: "\(fixture)/\(file)",
        toPath: directory.file(file)
      )
    }
  }

  private func texts(_ sql: String) throws -> [String] {
    try TestDatabase.texts(directory.file("test.db"), sql)
  }

  @Test func `an update resumes`() throws {
    try restore("update")
    #expect(try texts("SELECT sum(n) FROM numbers") == ["140"])
    let run = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(run.status == 0 && run.output.contains(#""resumedAt":140"#), "\(run.errors)")
    #expect(try texts("SELECT count(*) FROM numbers WHERE n = 1") == ["400"])
  }

  @Test func `a delete with an archive resumes`() throws {
    try restore("delete")
    #expect(try texts("SELECT count(*) FROM archive") == ["130"])
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(try texts("SELECT count(*) FROM numbers") == ["0"])
    #expect(try texts("SELECT count(DISTINCT id) FROM archive") == ["400"])
  }

  @Test func `an export comes out whole`() throws {
    try restore("export")
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 0, "\(run.errors)")
    // The file that it wrote before had an absolute path, and is not where that was.
    let output = try #require(
      try BatchProgram.run("status", "job.json", "--json", in: directory).output
        .firstMatch(of: /"output"\s*:\s*"([^"]*)"/)?.output.1
    )
    defer { try? FileManager.default.removeItem(atPath: String(output)) }
    let file = output.hasPrefix("/") ? String(output) : directory.file(String(output))
    let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
    #expect(lines.count == 400 && Set(lines).count == 400)
  }

  @Test func `identifiers that had failed are retried`() throws {
    try restore("failures")
    #expect(try texts("SELECT count(*) FROM numbers WHERE n = 99") == ["8"])
    try TestDatabase.make(in: directory, "UPDATE numbers SET n = 0 WHERE n = 99")
    let retry = try BatchProgram.run("retry-failed", "job.json", in: directory)
    #expect(retry.status == 0, "\(retry.errors)")
    #expect(try texts("SELECT count(*) FROM numbers WHERE n = 1") == ["400"])
  }

  @Test func `a run by objects resumes, by a fetch`() throws {
    try restore("contexts")
    #expect(try texts("SELECT sum(n) FROM numbers") == ["90"])
    let program = try BatchProgram(
      ["test.db", "numbers.batch"],
      of: "CrashingContexts",
      in: directory
    )
    let run = program.wait()
    #expect(run.status == 0, "\(run.errors)")
    #expect(try texts("SELECT count(*) FROM numbers WHERE n = 1") == ["400"])
  }
}
