import BatchTestSupport
import Foundation
import Testing

/// What release 0.2.0 has written: files and tables in the folders of `Fixtures/0.2.0`, which every later version reads.
///
/// A release adds a folder of its own, once: `BATCH_WRITE_FIXTURES=0.2.0 swift test --filter ReleasedFormatTests`.
@Suite(.timeLimit(.minutes(5))) struct ReleasedFormatTests {
  private static let releases = ["0.2.0"]
  private static let folder = "\(Repository.path)/Tests/BatchCommandTests/Fixtures"

  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func batch(_ arguments: String...) throws -> BatchProgram.Result {
    try BatchProgram(arguments, in: directory).wait()
  }

  private func text(_ sql: String) throws -> String {
    try TestDatabase.texts(directory.file("test.db"), sql).joined(separator: " ")
  }

  private func json(_ arguments: String...) throws -> [String: Any] {
    try JSONOutput.object(BatchProgram(arguments, in: directory).wait().output)
  }

  // MARK: Writing

  /// Kills a run that has done some rows.
  private func leaveUnfinished(_ job: (_ slow: Bool) throws -> String) throws {
    try directory.write(job(true), to: "job.json")
    let run = try BatchProgram(["run", "job.json", "--json"], in: directory)
    _ = try run.wait(forEvent: "throttled")
    run.send(SIGKILL)
    _ = run.wait()
    try directory.write(job(false), to: "job.json")
  }

  private static func settings(_ slow: Bool, _ more: [String: Any] = [:]) -> [String: Any] {
    let base: [String: Any] = ["chunk": ["size": 10], "checkpoint": ["interval": "1ms"]]
    return (slow ? base.merging(["throttle": ["identifiersPerSecond": 0.001]]) { $1 } : base)
      .merging(more) { $1 }
  }

  private func write(_ name: String) throws {
    switch name {
    case "unfinished":
      try TestDatabase.makeNumbers(100, in: directory)
      try leaveUnfinished { slow in
        try JobText.update(
          ["n": "n + 1"],
          adding: Self.settings(slow, ["undo": ["keep": "365d"]])
        )
      }
    case "failures":
      try TestDatabase.make(
        in: directory,
        "CREATE TABLE numbers (key TEXT PRIMARY KEY, n INTEGER CHECK (key <> 'k7' OR n < 1))",
        """
        WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 100)
        INSERT INTO numbers SELECT 'k' || i, 0 FROM c
        """
      )
      try directory.write(
        JobText.update(
          ["n": "n + 1"],
          adding: Self.settings(false, ["skip": ["limit": 3], "undo": ["keep": "365d"]])
        ),
        to: "job.json"
      )
      let first = try batch("run", "job.json", "--run-id", "first")
      #expect(first.status == 4, "\(first.errors)")
      #expect(try batch("ids", "job.json", "--output", "all.ids").status == 0)
    case "deletion":
      try TestDatabase.makeNumbers(100, in: directory)
      try TestDatabase.make(in: directory, "CREATE TABLE archive AS SELECT * FROM numbers WHERE 0")
      try directory.write(
        JobText.delete(
          archive: "archive",
          where: "id > 40",
          adding: Self.settings(false, ["undo": ["keep": "365d"]])
        ),
        to: "job.json"
      )
      #expect(try batch("run", "job.json").status == 0)
    default:
      try TestDatabase.makeNumbers(100, in: directory)
      try leaveUnfinished { slow in
        try JobText.export(to: "out.csv", format: "csv", adding: Self.settings(slow))
      }
    }
  }

  /// Gets the fixture of a release, or makes that of this one.
  private func restore(_ name: String, of release: String) throws {
    let fixture = "\(Self.folder)/\(release)/\(name)"
    let manager = FileManager.default
    if ProcessInfo.processInfo.environment["BATCH_WRITE_FIXTURES"] == release {
      try write(name)
      if name != "export" {
        // Fixtures are read for longer than a job may keep its records.
        try TestDatabase.make(in: directory, "UPDATE _batch_undo_run SET kept_until = NULL")
      }
      try? manager.removeItem(atPath: fixture)
      try manager.createDirectory(atPath: fixture, withIntermediateDirectories: true)
      for file in try directory.names() where !file.hasSuffix("-shm") && !file.hasSuffix(".lock") {
        try manager.copyItem(atPath: directory.file(file), toPath: "\(fixture)/\(file)")
      }
      return
    }
    for file in try manager.contentsOfDirectory(atPath: fixture) {
      try manager.copyItem(atPath: "\(fixture)/\(file)", toPath: directory.file(file))
    }
  }

  // MARK: Reading

  @Test(arguments: releases)
  func `an unfinished update resumes, and is undone`(release: String) throws {
    try restore("unfinished", of: release)
    let status = try json("status", "job.json", "--json")
    let done = try #require(status["done"] as? Int)
    #expect(status["next"] as? String == "resume" && (1..<100).contains(done))
    #expect(
      try batch("ids", "job.json", "--outcome", "remaining", "--count").output == "\(100 - done)\n"
    )
    #expect(try batch("inspect", "job.batch").status == 0)
    let run = try batch("run", "job.json", "--json")
    #expect(run.status == 0, "\(run.errors)")
    #expect(try JSONOutput.lines(run.output).first?["event"] as? String == "resumed")
    #expect(try text("SELECT n || ' x ' || count(*) FROM numbers GROUP BY n") == "1 x 100")
    let undo = try batch("undo", "job.json")
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try text("SELECT n || ' x ' || count(*) FROM numbers GROUP BY n") == "0 x 100")
  }

  @Test(arguments: releases)
  func `failed rows are told, retried and undone, and the work of an ID is not repeated`(
    release: String
  ) throws {
    try restore("failures", of: release)
    let failed = try batch("ids", "job.json", "--outcome", "failed", "--reasons").output
    #expect(failed.contains("k7") && failed.contains("CHECK"), "\(failed)")
    let again = try batch("run", "job.json", "--run-id", "first", "--json")
    #expect(again.status == 4, "\(again.errors)")
    #expect(try text("SELECT count(*) FROM numbers WHERE n = 1") == "99")
    #expect(try batch("inspect", "all.ids").output.contains("100"))
    try TestDatabase.make(in: directory, "UPDATE numbers SET n = -1 WHERE key = 'k7'")
    let retry = try batch("retry-failed", "job.json")
    #expect(retry.status == 0, "\(retry.errors)")
    let history = try #require(json("history", "job.json", "--json")["runs"] as? [[String: Any]])
    #expect(history.count == 1 && history[0]["runID"] as? String == "first")
    let undo = try batch("undo", "job.json")
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try text("SELECT n || ' x ' || count(*) FROM numbers GROUP BY n") == "-1 x 1 0 x 99")
  }

  @Test(arguments: releases)
  func `deleted rows return from undo records`(release: String) throws {
    try restore("deletion", of: release)
    #expect(try text("SELECT count(*) FROM numbers") == "40")
    let undo = try batch("undo", "job.json")
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try text("SELECT count(*) || ' ' || sum(id) FROM numbers") == "100 5050")
  }

  @Test(arguments: releases)
  func `the record of an unfinished export is read, and its copy begins anew`(
    release: String
  ) throws {
    try restore("export", of: release)
    let status = try json("status", "job.json", "--json")
    let done = try #require(status["done"] as? Int)
    #expect((1..<100).contains(done) && status["total"] as? Int == 100)
    // A copy of a database without an identity of its own is another one.
    let run = try batch("run", "job.json", "--fresh")
    #expect(run.status == 0, "\(run.errors)")
    let lines = try String(decoding: directory.read("out.csv"), as: UTF8.self).split(
      separator: "\r\n"
    )
    #expect(lines.count == 101 && lines.last == "100,0,label 100")
  }
}
