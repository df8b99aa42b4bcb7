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
    let end = try #require(JSONOutput.lines(retried.output).last)
    #expect(end["error"] is NSNull)
    #expect(
      end["stopReason"] as? String == "the failed identifiers were retried; the others are left"
    )
    #expect(try failed() == "")
    let after = try TestDatabase.texts(path, "SELECT sum(n) FROM numbers")
    #expect(Int(after[0]) == Int(before[0]).map { $0 + 3 })
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }

  @Test func `after a retry in an unfinished run, status says that the run resumes`() throws {
    try write(limit: 3)
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 1)
    try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    #expect(try BatchProgram.run("retry-failed", "job.json", in: directory).status == 3)
    let status = try BatchProgram.run("status", "job.json", in: directory).output
    #expect(status.contains("resumes the unfinished run"), "\(status)")
    #expect(status.contains("before a retry"), "\(status)")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }

  @Test func `a run whose retry was killed is set aside with what the retry has done`() throws {
    try poison("5) OR (old.id % 4 = 0")
    try write(limit: 1000)
    let run = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(run.status == 4, "\(run.errors)")
    let name = try #require(JSONOutput.lines(run.output).last?["run"] as? String)
    let all = try failed().split(separator: " ").count
    try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    try directory.write(
      JobText.update(adding: [
        "skip": ["limit": 1000], "chunk": ["size": 5], "workers": 1,
        "throttle": ["identifiersPerSecond": 200], "checkpoint": ["interval": "1h"],
      ]),
      to: "job.json"
    )
    let retry = try BatchProgram(["retry-failed", "job.json", "--json"], in: directory)
    while try Int(TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE n = 0")[0])
      ?? 0 > all - 40
    {}
    retry.send(SIGKILL)
    _ = retry.wait()
    let left = try TestDatabase.texts(path, "SELECT id FROM numbers WHERE n = 0 ORDER BY id")
    #expect(left.count < all)
    try write(limit: 1000)
    let fresh = try BatchProgram.run("run", "job.json", "--fresh", in: directory)
    #expect(fresh.status == 0, "\(fresh.errors)")
    let listed = try BatchProgram(
      ["ids", "job.json", "--run", name, "--outcome", "failed", "--format", "key"],
      in: directory
    ).wait()
    #expect(listed.output.split(separator: "\n").map(String.init) == left, "\(listed.errors)")
    let status = try BatchProgram(["status", "job.json", "--run", name, "--json"], in: directory)
    let outcomes = try JSONOutput.object(status.wait().output)["outcomes"] as? [String: Int]
    #expect(outcomes?["failed"] == left.count && outcomes?["succeeded"] == 2000 - left.count)
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
