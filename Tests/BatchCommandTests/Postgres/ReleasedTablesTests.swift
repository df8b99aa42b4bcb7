#if PostgreSQL
import BatchTestSupport
import Foundation
import Testing

/// What release 0.2.0 has written to PostgreSQL, as dumps in the folders of `Fixtures/0.2.0`, which every later version reads.
///
/// A release adds a dump of its own, once: `BATCH_WRITE_FIXTURES=0.2.0 swift test --filter ReleasedTablesTests`.
@Suite(.timeLimit(.minutes(5))) struct ReleasedTablesTests {
  private static let releases = ["0.2.0"]
  private static let failing = 7

  /// A run with a failed row that was killed half-way, after one that is complete.
  private func write() throws -> SharedJob {
    let job = try SharedJob(
      rows: 300,
      "ALTER TABLE t ADD CHECK (n < 1 OR id <> \(Self.failing));"
    )
    let keys: [String: Any] = [
      "action": ["type": "update", "set": ["n": "n + 1"]], "undo": ["keep": "365d"],
      "skip": ["limit": 3], "canary": ["rows": 20, "then": "1ms"], "workers": 1,
    ]
    try job.writeJob(keys.merging(["source": ["entity": "t", "where": "id > 270"]]) { $1 })
    #expect(try job.start("--run-id", "first").wait().status == 0)
    try job.writeJob(keys.merging(["throttle": ["identifiersPerSecond": 100]]) { $1 })
    let run = try job.start("--run-id", "second")
    try job.untilDone(80)
    run.send(SIGKILL)
    _ = run.wait()
    try job.database.run("UPDATE _batch_undo SET kept_until = NULL")
    return job
  }

  /// Has a program of PostgreSQL, such as `pg_dump`, write to a file.
  private func dump(_ job: SharedJob, to file: String) throws {
    let cluster = job.database.cluster
    let command = """
      bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
      "$bin/pg_dump" --inserts --no-owner --no-privileges -h '\(cluster.folder)' -p \(cluster.port) -U postgres \
        '\(job.database.name)' | grep -v '^\\\\' > '\(file)'
      """
    let shell = try Process.run(
      URL(fileURLWithPath: "/bin/bash"),
      arguments: ["-o", "pipefail", "-ec", command]
    )
    shell.waitUntilExit()
    try #require(shell.terminationStatus == 0)
  }

  @Test(arguments: releases)
  func `an unfinished run in the tables of a release is told, resumed and undone`(release: String)
    throws
  {
    let file = "\(Repository.path)/Tests/BatchCommandTests/Fixtures/\(release)/tables.sql"
    if ProcessInfo.processInfo.environment["BATCH_WRITE_FIXTURES"] == release {
      try dump(write(), to: file)
    }
    let job = try SharedJob(rows: 0)
    try job.database.run("DROP TABLE t")
    try job.database.run(String(contentsOfFile: file, encoding: .utf8))
    try job.writeJob([
      "action": ["type": "update", "set": ["n": "n + 1"]], "undo": ["keep": "365d"],
      "skip": ["limit": 3], "canary": ["rows": 20, "then": "1ms"], "workers": 1,
    ])
    func json(_ arguments: String...) throws -> [String: Any] {
      try JSONOutput.object(BatchProgram(arguments, in: job.directory).wait().output)
    }
    let status = try json("status", "job.json", "--json")
    let done = try #require(status["done"] as? Int)
    let failed = try #require((status["outcomes"] as? [String: Int])?["failed"])
    #expect(status["runID"] as? String == "second" && (1..<300).contains(done))
    #expect(failed == 1 && status["total"] as? Int == 300)
    let runs = try #require(json("history", "job.json", "--json")["runs"] as? [[String: Any]])
    #expect(runs.map { $0["runID"] as? String } == ["second", "first"])
    let reasons = try job.batch("ids", "job.json", "--outcome", "failed", "--reasons").output
    #expect(reasons.contains("\(Self.failing)") && reasons.contains("check"), "\(reasons)")
    #expect(try job.batch("ids", "job.json", "--part", "canary", "--count").output == "20\n")
    let left = try job.batch("ids", "job.json", "--outcome", "remaining", "--count").output
    #expect(left == "\(300 - done)\n")
    let resumed = try job.batch("run", "job.json", "--run-id", "second")
    #expect(resumed.status == 4, "\(resumed.errors)")
    #expect(try job.database.text("SELECT sum(n) FROM t") == "\(299 + 30)")
    let undo = try job.batch("undo", "job.json")
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try job.database.text("SELECT sum(n) FROM t") == "30")
  }
}
#endif
