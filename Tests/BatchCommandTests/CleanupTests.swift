import BatchStore
import BatchTestSupport
import Foundation
import Testing

/// What is left of past runs, and what must stay.
@Suite struct CleanupTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(100, in: directory)
  }

  private func write(_ more: [String: Any] = [:]) throws {
    try directory.write(JobText.update(adding: more), to: "job.json")
  }

  private func cleanUp() throws -> String {
    let result = try BatchProgram.run("cleanup", "job.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    return result.output
  }

  private func runs() throws -> [String] {
    try TestDatabase.texts(path, "SELECT run FROM _batch_run ORDER BY started_at")
  }

  /// Begins a run and stops it immediately.
  private func stop(_ arguments: [String] = []) throws {
    let program = try BatchProgram(["run", "job.json", "--json"] + arguments, in: directory)
    while let line = program.nextLine() {
      if try JSONOutput.object(line)["event"] as? String == "throttled" { break }
    }
    program.send(SIGINT)
    #expect(program.wait().status == 3)
  }

  @Test func `the ledger of a complete run goes, and nothing else`() throws {
    try write()
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory).output
    #expect(try cleanUp() == "removed 1 run from the ledger\n")
    for table in ["_batch_run", "_batch_ledger", "_batch_failure"] {
      #expect(try TestDatabase.texts(path, "SELECT count(*) FROM \(table)") == ["0"])
    }
    #expect(try BatchProgram.run("status", "job.json", "--json", in: directory).output == status)
    #expect(try TestDatabase.texts(path, "SELECT sum(n) FROM numbers") == ["100"])
    #expect(try cleanUp() == "removed 0 runs from the ledger\n")
  }

  @Test func `a run with failed identifiers stays, and they can be retried`() throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.id = 5
      BEGIN SELECT RAISE(ABORT, 'poison'); END
      """
    )
    try write(["skip": ["limit": 1]])
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 4)
    #expect(try cleanUp() == "removed 0 runs from the ledger\n")
    try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    #expect(try BatchProgram.run("retry-failed", "job.json", in: directory).status == 0)
    #expect(try cleanUp() == "removed 1 run from the ledger\n")
  }

  @Test func `checkpoints that were set aside go with their runs, the last one can be resumed`()
    throws
  {
    try directory.write("", to: "hold")
    try write(["throttle": ["flagFile": "hold"]])
    try stop()
    try stop(["--fresh"])
    try stop(["--fresh"])
    #expect(try runs().count == 3)
    try directory.write("mine", to: "job.7.batch")
    let output = try cleanUp()
    #expect(output.hasSuffix("removed 2 runs from the ledger\n"))
    #expect(output.contains("job.1.batch\n") && output.contains("job.2.batch\n"))
    #expect(try runs().count == 1)
    #expect(try directory.names().filter { $0.contains(".batch") } == ["job.7.batch", "job.batch"])
    try FileManager.default.removeItem(atPath: directory.file("hold"))
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try TestDatabase.texts(path, "SELECT sum(n) FROM numbers") == ["100"])
  }

  @Test func `an unfinished export goes with the checkpoint that was set aside`() throws {
    try directory.write("", to: "hold")
    let more: [String: Any] = ["throttle": ["flagFile": "hold"]]
    try directory.write(JobText.export(to: "out.ndjson", adding: more), to: "job.json")
    try stop()
    try stop(["--fresh"])
    #expect(try directory.names().filter { $0.hasSuffix(".partial") }.count == 2)
    #expect(try cleanUp().contains(".partial\n"))
    #expect(try directory.names().filter { $0.hasSuffix(".partial") }.count == 1)
    try FileManager.default.removeItem(atPath: directory.file("hold"))
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
  }

  @Test func `it is refused while a run is alive, and does nothing where there was none`() throws {
    try directory.write("", to: "hold")
    try write(["throttle": ["flagFile": "hold"]])
    #expect(try cleanUp() == "removed 0 runs from the ledger\n")
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    _ = program.nextLine()
    let refused = try BatchProgram.run("cleanup", "job.json", in: directory)
    #expect(refused.status == 5)
    program.send(SIGINT)
    #expect(program.wait().status == 3)
  }
}
