import BatchTestSupport
import Foundation
import Testing

/// Runs that a development version before 0.2.0 had begun when it was killed, as its files and tables
/// were left; see the folders of `Fixtures/before-modules`.
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

  @Test(arguments: ["update", "delete", "export", "failures"])
  func `a job's run of an earlier version is refused in one line and changes nothing`(
    name: String
  ) throws {
    try restore(name)
    let before = try texts("SELECT id || ' ' || n FROM numbers ORDER BY id")
    let command = name == "failures" ? "retry-failed" : "run"
    let run = try BatchProgram.run(command, "job.json", in: directory)
    #expect(run.status == 2)
    let line =
      "error: job.batch: the run was begun by an earlier version of batch; "
      + "finish it with that version, or run with --fresh to set it aside\n"
    #expect(run.errors == line)
    #expect(try texts("SELECT id || ' ' || n FROM numbers ORDER BY id") == before)
    let fresh = try BatchProgram.run("run", "job.json", "--fresh", in: directory)
    #expect(fresh.status == (name == "failures" ? 4 : 0), "\(fresh.errors)")
  }

  @Test func `a run by objects of an earlier version is refused and changes nothing`() throws {
    try restore("contexts")
    #expect(try texts("SELECT sum(n) FROM numbers") == ["90"])
    let program = try BatchProgram(
      ["test.db", "numbers.batch"],
      of: "CrashingContexts",
      in: directory
    )
    let run = program.wait()
    #expect(run.status != 0 && run.errors.contains("begun by an earlier version"), "\(run.errors)")
    #expect(try texts("SELECT sum(n) FROM numbers") == ["90"])
  }
}
