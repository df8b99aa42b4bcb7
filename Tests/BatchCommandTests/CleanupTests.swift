import BatchSQLite
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

  @Test func `cleanup removes the ledger of a complete run and nothing else`() throws {
    try write()
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory).output
    #expect(try cleanUp() == "removed 1 run from the database\n")
    for table in ["_batch_run", "_batch_ledger", "_batch_failure"] {
      #expect(try TestDatabase.texts(path, "SELECT count(*) FROM \(table)") == ["0"])
    }
    #expect(try BatchProgram.run("status", "job.json", "--json", in: directory).output == status)
    #expect(try TestDatabase.texts(path, "SELECT sum(n) FROM numbers") == ["100"])
    #expect(try cleanUp() == "removed 0 runs from the database\n")
  }

  @Test func `cleanup keeps a run with failed identifiers, which can be retried`() throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.id = 5
      BEGIN SELECT RAISE(ABORT, 'poison'); END
      """
    )
    try write(["skip": ["limit": 1]])
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 4)
    #expect(try cleanUp() == "removed 0 runs from the database\n")
    try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    #expect(try BatchProgram.run("retry-failed", "job.json", in: directory).status == 0)
    #expect(try cleanUp() == "removed 1 run from the database\n")
  }
}
