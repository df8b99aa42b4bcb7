import BatchStore
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

  private func failed(of source: String = "job.json") throws -> String {
    let arguments = ["ids", source, "--outcome", "failed", "--format", "key"]
    return try BatchProgram(arguments, in: directory).wait().output
      .split(separator: "\n").joined(separator: " ")
  }

  private func attempts() throws -> [Int?] {
    let inspection = try JSONOutput.object(
      BatchProgram.run("inspect", "job.batch", "--json", in: directory).output
    )
    let run = try #require(inspection["run"] as? [String: Any])
    return try #require(run["failed"] as? [[String: Any]]).map { $0["attempt"] as? Int }
  }

  @Test func `those that succeed leave the failed ones, in the store and in the file`() throws {
    try write(limit: 4)
    let first = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(first.status == 4)
    let run = try JSONOutput.lines(first.output).last?["run"] as? String
    #expect(try failed() == "5 77 78 1999")
    try poison("77, 1999")
    let second = try BatchProgram.run("retry-failed", "job.json", "--json", in: directory)
    #expect(second.status == 4, "\(second.errors)")
    let events = try JSONOutput.lines(second.output)
    #expect(events.first?["event"] as? String == "retryingFailures")
    let last = try #require(events.last)
    #expect(last["event"] as? String == "finished" && last["run"] as? String == run)
    #expect(last["done"] as? Int == 2000)
    let outcomes = try #require(last["outcomes"] as? [String: Int])
    #expect(outcomes["succeeded"] == 1998 && outcomes["failed"] == 2)
    #expect(try failed() == "77 1999")
    #expect(try failed(of: "job.batch") == "77 1999")
    #expect(try attempts() == [2, 2])

    // All fail again: only their number of attempts changes.
    #expect(try BatchProgram.run("retry-failed", "job.json", in: directory).status == 4)
    #expect(try failed(of: "job.batch") == "77 1999")
    #expect(try attempts() == [3, 3])

    try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    let fourth = try BatchProgram.run("retry-failed", "job.json", in: directory)
    #expect(fourth.status == 0, "\(fourth.errors)")
    #expect(fourth.errors.contains("job: 2 failed identifiers to retry"))
    #expect(try failed() == "" && failed(of: "job.batch") == "")
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM _batch_failure") == ["0"])

    // Nothing is left to try.
    #expect(try BatchProgram.run("retry-failed", "job.json", in: directory).status == 0)
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }

  @Test func `an unfinished run keeps its remaining work`() throws {
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

  @Test func `it no longer needs skip`() throws {
    try write(limit: 4)
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 4)
    try write(limit: 0)
    try poison("5")
    #expect(try BatchProgram.run("retry-failed", "job.json", in: directory).status == 4)
    #expect(try failed() == "5")
  }

  @Test func `it is refused without a run, for another job, or without failed identifiers`() throws
  {
    try write(limit: 4)
    let none = try BatchProgram.run("retry-failed", "job.json", in: directory)
    #expect(none.status == 2 && none.errors.contains("has not been run"))
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 4)
    let other = try JobText.update(["n": "n + 2"], adding: ["skip": ["limit": 4]])
    try directory.write(other, to: "job.json")
    let before = try directory.contents()
    let changed = try BatchProgram.run("retry-failed", "job.json", in: directory)
    #expect(changed.status == 2 && changed.errors.contains("the job has changed"))
    #expect(try directory.changes(since: before) == [])

    try directory.write(JobText.export(to: "out.ndjson"), to: "export.json")
    #expect(try BatchProgram.run("run", "export.json", in: directory).status == 0)
    let export = try BatchProgram.run("retry-failed", "export.json", in: directory)
    #expect(
      export.status == 2 && export.errors.contains("no failed identifiers that can be retried")
    )
  }

  @Test func `with no failures nothing is tried, which is said`() throws {
    try poison("-1")
    try write(limit: 4)
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    let retry = try BatchProgram.run("retry-failed", "job.json", in: directory)
    #expect(retry.status == 0)
    #expect(retry.errors.contains("nothing has failed; nothing to retry"), "\(retry.errors)")
  }
}
