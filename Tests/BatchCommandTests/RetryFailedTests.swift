import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// `batch retry-failed`, as a user runs it after having corrected what was wrong.
@Suite struct RetryFailedTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(2000, in: directory)
    try poison("5, 77, 78, 1999")
  }

  /// Makes rows refuse changes, instead of the earlier ones.
  private func poison(_ identifiers: String) throws {
    try TestDatabase.make(
      in: directory,
      "DROP TRIGGER IF EXISTS poison",
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.id IN (\(identifiers))
      BEGIN SELECT RAISE(ABORT, 'this row is poison'); END
      """
    )
  }

  private func write(limit: Int) throws {
    let more: [String: Any] = ["skip": ["limit": limit], "chunk": ["size": 100], "workers": 2]
    try directory.write(JobText.update(adding: more), to: "job.json")
  }

  private func failed() throws -> String {
    let arguments = ["ids", "job.json", "--outcome", "failed", "--format", "key"]
    return try BatchProgram(arguments, in: directory).wait().output
      .split(separator: "\n").joined(separator: " ")
  }

  @Test func `the retry of an unfinished run keeps its remaining rows`() throws {
    try write(limit: 3)
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 1)
    #expect(try failed() == "5 77 78")
    let before = try TestDatabase.texts(path, "SELECT sum(n) FROM numbers")
    try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    let retried = try BatchProgram.run("retry-failed", "job.json", "--json", in: directory)
    #expect(retried.status == 3, "\(retried.errors)")
    #expect(try JSONOutput.lines(retried.output).last?["error"] is NSNull)
    #expect(try failed() == "")
    let after = try TestDatabase.texts(path, "SELECT sum(n) FROM numbers")
    #expect(Int(after[0]) == Int(before[0]).map { $0 + 3 })
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }

  @Test func `a retry of failures does not need skip`() throws {
    try write(limit: 4)
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 4)
    try write(limit: 0)
    try poison("5")
    let retried = try BatchProgram.run("retry-failed", "job.json", in: directory)
    #expect(retried.status == 4 && retried.errors.contains("job: 4 failed identifiers to retry"))
    #expect(try failed() == "5")
  }
}
